//! The data files of this crate. They are part of the program, and tests read all of them.

use serde::de::DeserializeOwned;

/// Reads a TOML file of this crate.
pub(crate) fn read<T: DeserializeOwned>(name: &str, text: &str) -> T {
    valid(name, basic_toml::from_str(text))
}

/// Returns what was read from a file of this crate.
#[expect(
    clippy::panic,
    reason = "no user can change the file, and a test reads it"
)]
pub(crate) fn valid<T>(name: &str, read: Result<T, impl std::fmt::Display>) -> T {
    read.unwrap_or_else(|error| panic!("the embedded file {name}: {error}"))
}
