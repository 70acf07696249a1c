//! Lowers the schema of a value inside a type: a field, an item, a payload.

use heck::ToUpperCamelCase as _;
use serde_json::{Value, json};

use super::Lowerer;
use super::plain::{ANY, FREE_OBJECT, map_of, optional, reference};
use super::schema::{
    branches, escape, integer_format, is_ignored, is_map, nullable, target, text_values, wrapped,
};
use super::simplify::has_form;
use crate::Error;

impl Lowerer<'_> {
    /// Lowers the schema of a value; an inline type in it is called `name`.
    pub(super) fn value(&mut self, name: &str, at: &str, schema: &Value) -> Result<Value, Error> {
        let simplified = self.simplified(at, schema)?;
        let original = schema;
        let schema = &*simplified;
        if !has_form(schema) {
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
            return Ok(optional(plain));
        }
        if branches(schema).is_some() || text_values(schema).is_some() {
            return self.inline(name, at, original);
        }
        match schema.get("type").and_then(Value::as_str) {
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
            Some("object") if schema.get("properties").is_some() => self.inline(name, at, original),
            Some("object") if is_map(schema) => match self.entries(name, at, schema)? {
                Some(values) if values != reference(ANY) => Ok(map_of(&values)),
                _ => Ok(reference(FREE_OBJECT)),
            },
            Some("object") => Ok(reference(FREE_OBJECT)),
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
        if is_ignored(self.document.def(name)) {
            return Err(Error::unsupported(
                at,
                format!("`$ref` to `{name}`, which has no type because of `x-docs-ignore`"),
                "remove the keyword there, or refer to another definition",
            ));
        }
        Ok(reference(if self.any.contains(name) { ANY } else { name }))
    }
}
