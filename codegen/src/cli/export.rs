//! Derived schemas in, overlay out.

use std::path::Path;

use acp_codegen::{Error, Options, export, generate};
use acp_schema::Document;
use serde_json::Value;

use super::{output, read};

/// Reads schemas, and writes the overlay that they make when the bundled document
/// takes it.
pub(crate) fn write(file: Option<&Path>, out: Option<&Path>) -> Result<(), Error> {
    let (name, text) = read(file.unwrap_or(Path::new("-")))?;
    let schemas: Value =
        serde_json::from_str(&text).map_err(|source| acp_schema::Error::Json { name, source })?;
    let schemas = match schemas {
        Value::Array(schemas) => schemas,
        schema => vec![schema],
    };
    let document = Document::v1()?;
    let overlay = format!("{:#}\n", export(&document, schemas)?);
    // What cannot be generated is said now rather than in somebody's build.
    let document = document.overlay("the overlay", &overlay)?;
    generate(&document, &Options::v1())?;
    output::write(out, &overlay)
}
