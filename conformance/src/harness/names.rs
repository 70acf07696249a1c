//! Names of modes and members, as agents write them.

/// Returns a name without case and separators.
pub(super) fn plain(name: &str) -> String {
    let letters = name.chars().filter(|c| c.is_alphanumeric());
    letters.flat_map(char::to_lowercase).collect()
}
