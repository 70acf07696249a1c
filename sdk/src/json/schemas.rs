//! `JsonSchema` for generated types, from the schemas of the document.
//!
//! Generated code contains the schemas as text and names the types. A reference to a type becomes
//! a reference of the schema generator; any other definition is inlined.

use std::borrow::Cow;

pub use schemars;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::{Map, Value, json};

use super::{Json, Meta, Patch};

/// Returns the schema generator's reference to the type of a definition.
pub type References = fn(&str, &mut SchemaGenerator) -> Option<Schema>;

/// The schemas of a document by the name of their definition.
#[derive(Debug)]
pub struct Schemas {
    definitions: Map<String, Value>,
    types: References,
}

impl Schemas {
    /// Parses the schemas from generated text.
    #[must_use]
    pub fn new(text: &str, types: References) -> Self {
        Self {
            definitions: serde_json::from_str(text).unwrap_or_default(),
            types,
        }
    }

    /// Returns the schema of a definition; without one, a schema that accepts anything.
    #[must_use]
    pub fn get(&self, definition: &str, generator: &mut SchemaGenerator) -> Schema {
        let mut schema = self.definition(definition);
        self.resolve(&mut schema, generator);
        schema.try_into().unwrap_or_default()
    }

    fn definition(&self, name: &str) -> Value {
        let schema = self.definitions.get(name);
        schema.cloned().unwrap_or(Value::Bool(true))
    }

    /// Replaces the document's references by the schema generator's.
    fn resolve(&self, value: &mut Value, generator: &mut SchemaGenerator) {
        match value {
            Value::Object(schema) => {
                schema
                    .values_mut()
                    .for_each(|value| self.resolve(value, generator));
                let target = schema.get("$ref").and_then(Value::as_str);
                let name = target.and_then(|target| target.strip_prefix("#/$defs/"));
                if let Some(name) = name.map(str::to_owned) {
                    schema.remove("$ref");
                    merge(schema, self.referred(&name, generator));
                }
            }
            Value::Array(schemas) => {
                schemas
                    .iter_mut()
                    .for_each(|schema| self.resolve(schema, generator));
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }

    fn referred(&self, name: &str, generator: &mut SchemaGenerator) -> Value {
        match (self.types)(name, generator) {
            Some(schema) => schema.into(),
            // Definitions without a type accept any value and contain no references.
            None => self.definition(name),
        }
    }
}

/// Merges the target of a reference into the schema that contained it.
fn merge(schema: &mut Map<String, Value>, referred: Value) {
    match referred {
        Value::Object(mut members) if members.keys().all(|key| key == "$ref") => {
            schema.append(&mut members);
        }
        Value::Bool(true) => {}
        other => {
            let all = schema.entry("allOf").or_insert_with(|| json!([]));
            if let Value::Array(all) = all {
                all.push(other);
            }
        }
    }
}

/// Implements `JsonSchema` for the types of a module from the text of their schemas.
#[doc(hidden)]
#[macro_export]
macro_rules! __acp_json_schemas {
    ($text:literal $([$($external:ident),*])? { $($name:ident),* $(,)? }) => {
        static SCHEMAS: ::std::sync::LazyLock<$crate::runtime::Schemas> =
            ::std::sync::LazyLock::new(|| {
                $crate::runtime::Schemas::new($text, |name, generator| match name {
                    $(stringify!($name) => Some(generator.subschema_for::<$name>()),)*
                    $($(stringify!($external) => Some(generator.subschema_for::<$external>()),)*)?
                    _ => None,
                })
            });

        $(
            impl $crate::runtime::schemars::JsonSchema for $name {
                fn schema_name() -> ::std::borrow::Cow<'static, str> {
                    stringify!($name).into()
                }

                fn schema_id() -> ::std::borrow::Cow<'static, str> {
                    concat!(module_path!(), "::", stringify!($name)).into()
                }

                fn json_schema(
                    generator: &mut $crate::runtime::schemars::SchemaGenerator,
                ) -> $crate::runtime::schemars::Schema {
                    SCHEMAS.get(stringify!($name), generator)
                }
            }
        )*
    };
}

impl JsonSchema for Json {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Json".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        true.into()
    }
}

impl JsonSchema for Meta {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Meta".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        schemars::json_schema!({ "type": "object" })
    }
}

/// A value or `null`. The schema of the object says whether it may be absent.
impl<T: JsonSchema> JsonSchema for Patch<T> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        Option::<T>::schema_name()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        Option::<T>::json_schema(generator)
    }
}
