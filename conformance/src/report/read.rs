//! Reads a report back, and says what is wrong when it is none.

use std::path::Path;

use serde::Deserialize;

use super::document::{Document, VERSION};
use crate::{Error, Result};

/// Reads what `--json` wrote.
///
/// # Errors
/// When the file cannot be read, or is no report of this version of the format.
pub fn read(path: &Path) -> Result<Document> {
    let text = std::fs::read(path).map_err(Error::reading(path))?;
    let unusable = |reason: String| Error::NoReport {
        path: path.to_owned(),
        reason,
    };
    // The version first: what it stands for may have changed the rest.
    let head: Head = serde_json::from_slice(&text).map_err(|error| {
        unusable(format!(
            "it is no report ({error}); write one with `acp-conformance agent --json FILE`"
        ))
    })?;
    if head.version != VERSION {
        let (found, known) = (head.version, VERSION);
        let whose = if found > known { "a newer" } else { "an older" };
        let mend = if found > known {
            "update acp-conformance"
        } else {
            "write it anew with `--json FILE`"
        };
        return Err(unusable(format!(
            "its format is version {found}, of {whose} acp-conformance; this one reads version {known}: {mend}"
        )));
    }
    serde_json::from_slice(&text).map_err(|error| {
        unusable(format!(
            "it is not a whole report ({error}); write it anew with `--json FILE`"
        ))
    })
}

/// What every report has, whatever its version.
#[derive(Deserialize)]
struct Head {
    version: u32,
}
