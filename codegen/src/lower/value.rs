//! Lowers the schema of a value inside a type: a field, an item, a payload.

use heck::ToUpperCamelCase as _;
use serde_json::{Value, json};

use super::{ANY, FREE_OBJECT, Lowerer, branches, escape, is_any};
use crate::Error;

impl Lowerer<'_> {
    /// Lowers the schema of a value; an inline type in it is called `name`.
    pub(super) fn value(&mut self, name: &str, at: &str, schema: &Value) -> Result<Value, Error> {
        if is_any(schema) {
            return Ok(reference(ANY));
        }
        if let Some(target) = target(schema) {
            return self.reference(at, target);
        }
        if let Some(inner) = wrapped(schema) {
            return self.value(name, at, inner);
        }
        if let Some(inner) = nullable(schema) {
            let plain = self.value(name, at, &inner)?;
            return Ok(json!({ "anyOf": [plain, { "type": "null" }] }));
        }
        if branches(schema).is_some() || schema.get("enum").is_some() {
            return self.inline(name, at, schema);
        }
        match schema.get("type").and_then(Value::as_str) {
            Some("string") if schema.get("const").is_some() => self.inline(name, at, schema),
            Some("string") => Ok(json!({ "type": "string" })),
            Some("integer") => Ok(json!({ "type": "integer", "format": integer_format(schema) })),
            Some("number") => Ok(json!({ "type": "number", "format": "double" })),
            Some("boolean") => Ok(json!({ "type": "boolean" })),
            Some("null") => Ok(json!({ "type": "null" })),
            Some("array") => {
                let items = schema.get("items").unwrap_or(&Value::Bool(true));
                let items = self.value(&format!("{name}Item"), &format!("{at}/items"), items)?;
                Ok(json!({ "type": "array", "items": items }))
            }
            Some("object") if schema.get("properties").is_some() => self.inline(name, at, schema),
            Some("object") => match schema.get("additionalProperties") {
                Some(values) if !is_any(values) => {
                    let at = format!("{at}/additionalProperties");
                    let values = self.value(&format!("{name}Value"), &at, values)?;
                    Ok(json!({ "type": "object", "additionalProperties": values }))
                }
                _ => Ok(reference(FREE_OBJECT)),
            },
            _ => Err(Error::unsupported(
                at,
                "a schema of this form has no Rust type",
                "use a `$ref`, one `type`, `oneOf` with a tag, or `anyOf` with titles",
            )),
        }
    }

    /// Returns the name of the inline type of the field `field` of `parent`.
    pub(super) fn inline_name(parent: &str, field: &str) -> String {
        format!("{parent}{}", field.to_upper_camel_case())
    }

    fn inline(&mut self, name: &str, at: &str, schema: &Value) -> Result<Value, Error> {
        self.definition(name, at, schema)?;
        Ok(reference(name))
    }

    pub(super) fn reference(&self, at: &str, target: &str) -> Result<Value, Error> {
        let Some(name) = target.strip_prefix("#/$defs/") else {
            return Err(Error::unsupported(
                at,
                format!("`$ref` to `{target}`"),
                "refer to a definition as `#/$defs/Name`",
            ));
        };
        if self.document.def(name).is_none() {
            return Err(Error::unsupported(
                at,
                format!("`$ref` to `{name}`, which is not defined"),
                format!("define `/$defs/{}` or correct the name", escape(name)),
            ));
        }
        Ok(reference(if self.any.contains(name) { ANY } else { name }))
    }
}

/// Returns a reference in the plain schema.
pub(super) fn reference(name: &str) -> Value {
    json!({ "$ref": format!("#/definitions/{name}") })
}

/// Returns the target of a `$ref`, alone or as the only item of an `allOf`.
pub(crate) fn target(schema: &Value) -> Option<&str> {
    schema
        .get("$ref")
        .or_else(|| wrapped(schema)?.get("$ref"))?
        .as_str()
}

/// Returns the only item of an `allOf`.
fn wrapped(schema: &Value) -> Option<&Value> {
    match schema.get("allOf")?.as_array()?.as_slice() {
        [only] if schema.get("properties").is_none() => Some(only),
        _ => None,
    }
}

/// Returns the schema without `null`, if it accepts `null` and other values.
pub(crate) fn nullable(schema: &Value) -> Option<Value> {
    let mut inner = schema.clone();
    if let Some(types) = schema.get("type").and_then(Value::as_array) {
        let rest: Vec<&Value> = types.iter().filter(|kind| *kind != "null").collect();
        return match rest.as_slice() {
            [only] if types.len() == 2 => {
                inner["type"] = (*only).clone();
                Some(inner)
            }
            _ => None,
        };
    }
    let (key, branches) = branches(schema)?;
    let is_null = |branch: &Value| branch.get("type").is_some_and(|kind| kind == "null");
    // A branch with a title is a variant of the union. Without a title, `null` makes it optional.
    if !branches
        .iter()
        .any(|branch| is_null(branch) && branch.get("title").is_none())
    {
        return None;
    }
    let rest: Vec<Value> = branches
        .iter()
        .filter(|branch| !is_null(branch))
        .cloned()
        .collect();
    match rest.as_slice() {
        [only] => Some(only.clone()),
        _ => {
            inner[key] = Value::Array(rest);
            Some(inner)
        }
    }
}

/// Returns the format that states the width of an integer.
pub(crate) fn integer_format(schema: &Value) -> &str {
    let unsigned = schema
        .get("minimum")
        .and_then(Value::as_i64)
        .is_some_and(|least| least >= 0);
    match schema.get("format").and_then(Value::as_str) {
        Some(format) => format,
        None if unsigned => "uint64",
        None => "int64",
    }
}

/// Returns the smallest and largest number of an integer format; `None` for other formats.
#[cfg(feature = "tools")]
pub(crate) fn integer_range(format: &str) -> Option<(i128, i128)> {
    Some(match format {
        "int8" => (i8::MIN.into(), i8::MAX.into()),
        "int16" => (i16::MIN.into(), i16::MAX.into()),
        "int32" => (i32::MIN.into(), i32::MAX.into()),
        "int64" => (i64::MIN.into(), i64::MAX.into()),
        "uint8" => (0, u8::MAX.into()),
        "uint16" => (0, u16::MAX.into()),
        "uint32" => (0, u32::MAX.into()),
        "uint64" => (0, u64::MAX.into()),
        _ => return None,
    })
}
