//! Where agents keep their own state: logins, settings, histories.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

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

/// Returns where the agent of a command line keeps its own state, as far as that is known and exists.
///
/// `variable` returns the value of an environment variable of the agent.
pub fn state_of<'a>(
    command: impl IntoIterator<Item = &'a OsStr>,
    variable: impl Fn(&str) -> Option<OsString>,
) -> Vec<PathBuf> {
    let Some(home) = variable("HOME").map(PathBuf::from) else {
        return Vec::new();
    };
    let command: Vec<_> = command.into_iter().map(OsStr::to_string_lossy).collect();
    let is_named = |known: &&Known| {
        let mut words = command.iter().flat_map(|word| {
            let name = Path::new(&**word).file_name().unwrap_or_default();
            // Of a package such as `@scope/codex-acp@1.2`.
            name.to_str()
                .unwrap_or_default()
                .split(|c: char| !c.is_ascii_alphanumeric())
                .map(str::to_owned)
                .collect::<Vec<_>>()
        });
        words.any(|word| word == known.name)
    };
    let mut paths = Vec::new();
    for known in KNOWN.iter().filter(is_named) {
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
    paths.retain(|path| path.is_absolute() && path.exists());
    paths
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
        let found = state_of(command.iter().map(OsStr::new), variable);
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
        for path in [
            ".codex",
            ".npm",
            ".config/opencode",
            ".local/share/opencode",
            ".cache",
        ] {
            std::fs::create_dir_all(home.join(path)).unwrap();
        }
        let other = home.join("other");
        std::fs::create_dir(&other).unwrap();
        assert_eq!(names(&["/usr/bin/codex"], &[], home), [".codex"]);
        let package = ["npx", "-y", "@zed-industries/codex-acp@0.9"];
        assert_eq!(names(&package, &[], home), [".codex", ".npm"]);
        assert_eq!(
            names(&["codex"], &[("CODEX_HOME", &other)], home),
            ["other"]
        );
        let opencode = [".config/opencode", ".local/share/opencode"];
        assert_eq!(names(&["opencode", "acp"], &[], home), opencode);
        assert_eq!(names(&["opencodex"], &[], home), [""; 0]);
        // Relative: it would depend on the directory.
        let relative = [("CODEX_HOME", Path::new("."))];
        assert_eq!(names(&["codex"], &relative, home), [""; 0]);
    }
}
