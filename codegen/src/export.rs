//! Overlays from JSON Schemas that another tool derived from types.
//!
//! schemars writes a type's schema as a root with `$defs`; an overlay has
//! definitions only. A type names its method itself:
//!
//! ```text
//! #[derive(JsonSchema)]
//! #[schemars(extend("x-method" = "_example/ping", "x-side" = "agent"))]
//! struct PingRequest { text: String }
//! ```

use acp_schema::Document;
use serde_json::{Map, Value, json};

use crate::Error;
use crate::lower::same_facts;
use crate::schemas::plain;

/// The file name in errors.
const SOURCE: &str = "exported schemas";

/// Converts root schemas, such as those of `schemars::schema_for!`, to an overlay. Each root
/// becomes the definition that its `title` names; its `$defs` are added.
///
/// Types of yours may have members of the protocol's types (feature `schemars` of
/// `acp-sdk`): what `document` says already is left out.
///
/// # Errors
/// When a schema has no `title`, or two say different things of one name.
pub fn export(
    document: &Document,
    schemas: impl IntoIterator<Item = Value>,
) -> Result<Value, Error> {
    let mut definitions = overlay(schemas).map_err(|error| error.in_file(SOURCE))?;
    definitions.retain(|name, schema| {
        let known = document.def(name).cloned();
        !known.is_some_and(|known| same_facts(&plain(known), &plain(schema.clone())))
    });
    Ok(json!({ "$defs": definitions }))
}

fn overlay(schemas: impl IntoIterator<Item = Value>) -> Result<Map<String, Value>, Error> {
    let mut definitions = Map::new();
    for (index, mut schema) in schemas.into_iter().enumerate() {
        let at = format!("/{index}");
        let Some(root) = schema.as_object_mut() else {
            return Err(Error::unsupported(
                at,
                "not an object",
                "export the root schema of a type",
            ));
        };
        root.shift_remove("$schema");
        let inner = root.shift_remove("$defs");
        let Some(Value::String(name)) = root.shift_remove("title") else {
            return Err(Error::unsupported(
                format!("{at}/title"),
                "the schema has no name",
                "give the type's name as its `title`",
            ));
        };
        refer_by_name(&mut schema, &name);
        add(&mut definitions, &at, name, schema)?;
        if let Some(Value::Object(inner)) = inner {
            for (name, schema) in inner {
                add(&mut definitions, &at, name, schema)?;
            }
        }
    }
    Ok(definitions)
}

/// Adds a definition, which several roots may bring along.
fn add(
    definitions: &mut Map<String, Value>,
    at: &str,
    name: String,
    schema: Value,
) -> Result<(), Error> {
    match definitions.get(&name) {
        Some(known) if *known != schema => Err(Error::unsupported(
            at,
            format!("two types are called `{name}` and differ"),
            "rename one of them",
        )),
        Some(_) => Ok(()),
        None => {
            definitions.insert(name, schema);
            Ok(())
        }
    }
}

/// A type that contains itself refers to its root as `#`.
fn refer_by_name(schema: &mut Value, name: &str) {
    match schema {
        Value::Object(members) => {
            for (key, member) in members {
                if key == "$ref" && member == "#" {
                    *member = format!("#/$defs/{name}").into();
                } else {
                    refer_by_name(member, name);
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| refer_by_name(item, name)),
        _ => {}
    }
}
