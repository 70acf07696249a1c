//! The descriptions of an official schema as pages: one for each definition and each method.

use std::collections::BTreeMap;
use std::path::Path;
use std::{fs, io};

use serde_json::Value;

use super::page::Page;

/// The folder of a version's schema, and its name before the `#` of citations.
const SCHEMAS: [(&str, &str); 2] = [("v1", "schema"), ("v2", "v2/schema")];

/// Returns whether a page of citations is a schema, whose anchors are pages of their own.
pub(super) fn is_schema(page: &str) -> bool {
    SCHEMAS.iter().any(|(_, name)| *name == page)
}

/// Reads the schemas of both versions in a folder. Returns their descriptions, and the SHA-256 of the
/// files one after the other.
///
/// # Errors
/// When a file cannot be read, or is no JSON.
pub fn read(folder: &Path) -> io::Result<(Vec<Page>, String)> {
    let (mut all, mut bytes) = (Vec::new(), Vec::new());
    for (version, name) in SCHEMAS {
        let file = folder.join(version).join("schema.json");
        let failed =
            |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", file.display()));
        let text = fs::read(&file).map_err(failed)?;
        let schema = serde_json::from_slice(&text).map_err(|error| failed(error.into()))?;
        all.extend(pages(name, &schema));
        bytes.extend(text);
    }
    Ok((all, sha256(&bytes)))
}

/// Reads the descriptions of a schema. `name` is what citations call it, such as `v2/schema`.
///
/// The pages have the anchors of the specification's site: `v2/schema#promptrequest` for the definition
/// `PromptRequest`, `v2/schema#session-prompt` for the method `session/prompt`.
pub(super) fn pages(name: &str, schema: &Value) -> Vec<Page> {
    let mut texts = BTreeMap::new();
    let definitions = schema.get("$defs").and_then(Value::as_object);
    for (definition, value) in definitions.into_iter().flatten() {
        collect(schema, value, &definition.to_lowercase(), &mut texts);
    }
    // Messages of both sides are in no definition.
    if let Some(messages) = schema.get("anyOf") {
        collect(schema, messages, "protocol-level", &mut texts);
    }
    let pages = texts
        .iter()
        .map(|(anchor, text)| Page::parse(&format!("{name}#{anchor}"), text));
    pages.collect()
}

/// Adds the descriptions in a value to the texts by their anchors.
fn collect(schema: &Value, value: &Value, anchor: &str, texts: &mut BTreeMap<String, String>) {
    match value {
        Value::Object(members) => {
            let method = method(schema, value);
            let anchor = method.as_deref().unwrap_or(anchor);
            if let Some(Value::String(description)) = members.get("description") {
                let text = texts.entry(anchor.to_owned()).or_default();
                text.push_str(description);
                text.push_str("\n\n");
            }
            for (name, member) in members {
                // Every definition has the same words about `_meta`.
                let anchor = match name.as_str() {
                    "_meta" if texts.contains_key("_meta") => continue,
                    "_meta" => "_meta",
                    _ => anchor,
                };
                collect(schema, member, anchor, texts);
            }
        }
        Value::Array(items) => {
            for item in items {
                collect(schema, item, anchor, texts);
            }
        }
        _ => {}
    }
}

/// Returns the anchor of the method whose params or result a value refers to.
fn method(schema: &Value, value: &Value) -> Option<String> {
    let target = value.pointer("/allOf/0/$ref").and_then(Value::as_str)?;
    let target = schema.pointer(target.strip_prefix('#')?)?;
    let method = target.get("x-method").and_then(Value::as_str)?;
    Some(method.replace('/', "-"))
}

/// Returns the SHA-256 of some bytes in hexadecimal digits.
pub(crate) fn sha256(bytes: &[u8]) -> String {
    use sha2::{Digest as _, Sha256};
    let digest = Sha256::digest(bytes);
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn descriptions_stand_at_their_definition_or_method() {
        let schema = json!({
            "$defs": {
                "Request": { "properties": { "params": { "anyOf": [
                    { "description": "Sends it.\n\nIt MUST\nbe sent.", "allOf": [{ "$ref": "#/$defs/SendRequest" }] },
                ] } } },
                "SendRequest": {
                    "x-method": "it/send",
                    "description": "What is sent.",
                    "properties": {
                        "_meta": { "description": "Said everywhere." },
                        "text": { "description": "A [text](#a)." },
                    },
                },
            },
            "anyOf": [{ "properties": { "params": {
                "description": "For all.", "allOf": [{ "$ref": "#/$defs/SendRequest" }],
            } } }],
        });
        let pages = pages("v2/schema", &schema);
        let named = |name: &str| pages.iter().find(|page| page.name == name);
        let method = named("v2/schema#it-send").unwrap();
        assert!(method.has("It **MUST** be sent.") && method.has("For all."));
        let definition = named("v2/schema#sendrequest").unwrap();
        assert!(definition.has("What is sent.") && definition.has("A text."));
        assert!(!definition.has("It MUST be sent.") && !definition.has("Said everywhere."));
        assert!(named("v2/schema#_meta").is_some_and(|page| page.has("Said everywhere.")));
        assert_eq!(pages.len(), 3);
    }
}
