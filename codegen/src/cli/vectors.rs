//! Test vectors as JSON files.

use std::path::Path;

use acp_codegen::Error;
use acp_codegen::vectors::{Vectors, vectors};
use acp_schema::Document;
use serde_json::Value;

use super::output;

/// Writes the vectors of a document: a list, or a file a definition.
pub(crate) fn write(document: &Document, directory: Option<&Path>) -> Result<(), Error> {
    // All are made before the first is written.
    let all = vectors(document)?;
    let Some(directory) = directory else {
        let list: Value = all.iter().map(Vectors::to_json).collect();
        return output::write(None, &format!("{list:#}\n"));
    };
    let file = |vectors: &Vectors| {
        let name = format!("{}.json", vectors.definition);
        (name, format!("{:#}\n", vectors.to_json()))
    };
    let files: Vec<(String, String)> = all.iter().map(file).collect();
    output::write_all(directory, &files)
}
