//! Extensions declared in Rust. Each becomes an overlay.

use acp_schema::{Document, Side};
use serde_json::{Value, json};

use crate::Error;
use crate::lower::{branches, escape, tag};

/// The file name in errors for overlays of a build script.
const SOURCE: &str = "build script";

/// One extension.
#[derive(Clone, Debug)]
pub(super) enum Extension {
    Definition {
        name: String,
        schema: Value,
    },
    Request {
        side: Side,
        method: String,
        name: String,
        params: Value,
        result: Value,
    },
    Notification {
        side: Side,
        method: String,
        name: String,
        params: Value,
    },
    Member {
        union: String,
        tag: String,
        payload: String,
    },
    Meta {
        definition: String,
        key: String,
        payload: String,
    },
}

impl Extension {
    /// Adds the extension to a document.
    pub(super) fn apply(&self, document: Document) -> Result<Document, Error> {
        let overlay = self.overlay(&document);
        let overlay = overlay.map_err(|error| error.in_file(SOURCE))?;
        Ok(document.overlay(SOURCE, &overlay.to_string())?)
    }

    fn overlay(&self, document: &Document) -> Result<Value, Error> {
        Ok(match self {
            Self::Definition { name, schema } => json!({ "$defs": { name.as_str(): schema } }),
            Self::Request {
                side,
                method,
                name,
                params,
                result,
            } => json!({ "$defs": {
                format!("{name}Request"): marked(params, *side, method),
                format!("{name}Response"): marked(result, *side, method),
            } }),
            Self::Notification {
                side,
                method,
                name,
                params,
            } => json!({ "$defs": {
                format!("{name}Notification"): marked(params, *side, method),
            } }),
            Self::Member {
                union,
                tag,
                payload,
            } => member(document, union, tag, payload)?,
            Self::Meta {
                definition,
                key,
                payload,
            } => meta(document, definition, key, payload)?,
        })
    }
}

/// A schema with the method that it belongs to.
fn marked(schema: &Value, side: Side, method: &str) -> Value {
    let mut schema = schema.clone();
    if let Some(keywords) = schema.as_object_mut() {
        keywords.insert("x-method".into(), method.into());
        keywords.insert("x-side".into(), side.as_str().into());
        keywords.entry("type").or_insert_with(|| "object".into());
    }
    schema
}

/// Another member of a tagged union.
fn member(document: &Document, union: &str, word: &str, payload: &str) -> Result<Value, Error> {
    let at = format!("/$defs/{}", escape(union));
    let schema = document.def(union).unwrap_or(&Value::Null);
    let (Some((keyword, _)), Some(tag)) = (branches(schema), tag(schema)) else {
        return Err(Error::unsupported(
            at,
            format!("no union with a tag, so `{word}` cannot be a member of it"),
            "name a definition whose `oneOf` or `anyOf` has a tag",
        ));
    };
    let branch = json!({
        "type": "object",
        "properties": { tag.as_str(): { "type": "string", "const": word } },
        "required": [tag],
        "allOf": [{ "$ref": format!("#/$defs/{}", escape(payload)) }],
    });
    Ok(json!({ "x-patch": [
        { "op": "add", "path": format!("{at}/{keyword}/-"), "value": branch },
    ] }))
}

/// A type for one member of the free object `_meta`.
fn meta(document: &Document, definition: &str, key: &str, payload: &str) -> Result<Value, Error> {
    let at = format!("/$defs/{}/properties/_meta", escape(definition));
    let Some(free) = document.value().pointer(&at) else {
        return Err(Error::unsupported(
            at,
            format!("there is no `_meta`, so `{key}` cannot be a member of it"),
            "name a definition that has the property `_meta`",
        ));
    };
    let mut operations = Vec::new();
    if free.get("properties").is_none() {
        let path = format!("{at}/properties");
        operations.push(json!({ "op": "add", "path": path, "value": {} }));
    }
    operations.push(json!({
        "op": "add",
        "path": format!("{at}/properties/{}", escape(key)),
        "value": { "$ref": format!("#/$defs/{}", escape(payload)) },
    }));
    Ok(json!({ "x-patch": operations }))
}
