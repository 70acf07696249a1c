//! Lowers unions: tagged, tagged with a default branch, and untagged.

use heck::ToUpperCamelCase as _;
use serde_json::{Map, Value, json};

use super::value::{reference, target};
use super::{Lowerer, branches, docs, text_values};
use crate::Error;
use crate::ir::{Content, Form, Shape, Union, Variant};
use crate::overrides::Hint;

/// Name of a variant that is added for typify and removed later. With it, typify generates an
/// enum for a union of one branch too.
const FILLER: &str = "typify-filler";

impl Lowerer<'_> {
    pub(super) fn union(
        &mut self,
        name: &str,
        at: &str,
        schema: &Value,
    ) -> Result<(Shape, Value), Error> {
        match tag(schema) {
            Some(tag) => self.tagged(name, at, schema, tag),
            None => self.untagged(name, at, schema),
        }
    }

    /// Lowers the union that is part of an object; `docs` is its description.
    pub(super) fn flattened_union(
        &mut self,
        name: &str,
        at: &str,
        schema: &Value,
        docs: String,
    ) -> Result<(), Error> {
        let mut union = Map::new();
        union.insert("description".into(), docs.into());
        for key in ["oneOf", "anyOf", "discriminator"] {
            if let Some(value) = schema.get(key) {
                union.insert(key.into(), value.clone());
            }
        }
        let union = Value::Object(union);
        let slot = self.types.len();
        let (shape, plain) = self.union(name, at, &union)?;
        if !shape.is_object() {
            return Err(Error::unsupported(
                at,
                "a union among an object's members has a branch that is not an object",
                "make every branch an object, or move the union into a property",
            ));
        }
        self.add(slot, name, at, &union, shape, plain)
    }

    fn tagged(
        &mut self,
        name: &str,
        at: &str,
        schema: &Value,
        tag: String,
    ) -> Result<(Shape, Value), Error> {
        let (keyword, branches) = branches(schema).unwrap_or(("oneOf", const { &Vec::new() }));
        let mut variants = Vec::new();
        let mut plain = Vec::new();
        for (index, branch) in branches.iter().enumerate() {
            let at = format!("{at}/{keyword}/{index}");
            let value = tag_schema(branch, &tag);
            if value.is_some_and(|value| value.get("const").is_none()) {
                // The catch-all branch, which becomes `Unknown`, or the absence of the tag: the
                // whole union is optional then.
                continue;
            }
            let key = match value.and_then(|value| value.get("const")?.as_str()) {
                Some(key) => key.to_owned(),
                None => title(branch, &at)?,
            };
            let payload = self.payload(name, &key, &at, branch, &tag)?;
            let content = match (&payload, value) {
                (None, _) => Content::Unit,
                (Some(_), Some(_)) => Content::Payload,
                (Some(_), None) => Content::Default {
                    takes_unknown: self.overrides.has(name, Hint::DefaultTakesUnknown),
                },
            };
            plain.push(external(&key, payload));
            variants.push(Variant {
                key,
                docs: docs(branch),
                content,
            });
        }
        Ok(finish(Some(tag), variants, plain))
    }

    /// Returns the schema of the members of a branch besides its tag.
    fn payload(
        &mut self,
        union: &str,
        key: &str,
        at: &str,
        branch: &Value,
        tag: &str,
    ) -> Result<Option<Value>, Error> {
        let properties = branch.get("properties").and_then(Value::as_object);
        let own = properties.is_some_and(|fields| fields.keys().any(|field| field != tag));
        let base = branch.get("allOf").or_else(|| branch.get("$ref"));
        match (base, own) {
            (None, false) => Ok(None),
            (None, true) => {
                let name = Self::inline_name(union, key);
                let slot = self.types.len();
                let (shape, plain) = self.members(&name, at, branch, Some(tag))?.finish();
                self.add(slot, &name, at, branch, shape, plain)?;
                Ok(Some(reference(&name)))
            }
            (Some(_), false) => {
                // A branch without properties of its own is the type that it refers to.
                let mut base = branch.clone();
                if let Some(members) = base.as_object_mut() {
                    members.retain(|keyword, _| matches!(keyword.as_str(), "allOf" | "$ref"));
                }
                self.value(&Self::inline_name(union, key), at, &base)
                    .map(Some)
            }
            (Some(_), true) => Err(Error::unsupported(
                at,
                "a branch both refers to a type and adds properties",
                "move the properties into the type",
            )),
        }
    }

    fn untagged(&mut self, name: &str, at: &str, schema: &Value) -> Result<(Shape, Value), Error> {
        let (keyword, branches) = branches(schema).unwrap_or(("anyOf", const { &Vec::new() }));
        let mut variants = Vec::new();
        let mut plain = Vec::new();
        for (index, branch) in branches.iter().enumerate() {
            let at = format!("{at}/{keyword}/{index}");
            let key = title(branch, &at)?;
            let content = self.content(branch);
            let payload = match content {
                Content::Null => None,
                _ => Some(self.value(&Self::inline_name(name, &key), &at, branch)?),
            };
            plain.push(external(&key, payload));
            variants.push(Variant {
                key,
                docs: docs(branch),
                content,
            });
        }
        Ok(finish(None, variants, plain))
    }

    /// Returns the kind of value that a branch of an untagged union accepts.
    fn content(&self, branch: &Value) -> Content {
        let referred = target(branch)
            .and_then(|target| self.document.def(target.strip_prefix("#/$defs/")?))
            .unwrap_or(branch);
        if text_values(referred).is_some() {
            return Content::Value(Form::String);
        }
        match referred.get("type").and_then(Value::as_str) {
            Some("null") => Content::Null,
            Some("object") if target(branch).is_some() || branch.get("properties").is_some() => {
                Content::Object
            }
            Some("boolean") => Content::Value(Form::Boolean),
            Some("integer" | "number") => Content::Value(Form::Number),
            Some("string") => Content::Value(Form::String),
            Some("array") => Content::Value(Form::Array),
            _ => Content::Value(Form::Any),
        }
    }
}

/// Returns the name of the tag: the member whose constant identifies a branch.
pub(crate) fn tag(schema: &Value) -> Option<String> {
    if let Some(name) = schema.pointer("/discriminator/propertyName") {
        return Some(name.as_str()?.to_owned());
    }
    let (_, branches) = branches(schema)?;
    branches.iter().find_map(|branch| {
        let properties = branch.get("properties")?.as_object()?;
        let is_tag =
            |(_, value): &(&String, &Value)| value.get("const").is_some_and(Value::is_string);
        properties.iter().find(is_tag).map(|(name, _)| name.clone())
    })
}

fn tag_schema<'a>(branch: &'a Value, tag: &str) -> Option<&'a Value> {
    branch.get("properties")?.get(tag)
}

/// Returns the name of a branch without a tag.
fn title(branch: &Value, at: &str) -> Result<String, Error> {
    let title = branch.get("title").and_then(Value::as_str);
    let title = title.or_else(|| target(branch)?.strip_prefix("#/$defs/"));
    title.map(|title| title.to_upper_camel_case()).map_or_else(
        || {
            Err(Error::unsupported(
                at,
                "a branch has neither a tag nor a name",
                "give it a `title`, which becomes the name of the variant",
            ))
        },
        |_| Ok(title.unwrap_or_default().to_owned()),
    )
}

/// Returns a branch in externally tagged form, from which typify generates a variant.
fn external(key: &str, payload: Option<Value>) -> Value {
    match payload {
        Some(payload) => json!({
            "type": "object",
            "properties": { key: payload },
            "required": [key],
            "additionalProperties": false,
        }),
        None => json!({ "type": "string", "enum": [key] }),
    }
}

fn finish(tag: Option<String>, variants: Vec<Variant>, mut plain: Vec<Value>) -> (Shape, Value) {
    plain.push(json!({ "type": "string", "enum": [FILLER] }));
    (
        Shape::Union(Union { tag, variants }),
        json!({ "oneOf": plain }),
    )
}
