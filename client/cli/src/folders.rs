//! The folders of `acp` and of editors.

use std::fs::{DirBuilder, File};
use std::io;
use std::path::{Path, PathBuf};

use etcetera::BaseStrategy as _;

/// Returns the configuration folder, such as `~/.config`; `%APPDATA%` on Windows.
pub(super) fn config() -> Option<PathBuf> {
    Some(etcetera::choose_base_strategy().ok()?.config_dir())
}

/// Returns the data folder of `acp`, such as `~/.local/share/acp`.
pub(super) fn data() -> Option<PathBuf> {
    let folders = etcetera::base_strategy::choose_native_strategy().ok()?;
    Some(folders.data_dir().join("acp"))
}

/// Returns the user's home.
pub(super) fn home() -> Option<PathBuf> {
    etcetera::home_dir().ok()
}

/// Creates a folder and its missing parents with access for this user only. A folder that exists keeps its
/// rights.
pub(super) fn create(folder: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

/// Opens a file for writing, and creates it with access for this user only if it does not exist.
pub(super) fn open_file(path: &Path) -> io::Result<File> {
    let mut options = File::options();
    options.create(true).truncate(false).write(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}
