//! Which table of requirements a report is of: the version of the suite, and a hash of its rows.

use super::list::Listed;
use crate::specification::sha256;
use crate::wire::Version;

/// Returns the rows of both versions.
pub(super) fn all() -> Vec<Listed> {
    let versions = [Version::V1, Version::V2].into_iter();
    versions.flat_map(Listed::of).collect()
}

/// Returns the first ten digits of the SHA-256 of rows, as `list --json` has them.
pub(super) fn hash(rows: &[Listed]) -> String {
    // Strings, whose serialization does not fail.
    let mut digits = sha256(&serde_json::to_vec(rows).unwrap_or_default());
    digits.truncate(10);
    digits
}

/// Returns the name of a suite with its table; reports of older suites have no hash.
pub(super) fn suite(version: &str, table: &str) -> String {
    match table {
        "" => format!("acp-conformance {version}"),
        hash => format!("acp-conformance {version}, requirements {hash}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_table_has_another_hash() {
        let rows = all();
        assert_eq!(hash(&rows).len(), 10);
        assert_eq!(hash(&rows), hash(&all()));
        assert_ne!(hash(&rows), hash(&rows[1..]));
    }
}
