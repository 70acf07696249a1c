//! Where the files of `acp` and of editors are.

use std::path::PathBuf;

use etcetera::BaseStrategy as _;

/// The folder of configurations, such as `~/.config`; `%APPDATA%` on Windows.
pub(super) fn config() -> Option<PathBuf> {
    Some(etcetera::choose_base_strategy().ok()?.config_dir())
}

/// The folder of what `acp` keeps, such as `~/.local/share/acp`.
pub(super) fn data() -> Option<PathBuf> {
    let folders = etcetera::base_strategy::choose_native_strategy().ok()?;
    Some(folders.data_dir().join("acp"))
}

/// The user's home.
pub(super) fn home() -> Option<PathBuf> {
    etcetera::home_dir().ok()
}
