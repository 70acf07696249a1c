//! The folders of `acp` and of editors.

use std::path::PathBuf;

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
