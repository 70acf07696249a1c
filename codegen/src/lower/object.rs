//! Lowers objects: their fields, and a union whose members are in the same object.

use serde_json::{Map, Value, json};

use super::value::{nullable, reference, target};
use super::{FREE_OBJECT, Lowerer, branches, docs};
use crate::Error;
use crate::ir::{Field, Leniency, Presence, Shape, Typed};
use crate::overrides::Hint;

/// The fields of an object, in the IR and for typify.
#[derive(Default)]
pub(super) struct Members {
    fields: Vec<Field>,
    plain: Map<String, Value>,
    /// The properties that typify must not wrap in an `Option`.
    required: Vec<String>,
}

impl Members {
    pub(super) fn finish(self) -> (Shape, Value) {
        let Self {
            fields,
            plain,
            required,
        } = self;
        let plain = json!({ "type": "object", "properties": plain, "required": required });
        (Shape::Struct(fields), plain)
    }
}

impl Lowerer<'_> {
    pub(super) fn object(
        &mut self,
        name: &str,
        at: &str,
        schema: &Value,
    ) -> Result<(Shape, Value), Error> {
        if branches(schema).is_none() {
            return Ok(self.members(name, at, schema, None)?.finish());
        }
        let tag = super::union::tag(schema);
        let mut members = self.members(name, at, schema, tag.as_deref())?;
        let (field, union, docs) = self.union_names(name, schema);
        self.flattened_union(&union, at, schema, docs.clone())?;
        // The union is optional when its tag is a property too and may be null.
        let own =
            tag.and_then(|tag| schema.pointer(&format!("/properties/{}", super::escape(&tag))));
        let optional = own.is_some_and(|own| nullable(own).is_some());
        let plain = match optional {
            true => json!({ "anyOf": [reference(&union), { "type": "null" }] }),
            false => reference(&union),
        };
        if members.plain.insert(field.clone(), plain).is_some() {
            return Err(Error::unsupported(
                at,
                format!("the union's field `{field}` has the name of a property"),
                "rename the property, or add a `Union` row to the override table",
            ));
        }
        if !optional {
            members.required.push(field.clone());
        }
        members.fields.push(Field {
            wire: field,
            docs: Some(docs),
            presence: if optional {
                Presence::Optional
            } else {
                Presence::Required
            },
            leniency: own.map_or_else(Leniency::default, leniency),
            flattened: true,
            typed: Vec::new(),
        });
        Ok(members.finish())
    }

    /// Returns the fields of an object except the tag.
    pub(super) fn members(
        &mut self,
        name: &str,
        at: &str,
        schema: &Value,
        tag: Option<&str>,
    ) -> Result<Members, Error> {
        let mut members = Members::default();
        let required: Vec<&str> = schema
            .get("required")
            .and_then(Value::as_array)
            .map_or_else(Vec::new, |names| {
                names.iter().filter_map(Value::as_str).collect()
            });
        let none = Map::new();
        let properties = schema
            .get("properties")
            .and_then(Value::as_object)
            .unwrap_or(&none);
        for (wire, property) in properties
            .iter()
            .filter(|(wire, _)| Some(wire.as_str()) != tag)
        {
            let at = format!("{at}/properties/{}", super::escape(wire));
            let typed = self.typed(&at, property)?;
            let value = match typed.is_empty() {
                true => self.value(&Self::inline_name(name, wire), &at, property)?,
                false => nullable_free(property),
            };
            let presence = presence(required.contains(&wire.as_str()), property, &value);
            // typify wraps properties that are not required in an `Option`. Only these two need
            // one.
            if !matches!(presence, Presence::Optional | Presence::Patch) {
                members.required.push(wire.clone());
            }
            members.plain.insert(wire.clone(), value);
            members.fields.push(Field {
                wire: wire.clone(),
                docs: docs(property),
                presence,
                leniency: leniency(property),
                flattened: false,
                typed,
            });
        }
        Ok(members)
    }

    /// Returns the typed members of an object with `additionalProperties`.
    fn typed(&self, at: &str, property: &Value) -> Result<Vec<Typed>, Error> {
        let open = property.get("additionalProperties") == Some(&Value::Bool(true));
        let members = property.get("properties").and_then(Value::as_object);
        let members = members.filter(|_| open).into_iter().flatten();
        let typed = |(key, schema): (&String, &Value)| {
            let at = format!("{at}/properties/{}", super::escape(key));
            let name = target(schema).and_then(|target| target.strip_prefix("#/$defs/"));
            let name = name.filter(|name| !self.any.contains(*name));
            let Some(name) = name else {
                return Err(Error::unsupported(
                    at,
                    "a member of an open object has a type without a name",
                    "define the type and refer to it as `#/$defs/Name`",
                ));
            };
            self.reference(&at, &format!("#/$defs/{name}"))?;
            Ok(Typed {
                key: key.clone(),
                docs: docs(schema),
                ty: name.to_owned(),
            })
        };
        members.map(typed).collect()
    }

    /// Returns field, type and description of a union whose members are in an object.
    fn union_names(&self, name: &str, schema: &Value) -> (String, String, String) {
        let named = self.overrides.find(name, |hint| match hint {
            Hint::Union { field, name, docs } => {
                Some((field.to_owned(), name.to_owned(), docs.to_owned()))
            }
            _ => None,
        });
        named.unwrap_or_else(|| {
            let tag = super::union::tag(schema);
            let docs = match &tag {
                Some(tag) => format!("The members of `{name}` that depend on `{tag}`."),
                None => format!("The members of `{name}` that come in one of several forms."),
            };
            let field = tag.unwrap_or_else(|| "variant".into());
            let union = Self::inline_name(name, &field);
            (field, union, docs)
        })
    }
}

/// Returns the schema of an object with arbitrary members, nullable if the property is.
fn nullable_free(property: &Value) -> Value {
    let free = reference(FREE_OBJECT);
    match nullable(property) {
        Some(_) => json!({ "anyOf": [free, { "type": "null" }] }),
        None => free,
    }
}

fn presence(required: bool, property: &Value, plain: &Value) -> Presence {
    let tri_state = property.get("x-tri-state").is_some_and(|flag| flag == true);
    let list = matches!(
        plain.get("type").and_then(Value::as_str),
        Some("array" | "object")
    );
    match property.get("default") {
        _ if required => Presence::Required,
        _ if tri_state => Presence::Patch,
        Some(default) if !default.is_null() && nullable(property).is_none() => {
            Presence::Default(default.clone())
        }
        _ if list => Presence::Empty,
        _ => Presence::Optional,
    }
}

fn leniency(property: &Value) -> Leniency {
    let has = |marker: &str| property.get(marker).is_some_and(|flag| flag == true);
    Leniency {
        on_error: has("x-deserialize-default-on-error"),
        on_null: has("x-deserialize-default-on-null"),
        skip_items: has("x-deserialize-skip-invalid-items"),
    }
}
