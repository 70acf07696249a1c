//! Lowers unions: tagged, tagged with a default branch, and untagged.

use serde_json::{Map, Value, json};

use super::Lowerer;
use super::plain::reference;
use super::schema::{branches, docs, is_map, nullable, tag, target, text_values};
use crate::Error;
use crate::ir::{Content, Form, Shape, Union, Variant};
use crate::overrides::Hint;

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
                None => branch_name(branch)
                    .map(str::to_owned)
                    .ok_or_else(|| unnamed(&at))?,
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
                self.check_base(at, &base)?;
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
            let content = self.content(&at, branch)?;
            let key = title(branch, content, &variants);
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
    fn content(&self, at: &str, branch: &Value) -> Result<Content, Error> {
        let referred = self.resolved(branch);
        let referred = &*self.simplified(at, &referred)?;
        if text_values(referred).is_some() {
            return Ok(Content::Value(Form::String));
        }
        let named = target(branch).is_some() || referred.get("properties").is_some();
        Ok(match referred.get("type").and_then(Value::as_str) {
            Some("null") => Content::Null,
            Some("object") if named => Content::Object,
            Some("boolean") => Content::Value(Form::Boolean),
            Some("integer" | "number") => Content::Value(Form::Number),
            Some("string") => Content::Value(Form::String),
            Some("array") => Content::Value(Form::Array),
            _ => Content::Value(Form::Any),
        })
    }

    /// Fails unless the members of the base of a branch can stand beside its tag.
    fn check_base(&self, at: &str, base: &Value) -> Result<(), Error> {
        let target = target(base).and_then(|target| target.strip_prefix("#/$defs/"));
        let definition = target.and_then(|name| self.document.def(name));
        let resolved = self.resolved(base);
        let schema = self.simplified(at, &resolved)?;
        let is_object = match schema.get("type").and_then(Value::as_str) {
            Some(kind) => kind == "object" && (definition.is_some() || !is_map(&schema)),
            None => tag(&schema).is_some() || self.is_object_union(at, &schema)?,
        };
        if is_object && nullable(&schema).is_none() {
            return Ok(());
        }
        Err(Error::unsupported(
            at,
            "a branch has a tag beside a type that is not an object",
            "refer to the definition of an object, or put the value into a property",
        ))
    }

    fn is_object_union(&self, at: &str, schema: &Value) -> Result<bool, Error> {
        let Some((_, branches)) = branches(schema) else {
            return Ok(false);
        };
        for branch in branches {
            if self.content(at, branch)? != Content::Object {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

fn tag_schema<'a>(branch: &'a Value, tag: &str) -> Option<&'a Value> {
    branch.get("properties")?.get(tag)
}

/// Returns the name of a branch without a tag: its title or its definition.
fn branch_name(branch: &Value) -> Option<&str> {
    let title = branch.get("title").and_then(Value::as_str);
    title.or_else(|| target(branch)?.strip_prefix("#/$defs/"))
}

fn unnamed(at: &str) -> Error {
    Error::unsupported(
        at,
        "a branch has neither a tag nor a name",
        "give it a `title`, which becomes the name of the variant",
    )
}

/// Returns the name of a branch of an untagged union: its own, or that of its kind of value. Of
/// several with one name, the later ones are numbered.
fn title(branch: &Value, content: Content, before: &[Variant]) -> String {
    let kind = match content {
        Content::Null => "null",
        Content::Value(Form::Boolean) => "boolean",
        Content::Value(Form::Number) => "number",
        Content::Value(Form::String) => "string",
        Content::Value(Form::Array) => "array",
        Content::Value(Form::Any) if branch.get("type").is_none() => "value",
        _ => "object",
    };
    let kind = branch.get("type").and_then(Value::as_str).unwrap_or(kind);
    let name = branch_name(branch).unwrap_or(kind);
    let is_free = |name: &String| before.iter().all(|variant| variant.key != *name);
    let numbered = (2..).map(|number| format!("{name}{number}"));
    let mut names = std::iter::once(name.to_owned()).chain(numbered);
    names.find(is_free).unwrap_or_else(|| name.to_owned())
}

/// Returns the plain schema of a variant: its payload by its name, or its name alone.
fn external(key: &str, payload: Option<Value>) -> Value {
    match payload {
        Some(payload) => json!({ key: payload }),
        None => key.into(),
    }
}

fn finish(tag: Option<String>, variants: Vec<Variant>, plain: Vec<Value>) -> (Shape, Value) {
    (
        Shape::Union(Union { tag, variants }),
        json!({ "oneOf": plain }),
    )
}
