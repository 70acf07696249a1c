//! Installed agents: `ID/VERSION/agent.json` has the start command, and the folder `files` beside
//! it the unpacked archive.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::archive::inside;
use super::text;
use crate::launch::Launch;

/// The file with the start command of an agent.
const FILE: &str = "agent.json";

/// The folder of the unpacked archive.
pub(super) const FILES: &str = "files";

/// Maximum number of versions of an agent that are read.
const MOST_VERSIONS: usize = 100;

/// The content of the file.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Manifest {
    pub(super) version: String,
    /// The URL of the archive.
    pub(super) archive: String,
    /// The checksum of the archive.
    pub(super) sha256: String,
    /// The program, in `files`.
    pub(super) cmd: String,
    pub(super) args: Vec<String>,
    pub(super) env: BTreeMap<String, String>,
}

impl Manifest {
    /// Writes the file.
    ///
    /// # Errors
    ///
    /// Fails when it cannot be written.
    pub(super) fn write(&self, folder: &Path) -> std::io::Result<()> {
        let file = std::fs::File::create_new(folder.join(FILE))?;
        serde_json::to_writer_pretty(&file, self)?;
        file.sync_all()
    }
}

/// An agent that is installed.
#[derive(Debug)]
pub(super) struct Installed {
    pub(super) version: String,
    pub(super) launch: Launch,
}

/// Returns the agent with an id: the wanted version, or the one that was installed last.
pub(super) fn find(folder: &Path, id: &str, wanted: Option<&str>) -> Option<Installed> {
    let folder = folder.join(id);
    if let Some(wanted) = wanted.filter(|version| is_version(version))
        && let Some(installed) = read(&folder.join(wanted))
    {
        return Some(installed);
    }
    let listed = folder.read_dir().ok()?.flatten().take(MOST_VERSIONS);
    let versions = listed.filter(|entry| entry.file_name().to_str().is_some_and(is_version));
    let mut versions: Vec<(_, PathBuf)> = versions
        .filter_map(|entry| Some((entry.metadata().ok()?.modified().ok()?, entry.path())))
        .collect();
    versions.sort();
    versions.iter().rev().find_map(|(_, path)| read(path))
}

fn read(folder: &Path) -> Option<Installed> {
    let text = text(&folder.join(FILE)).ok()??;
    let manifest: Manifest = serde_json::from_str(&text).ok()?;
    let program = program(&folder.join(FILES), &manifest.cmd).ok()?;
    Some(Installed {
        version: manifest.version,
        launch: Launch {
            program: program.into(),
            args: manifest.args.into_iter().map(Into::into).collect(),
            env: manifest.env,
            ..Launch::default()
        },
    })
}

/// Returns the path of an agent's program.
///
/// # Errors
///
/// Fails when the path is outside the folder.
pub(super) fn program(files: &Path, cmd: &str) -> Result<PathBuf, String> {
    // A leading `./` is only for shells.
    let path: PathBuf = inside(Path::new(cmd))?.components().collect();
    Ok(files.join(path.strip_prefix(".").unwrap_or(&path)))
}

/// Returns whether a text is safe as the name of a folder.
pub(super) fn is_version(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphanumeric())
        && text.len() <= 100
        && text
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | '+'))
}
