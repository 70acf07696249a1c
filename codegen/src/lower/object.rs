//! Lowers objects: their fields, and a union whose members are in the same object.

use heck::ToSnakeCase as _;
use serde_json::{Map, Value, json};

use super::Lowerer;
use super::plain::{ANY, FREE_OBJECT, map_of, optional, reference};
use super::schema::{branches, docs, escape, is_open, nullable, tag, target};
use crate::Error;
use crate::ir::{Field, Leniency, Place, Presence, Shape, Typed};
use crate::overrides::Hint;

/// Names of the field of an object's further members; the first that is no property.
const ENTRIES: [&str; 2] = ["additionalProperties", "otherProperties"];

/// The fields of an object, in the IR and as plain schemas.
#[derive(Default)]
pub(super) struct Members {
    fields: Vec<Field>,
    plain: Map<String, Value>,
    /// The properties that are not wrapped in an `Option`.
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

impl Members {
    /// Adds the field of the entries with the plain schema `values`.
    fn entries(&mut self, at: &str, values: &Value) -> Result<(), Error> {
        let is_free = |wire: &&str| !self.plain.keys().any(|key| is_one_name(key, wire));
        let Some(wire) = ENTRIES.into_iter().find(is_free) else {
            return Err(Error::unsupported(
                at,
                "the field of the further members has the name of a property",
                format!("rename one of the properties `{}`", ENTRIES.join("`, `")),
            ));
        };
        self.plain.insert(wire.into(), map_of(values));
        self.required.push(wire.into());
        self.fields.push(Field {
            wire: wire.into(),
            docs: Some("The members that the schema does not name.".into()),
            presence: Presence::Empty,
            leniency: Leniency::default(),
            place: Place::Entries,
            typed: Vec::new(),
        });
        Ok(())
    }
}

/// Returns whether two members would be one field in Rust.
fn is_one_name(a: &str, b: &str) -> bool {
    a.to_snake_case() == b.to_snake_case()
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
        if is_open(schema) {
            return Err(Error::unsupported(
                at,
                "a union among the members of an object that may have further members",
                "remove `additionalProperties`, or move the union into a property",
            ));
        }
        let tag = tag(schema);
        let mut members = self.members(name, at, schema, tag.as_deref())?;
        let (field, union, docs) = self.union_names(name, schema);
        self.flattened_union(&union, at, schema, docs.clone())?;
        // The union is optional when its tag is a property too and may be null.
        let own = tag.and_then(|tag| schema.pointer(&format!("/properties/{}", escape(&tag))));
        let is_optional = own.is_some_and(|own| nullable(own).is_some());
        let plain = match is_optional {
            true => optional(reference(&union)),
            false => reference(&union),
        };
        if members.plain.insert(field.clone(), plain).is_some() {
            return Err(Error::unsupported(
                at,
                format!("the union's field `{field}` has the name of a property"),
                "rename the property, or add a `Union` row to the override table",
            ));
        }
        if !is_optional {
            members.required.push(field.clone());
        }
        members.fields.push(Field {
            wire: field,
            docs: Some(docs),
            presence: if is_optional {
                Presence::Optional
            } else {
                Presence::Required
            },
            leniency: own.map_or_else(Leniency::default, leniency),
            place: Place::Union,
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
            // No value is valid, so the member is always absent.
            .filter(|(_, property)| **property != Value::Bool(false))
        {
            let at = format!("{at}/properties/{}", escape(wire));
            let typed = self.typed(&at, property)?;
            let value = match typed.is_empty() {
                true => self.value(&Self::inline_name(name, wire), &at, property)?,
                false => nullable_free(property),
            };
            let presence = presence(required.contains(&wire.as_str()), property, &value);
            // Only these two are wrapped in an `Option`.
            if !matches!(presence, Presence::Optional | Presence::Patch) {
                members.required.push(wire.clone());
            }
            members.plain.insert(wire.clone(), value);
            members.fields.push(Field {
                wire: wire.clone(),
                docs: docs(property),
                presence,
                leniency: leniency(property),
                place: Place::Member,
                typed,
            });
        }
        if let Some(values) = self.entries(name, at, schema)? {
            members.entries(at, &values)?;
        }
        Ok(members)
    }

    /// Returns the plain schema of a map.
    pub(super) fn map(&mut self, name: &str, at: &str, schema: &Value) -> Result<Value, Error> {
        let values = self.entries(name, at, schema)?;
        Ok(map_of(&values.unwrap_or_else(|| reference(ANY))))
    }

    /// Returns the plain schema of the members that an object may have beside its properties, if
    /// the schema provides for them.
    pub(super) fn entries(
        &mut self,
        name: &str,
        at: &str,
        schema: &Value,
    ) -> Result<Option<Value>, Error> {
        if !is_open(schema) {
            return Ok(None);
        }
        let patterns = schema.get("patternProperties").and_then(Value::as_object);
        let mut patterns = patterns.into_iter().flatten();
        let additional = schema.get("additionalProperties");
        // One type for all entries, or any value.
        let (keyword, values) = match (additional, patterns.next(), patterns.next()) {
            (Some(values), None, _) if *values != Value::Bool(false) => {
                ("additionalProperties".to_owned(), values)
            }
            (Some(Value::Bool(false)), Some((pattern, values)), None) => {
                (format!("patternProperties/{}", escape(pattern)), values)
            }
            _ => return Ok(Some(reference(ANY))),
        };
        let at = format!("{at}/{keyword}");
        self.value(&format!("{name}Value"), &at, values).map(Some)
    }

    /// Returns the typed members of an object that has references only, and any further members.
    fn typed(&self, at: &str, property: &Value) -> Result<Vec<Typed>, Error> {
        let open = property.get("additionalProperties") == Some(&Value::Bool(true));
        let members = property.get("properties").and_then(Value::as_object);
        let members: Vec<_> = members.filter(|_| open).into_iter().flatten().collect();
        let mut typed = Vec::new();
        for (key, schema) in members {
            let name = target(schema).and_then(|target| target.strip_prefix("#/$defs/"));
            let Some(name) = name.filter(|name| !self.any.contains(*name)) else {
                // The object becomes a struct with entries.
                return Ok(Vec::new());
            };
            let at = format!("{at}/properties/{}", escape(key));
            self.reference(&at, &format!("#/$defs/{name}"))?;
            typed.push(Typed {
                key: key.clone(),
                docs: docs(schema),
                ty: name.to_owned(),
            });
        }
        Ok(typed)
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
            let tag = tag(schema);
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
        Some(_) => optional(free),
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
