//! Entries of the ACP registry: a folder per agent, with a file `agent.json` in it.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;

use super::installed::{self, Installed};
use super::{Configured, Source, text};
use crate::launch::Launch;

/// The file of an entry.
pub(super) const FILE: &str = "agent.json";

/// Maximum number of entries that are read.
const MOST_ENTRIES: usize = 10_000;

/// The members of an entry that are used.
#[derive(Debug, Deserialize)]
struct Entry {
    id: String,
    version: Option<String>,
    description: Option<String>,
    distribution: Distribution,
}

#[derive(Debug, Default, Deserialize)]
struct Distribution {
    npx: Option<Package>,
    uvx: Option<Package>,
    /// By platform, such as `linux-x86_64`.
    #[serde(default)]
    binary: BTreeMap<String, Archive>,
}

#[derive(Debug, Deserialize)]
struct Package {
    package: String,
    #[serde(default)]
    args: Vec<String>,
    #[serde(default)]
    env: BTreeMap<String, String>,
}

/// An archive for one platform.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Archive {
    /// The URL of the archive.
    pub(super) archive: String,
    /// The path of the program in the archive.
    pub(super) cmd: String,
    #[serde(default)]
    pub(super) args: Vec<String>,
    #[serde(default)]
    pub(super) env: BTreeMap<String, String>,
    /// The checksum of the archive, in hexadecimal digits.
    pub(super) sha256: Option<String>,
}

/// The entries by id.
#[derive(Debug, Default)]
pub(super) struct Registry(BTreeMap<String, Configured>);

impl Registry {
    /// Reads the entries of a folder, if it exists. Installed agents are in another folder.
    pub(super) fn read(
        folder: Option<&Path>,
        installed: Option<&Path>,
        problems: &mut Vec<String>,
    ) -> Self {
        let mut registry = Self::default();
        let Some(listed) = folder.and_then(|folder| folder.read_dir().ok()) else {
            return registry;
        };
        for folder in listed.flatten().take(MOST_ENTRIES) {
            let file = folder.path().join(FILE);
            let read = match text(&file) {
                Ok(None) => continue,
                Ok(Some(text)) => configured(&text, &file, installed),
                Err(reason) => Err(reason),
            };
            match read {
                Ok(entry) => drop(registry.0.insert(entry.name.clone(), entry)),
                Err(reason) => {
                    problems.push(format!("cannot use {}: {reason}", file.display()));
                }
            }
        }
        registry
    }

    pub(super) fn entry(&self, id: &str) -> Option<&Configured> {
        self.0.get(id)
    }

    pub(super) fn into_entries(self) -> impl Iterator<Item = Configured> {
        self.0.into_values()
    }
}

/// Returns whether a text is a valid id, which is also a safe name of a folder.
pub(super) fn is_id(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_lowercase())
        && text.len() <= 100
        && text
            .chars()
            .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
}

fn configured(text: &str, file: &Path, folder: Option<&Path>) -> Result<Configured, String> {
    let mut entry: Entry = serde_json::from_str(text).map_err(|error| error.to_string())?;
    if !is_id(&entry.id) {
        return Err(format!(
            "expected an id of lower-case letters, digits and hyphens, got {:?}",
            entry.id
        ));
    }
    let wanted = entry.version.as_deref();
    let installed = folder.and_then(|folder| installed::find(folder, &entry.id, wanted));
    let archive = entry.distribution.binary.remove(&platform());
    Ok(Configured {
        launch: launch(
            &entry.id,
            entry.distribution,
            archive.as_ref(),
            installed.as_ref(),
        ),
        name: entry.id,
        source: Source::Registry,
        file: file.to_owned(),
        version: entry.version,
        installed: installed.map(|installed| installed.version),
        archive,
        description: entry.description,
    })
}

/// Returns the start command of an entry: the installed program, or npx or uvx, which download the
/// package.
fn launch(
    id: &str,
    distribution: Distribution,
    archive: Option<&Archive>,
    installed: Option<&Installed>,
) -> Result<Launch, String> {
    if let Some(installed) = installed {
        return Ok(installed.launch.clone());
    }
    let (program, before, package) = match (distribution.npx, distribution.uvx) {
        (Some(package), _) => (
            if cfg!(windows) { "npx.cmd" } else { "npx" },
            Some("--yes"),
            package,
        ),
        (None, Some(package)) => ("uvx", None, package),
        (None, None) => {
            return Err(match archive {
                Some(_) => {
                    format!("it is not installed. `acp agents install {id}` installs it")
                }
                None => format!("it is not distributed for {}", platform()),
            });
        }
    };
    let words = before.map(str::to_owned).into_iter();
    let words = words.chain([package.package]).chain(package.args);
    Ok(Launch {
        program: program.into(),
        args: words.map(Into::into).collect(),
        env: package.env,
        ..Launch::default()
    })
}

/// Returns this platform in the registry's notation.
fn platform() -> String {
    let system = match std::env::consts::OS {
        "macos" => "darwin",
        other => other,
    };
    format!("{system}-{}", std::env::consts::ARCH)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn read(distribution: Value) -> Result<Configured, String> {
        let entry = json!({"id": "an-agent", "name": "An agent", "version": "1.2.3",
            "description": "Works", "distribution": distribution});
        configured(&entry.to_string(), Path::new("an-agent/agent.json"), None)
    }

    #[test]
    fn packages_are_run_by_npx_or_uvx() {
        let npx = json!({"npx": {"package": "@x/a@1.2.3", "args": ["--acp"], "env": {"K": "V"}}});
        let entry = read(npx).unwrap();
        assert_eq!(
            (&*entry.name, entry.version.as_deref()),
            ("an-agent", Some("1.2.3"))
        );
        let launch = entry.launch.unwrap();
        assert_eq!(launch.args, ["--yes", "@x/a@1.2.3", "--acp"]);
        assert_eq!(launch.env["K"], "V");
        let uvx = json!({"uvx": {"package": "a==1.2.3", "args": ["-x"]}});
        let launch = read(uvx).unwrap().launch.unwrap();
        assert_eq!(
            (launch.program, launch.args),
            ("uvx".into(), vec!["a==1.2.3".into(), "-x".into()])
        );
    }

    #[test]
    fn an_archive_must_be_installed() {
        let target = json!({"archive": "https://host/a.tar.gz", "cmd": "./a"});
        let entry = read(json!({"binary": {platform(): target}})).unwrap();
        let reason = entry.launch.unwrap_err();
        assert!(reason.contains("acp agents install an-agent"), "{reason}");
        let entry = read(json!({"binary": {"plan9-mips": target}})).unwrap();
        assert!(entry.launch.unwrap_err().contains("not distributed for"));
    }

    #[test]
    fn an_id_is_harmless_as_a_name_of_a_folder() {
        for id in ["..", "a/b", "A", "", "-a", "a.b", &"a".repeat(101)] {
            assert!(!is_id(id), "{id}");
        }
        assert!(is_id("codex-acp2"));
    }
}
