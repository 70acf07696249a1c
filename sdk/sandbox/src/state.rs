//! Where agents keep their own state: logins, settings, histories.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};

use crate::{SandboxError, SandboxErrorKind};

/// An agent and where it keeps its state.
struct Known {
    /// A word of its command line.
    name: &'static str,
    /// Its variable for the directory.
    variable: Option<&'static str>,
    /// Without the variable, below the user's home.
    home: &'static [&'static str],
    /// Below each of the directories of the XDG specification.
    xdg: Option<&'static str>,
}

const fn known(
    name: &'static str,
    variable: Option<&'static str>,
    home: &'static [&'static str],
    xdg: Option<&'static str>,
) -> Known {
    Known {
        name,
        variable,
        home,
        xdg,
    }
}

const KNOWN: &[Known] = &[
    known("codex", Some("CODEX_HOME"), &[".codex"], None),
    known(
        "claude",
        Some("CLAUDE_CONFIG_DIR"),
        &[".claude", ".claude.json"],
        None,
    ),
    known("gemini", None, &[".gemini"], None),
    known("qwen", None, &[".qwen"], None),
    known("opencode", None, &[], Some("opencode")),
    known("goose", None, &[], Some("goose")),
    known("cursor", None, &[".cursor"], None),
    known("copilot", None, &[".copilot"], None),
    known("kimi", None, &[".kimi"], None),
    known("vibe", Some("VIBE_HOME"), &[".vibe"], None),
    known("acp-agent", None, &[], Some("acp-agent")),
    known("acp-server", None, &[], Some("acp-server")),
    // Programs that fetch an agent and start it.
    known("npx", Some("npm_config_cache"), &[".npm"], None),
    known("bunx", Some("BUN_INSTALL"), &[".bun"], None),
    known(
        "uvx",
        Some("UV_CACHE_DIR"),
        &[".cache/uv", ".local/share/uv"],
        None,
    ),
];

/// The variables of the XDG specification, and their defaults below the user's home.
const XDG: &[(&str, &str)] = &[
    ("XDG_CONFIG_HOME", ".config"),
    ("XDG_DATA_HOME", ".local/share"),
    ("XDG_STATE_HOME", ".local/state"),
    ("XDG_CACHE_HOME", ".cache"),
];

/// Returns where the agent of a command line keeps its own state, as far as that is known. Directories
/// that do not exist are created, as the agent would.
///
/// `variable` returns the value of an environment variable of the agent. Relative values are left out.
///
/// # Errors
///
/// [`SandboxErrorKind::Path`] if a directory cannot be created.
pub fn prepared_state<'a>(
    command: impl IntoIterator<Item = &'a OsStr>,
    variable: impl Fn(&str) -> Option<OsString>,
) -> Result<Vec<PathBuf>, SandboxError> {
    let Some(home) = variable("HOME").map(PathBuf::from) else {
        return Ok(Vec::new());
    };
    let words: Vec<String> = command.into_iter().flat_map(words_of).collect();
    let mut paths = Vec::new();
    for known in KNOWN {
        if !words.iter().any(|word| word == known.name) {
            continue;
        }
        match known.variable.and_then(&variable) {
            Some(path) => paths.push(PathBuf::from(path)),
            None => paths.extend(known.home.iter().map(|path| home.join(path))),
        }
        if let Some(name) = known.xdg {
            paths.extend(XDG.iter().map(|(name_of_base, default)| {
                let base = variable(name_of_base).map(PathBuf::from);
                base.unwrap_or_else(|| home.join(default)).join(name)
            }));
        }
    }
    paths.retain(|path| path.is_absolute());
    for path in &paths {
        // What has an extension is a file.
        if path.extension().is_none() {
            fs::create_dir_all(path).map_err(|error| {
                let message = format!("cannot create the agent's {}: {error}", path.display());
                SandboxError::new(SandboxErrorKind::Path, message)
            })?;
        }
    }
    paths.retain(|path| path.exists());
    Ok(paths)
}

/// Returns the words of a program's name, of a package such as `@scope/codex-acp@1.2`, or of a script of an
/// installed package: `node_modules/@scope/codex-acp/dist/index.js`.
fn words_of(argument: &OsStr) -> Vec<String> {
    let path = argument.to_string_lossy();
    let name = match path.rsplit_once("node_modules/") {
        Some((_, package)) => package.into(),
        None => {
            let name = Path::new(argument).file_name().unwrap_or_default();
            name.to_string_lossy()
        }
    };
    let words = name.split(|c: char| !c.is_ascii_alphanumeric());
    words.chain([&*name]).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(command: &[&str], variables: &[(&str, &Path)], home: &Path) -> Vec<String> {
        let variable = |name: &str| match name {
            "HOME" => Some(home.as_os_str().to_owned()),
            _ => variables
                .iter()
                .find(|(known, _)| *known == name)
                .map(|(_, value)| value.as_os_str().to_owned()),
        };
        let found = prepared_state(command.iter().map(OsStr::new), variable).unwrap();
        let name = |path: &PathBuf| {
            let path = path.strip_prefix(home).unwrap_or(path);
            path.display().to_string()
        };
        found.iter().map(name).collect()
    }

    #[test]
    fn known_agents_have_their_state_and_others_none() {
        let home = tempfile::tempdir().unwrap();
        let home = home.path();
        assert_eq!(names(&["/usr/bin/codex"], &[], home), [".codex"]);
        let package = ["npx", "-y", "@zed-industries/codex-acp@0.9"];
        assert_eq!(names(&package, &[], home), [".codex", ".npm"]);
        let script = "/opt/node_modules/@agentclientprotocol/codex-acp/dist/index.js";
        assert_eq!(names(&["node", script], &[], home), [".codex"]);
        let other = home.join("other");
        let variables: [(&str, &Path); 1] = [("CODEX_HOME", &other)];
        assert_eq!(names(&["codex"], &variables, home), ["other"]);
        let opencode = [".config", ".local/share", ".local/state", ".cache"];
        let opencode = opencode.map(|folder| format!("{folder}/opencode"));
        assert_eq!(names(&["opencode", "acp"], &[], home), opencode);
        assert!(home.join(".cache/opencode").is_dir());
        assert_eq!(names(&["opencodex"], &[], home), [""; 0]);
        // Relative: it would depend on the directory.
        let relative = [("CODEX_HOME", Path::new("."))];
        assert_eq!(names(&["codex"], &relative, home), [""; 0]);
        // A file is not created.
        assert_eq!(names(&["claude"], &[], home), [".claude"]);
        fs::write(home.join(".claude.json"), "{}").unwrap();
        assert_eq!(names(&["claude"], &[], home), [".claude", ".claude.json"]);
    }

    #[test]
    fn a_directory_that_cannot_be_created_is_named() {
        let home = tempfile::tempdir().unwrap();
        fs::write(home.path().join(".npm"), "a file").unwrap();
        let variable = |name: &str| (name == "HOME").then(|| home.path().into());
        let error = prepared_state([OsStr::new("npx")], variable).unwrap_err();
        assert!(error.to_string().contains("/.npm: "), "{error}");
    }
}
