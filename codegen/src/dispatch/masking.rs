//! What transcripts show of the protocol's messages, as a table.
//!
//! A member is shown only where the schema has one of its name; the table refers to the types of
//! params and results for that. Text is shown where the schema limits it to certain strings, for a
//! mask would make the message invalid, and where the document names the member in `x-transcript`.
//! Values without a schema, and those marked `x-sensitive`, are masked with everything inside.

use std::collections::{BTreeMap, BTreeSet};

use acp_schema::{Document, Kind};
use proc_macro2::TokenStream;
use quote::quote;
use serde_json::Value;
use syn::Ident;

use super::call::Call;
use crate::Error;
use crate::lower::is_any;

/// References that lead into each other are followed so far.
const DEPTH: usize = 8;

/// The table of the definitions that `covers` names.
pub(super) fn items(
    document: &Document,
    calls: &[Call<'_>],
    covers: impl Fn(&str) -> bool,
) -> Result<TokenStream, Error> {
    let named = document.transcript()?;
    let mut members = Members::default();
    for (name, schema) in document.defs() {
        if covers(name) && schema.get("x-docs-ignore").is_none() {
            members.collect(document, schema);
        }
    }
    members.shown.extend(named.show.iter().map(String::as_str));
    let shown: Vec<&str> = members
        .shown
        .difference(&members.sensitive)
        .copied()
        .collect();
    let sensitive = members.sensitive.iter();
    let mut uris: Vec<&str> = named.uris.iter().map(String::as_str).collect();
    uris.sort_unstable();

    let mut methods: BTreeMap<&str, [Payload<'_>; 2]> = BTreeMap::new();
    for call in calls {
        let (params, result) = match &call.method.kind {
            Kind::Request { params, result } => (params, Some(result)),
            Kind::Notification { params } => (params, None),
        };
        let entry = methods.entry(&call.method.name).or_default();
        let types = [Some(&call.params), call.result.as_ref()];
        let definitions = [Some(params), result].into_iter().zip(types);
        for ((definition, ty), payload) in definitions.zip(entry.iter_mut()) {
            payload.types.extend(ty);
            let schema = definition.and_then(|name| document.def(name));
            if let Some(schema) = schema.filter(|schema| is_marked(schema)) {
                payload
                    .only
                    .get_or_insert_default()
                    .extend(only(schema, &shown));
            }
        }
    }
    let methods = methods.iter().map(|(name, payloads)| {
        let [params, result] = payloads.each_ref().map(Payload::tokens);
        quote!(runtime::MethodMasking { method: #name, params: #params, result: #result })
    });
    Ok(quote! {
        #[doc = " Masking rules for transcripts of this protocol."]
        pub static MASKING: runtime::MaskingRules = runtime::MaskingRules {
            shown: &[#(#shown),*],
            uris: &[#(#uris),*],
            sensitive: &[#(#sensitive),*],
            methods: &[#(#methods),*],
        };
    })
}

/// The params or the result of a method; of several forms of it, all.
#[derive(Default)]
struct Payload<'a> {
    types: BTreeSet<&'a Ident>,
    /// The members that are shown if it is marked as sensitive.
    only: Option<Vec<&'a str>>,
}

impl Payload<'_> {
    fn tokens(&self) -> TokenStream {
        let visible = match &self.only {
            None => quote!(runtime::Visible::Members),
            Some(names) => quote!(runtime::Visible::Only(&[#(#names),*])),
        };
        let types = self.types.iter();
        quote!(runtime::PayloadMasking {
            visible: #visible,
            types: &[#(<#types as runtime::Described>::descriptor),*],
        })
    }
}

/// Names of members, over all definitions.
#[derive(Default)]
struct Members<'a> {
    shown: BTreeSet<&'a str>,
    sensitive: BTreeSet<&'a str>,
}

impl<'a> Members<'a> {
    fn collect(&mut self, document: &Document, schema: &'a Value) {
        match schema {
            Value::Object(keywords) => {
                let properties = keywords.get("properties").and_then(Value::as_object);
                for (name, schema) in properties.into_iter().flatten() {
                    if is_sensitive(document, schema, DEPTH) {
                        self.sensitive.insert(name);
                    }
                    if is_narrow(document, schema, DEPTH) {
                        self.shown.insert(name);
                    }
                }
                let schemas = keywords.values();
                schemas.for_each(|schema| self.collect(document, schema));
            }
            Value::Array(items) => items.iter().for_each(|item| self.collect(document, item)),
            _ => {}
        }
    }
}

fn is_marked(schema: &Value) -> bool {
    schema.get("x-sensitive").is_some_and(|mark| mark == true)
}

/// Whether a value may hold anything, or is marked.
fn is_sensitive(document: &Document, schema: &Value, depth: usize) -> bool {
    if is_marked(schema) || is_any(schema) {
        return true;
    }
    let kind = schema.get("type");
    let is_object = kind.is_some_and(|kind| {
        kind == "object"
            || kind
                .as_array()
                .is_some_and(|kinds| kinds.contains(&"object".into()))
    });
    if is_object {
        let keys = ["properties", "allOf", "anyOf", "oneOf"];
        return !keys.iter().any(|key| schema.get(*key).is_some())
            && schema.get("additionalProperties").is_none_or(is_any);
    }
    depth > 0 && parts(document, schema).any(|part| is_sensitive(document, part, depth - 1))
}

/// Whether the schema allows only some strings here.
fn is_narrow(document: &Document, schema: &Value, depth: usize) -> bool {
    if depth == 0 || schema.get("properties").is_some() || is_object(schema) {
        return false;
    }
    let values = schema.get("enum").and_then(Value::as_array);
    values.is_some_and(|values| values.iter().any(Value::is_string))
        || schema.get("const").is_some_and(Value::is_string)
        || schema
            .get("items")
            .is_some_and(|items| is_narrow(document, items, depth - 1))
        || parts(document, schema).any(|part| is_narrow(document, part, depth - 1))
}

fn is_object(schema: &Value) -> bool {
    schema.get("type").is_some_and(|kind| kind == "object")
}

/// The schemas that this one is made of, at the same place of a message.
fn parts<'a>(document: &'a Document, schema: &'a Value) -> impl Iterator<Item = &'a Value> {
    let target = schema.get("$ref").and_then(Value::as_str);
    let target = target
        .and_then(|target| target.strip_prefix("#/$defs/"))
        .and_then(|name| document.def(name));
    let branches = ["anyOf", "oneOf", "allOf"]
        .into_iter()
        .filter_map(|keyword| schema.get(keyword)?.as_array())
        .flatten();
    target.into_iter().chain(branches)
}

/// The members of a marked definition that are shown all the same.
fn only<'a>(schema: &Value, shown: &[&'a str]) -> Vec<&'a str> {
    let mut names = BTreeSet::new();
    let branches = ["anyOf", "oneOf", "allOf"]
        .into_iter()
        .filter_map(|keyword| schema.get(keyword)?.as_array())
        .flatten();
    for part in std::iter::once(schema).chain(branches) {
        let properties = part.get("properties").and_then(Value::as_object);
        names.extend(
            properties
                .into_iter()
                .flatten()
                .map(|(name, _)| name.as_str()),
        );
    }
    shown
        .iter()
        .copied()
        .filter(|name| names.contains(name))
        .collect()
}
