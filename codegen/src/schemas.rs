//! The schemas of the types, for `schemars`: the document's own, as text.
//!
//! A derived schema would know less than the document does, which has the ranges, the
//! patterns and the descriptions. The runtime's macro ties each type to its part.

use std::collections::BTreeMap;

use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use serde_json::{Map, Value};

use crate::ir::Type;

/// Keywords whose value is data or a list of names, not a schema.
const DATA: &[&str] = &["const", "default", "enum", "examples", "required"];

/// Keywords whose value has names of the document's choice for keys.
const NAMED: &[&str] = &[
    "properties",
    "patternProperties",
    "$defs",
    "dependentSchemas",
];

/// The macro call that implements `JsonSchema` for the types of `schemas`.
///
/// Definitions that are no types stand among them, so that references can be followed.
///
/// `external` types have a `JsonSchema` elsewhere, and are referred to by it.
pub(crate) fn items<'a>(
    types: impl Iterator<Item = &'a Type>,
    external: &[&str],
    schemas: BTreeMap<String, Value>,
) -> TokenStream {
    let schemas = schemas.into_iter();
    let schemas: Map<String, Value> = schemas.map(|(name, it)| (name, plain(it))).collect();
    let text = Value::Object(schemas).to_string();
    let names = types.map(|ty| format_ident!("{}", ty.name));
    let external = external.iter().map(|name| format_ident!("{name}"));
    let external = (external.len() > 0).then(|| quote!([#(#external),*]));
    quote!(runtime::json_schemas!(#text #external { #(#names),* });)
}

/// A schema without the keywords that only a generator understands.
pub(crate) fn plain(schema: Value) -> Value {
    match schema {
        Value::Object(members) => {
            let members = members
                .into_iter()
                .filter(|(key, _)| !key.starts_with("x-"));
            let member = |(key, value): (String, Value)| {
                let value = match value {
                    value if DATA.contains(&key.as_str()) => value,
                    Value::Object(named) if NAMED.contains(&key.as_str()) => named
                        .into_iter()
                        .map(|(key, schema)| (key, plain(schema)))
                        .collect(),
                    value => plain(value),
                };
                (key, value)
            };
            members.map(member).collect()
        }
        Value::Array(schemas) => schemas.into_iter().map(plain).collect(),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::plain;

    #[test]
    fn only_keywords_of_the_generator_are_left_out() {
        let schema = json!({
            "x-side": "agent",
            "properties": {
                "x-trace": { "type": "string", "x-deserialize-default-on-error": true },
                "mode": { "const": { "x-mode": 1 } },
            },
            "oneOf": [{ "$ref": "#/$defs/A", "x-method": "a" }],
        });
        let expected = json!({
            "properties": {
                "x-trace": { "type": "string" },
                "mode": { "const": { "x-mode": 1 } },
            },
            "oneOf": [{ "$ref": "#/$defs/A" }],
        });
        assert_eq!(plain(schema), expected);
    }
}
