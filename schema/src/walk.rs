//! Finds the schemas in a document, and only those.
//!
//! What looks like a schema but is not one is left out: values of `const`,
//! `default`, `enum`, `examples`, `x-coalesce`, `x-version` and `x-transcript` are data, and the
//! members of `properties`, `patternProperties`, `dependentSchemas` and `$defs` are named by the
//! protocol: a member called `$ref` is not a reference.

use serde_json::{Map, Value};

/// Calls `visit` with each object schema and its JSON Pointer, outer ones first.
///
/// # Errors
/// The first that `visit` returns.
pub(crate) fn schemas<'a, E>(
    schema: &'a Value,
    at: &str,
    visit: &mut impl FnMut(&str, &'a Map<String, Value>) -> Result<(), E>,
) -> Result<(), E> {
    match schema {
        Value::Object(keywords) => {
            visit(at, keywords)?;
            for (keyword, value) in keywords {
                let at = format!("{at}/{}", escaped(keyword));
                match (keyword.as_str(), value) {
                    (
                        "const" | "default" | "enum" | "examples" | "x-coalesce" | "x-version"
                        | "x-transcript",
                        _,
                    ) => {}
                    (
                        "properties" | "patternProperties" | "dependentSchemas" | "$defs",
                        Value::Object(named),
                    ) => {
                        for (name, schema) in named {
                            schemas(schema, &format!("{at}/{}", escaped(name)), visit)?;
                        }
                    }
                    _ => schemas(value, &at, visit)?,
                }
            }
            Ok(())
        }
        Value::Array(items) => items
            .iter()
            .enumerate()
            .try_for_each(|(index, item)| schemas(item, &format!("{at}/{index}"), visit)),
        _ => Ok(()),
    }
}

/// A key as a step of a JSON Pointer.
pub(crate) fn escaped(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}
