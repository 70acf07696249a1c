//! Rust types of the plain schemas, by typify; the only file that knows it.
//!
//! typify makes names of Rust from the names in a schema, where it may lose a type or make two
//! one. So it gets names that it does not change: `T0`, `m0`, `V0`. Of its source, the types of
//! fields and payloads are kept; its serde impls and conversions are dropped.

use std::collections::BTreeMap;

use schemars08::schema::Schema;
use serde_json::{Map, Value, json};
use syn::visit_mut::{self, VisitMut};
use syn::{Ident, Item, Type};
use typify::{TypeSpace, TypeSpaceSettings};

use crate::Error;
use crate::lower::{ANY, FREE_OBJECT};

/// The types of one definition, by the names on the wire, in their order.
pub(crate) enum Definition<'a> {
    Struct(Vec<(&'a str, Type)>),
    Newtype(Box<Type>),
    /// A unit variant has no type.
    Enum(Vec<(&'a str, Option<Type>)>),
}

/// Name of the type of `null`.
const NULL: &str = "Null";
/// Name of a variant that is added and not read. With it, typify makes an enum of a union of
/// one variant too.
const FILLER: &str = "Filler";

/// Returns the Rust types of plain schemas, by the name of the definition.
///
/// # Errors
/// When a plain schema has another form than the lowering pass gives, or typify refuses one.
pub(crate) fn types(plain: &Map<String, Value>) -> Result<Vec<(&str, Definition<'_>)>, Error> {
    let mut neutral = Neutral {
        numbers: plain.keys().map(String::as_str).zip(0..).collect(),
        inner: Vec::new(),
    };
    let mut settings = TypeSpaceSettings::default();
    settings.with_map_type("Map");
    let mut definitions = Vec::with_capacity(plain.len() + 3);
    for (number, schema) in plain.values().enumerate() {
        definitions.push((format!("T{number}"), read(neutral.definition(schema)?)?));
    }
    for (number, schema) in neutral.inner.into_iter().enumerate() {
        definitions.push((format!("L{number}"), read(schema)?));
    }
    for name in [ANY, FREE_OBJECT, NULL] {
        settings.with_replacement(name, name, std::iter::empty());
        definitions.push((name.to_owned(), Schema::Bool(true)));
    }
    let mut space = TypeSpace::new(&settings);
    space
        .add_ref_types(definitions)
        .map_err(|error| refused(&error))?;
    let file: syn::File = syn::parse2(space.to_stream())?;
    let mut found: BTreeMap<String, Slots> = file.items.into_iter().filter_map(slots).collect();
    let idents = plain.keys().map(|name| syn::parse_str(name));
    let mut tidy = Tidy {
        idents: idents.collect::<Result<_, _>>()?,
        inner: BTreeMap::new(),
    };
    for (name, slots) in &mut found {
        if name.starts_with('L')
            && let Some(Some(ty)) = slots.remove("m0")
        {
            tidy.inner.insert(name.clone(), ty);
        }
    }
    let definitions = plain.iter().enumerate().map(|(number, (name, schema))| {
        let slots = found.remove(&format!("T{number}")).unwrap_or_default();
        let definition = tidy.definition(schema, slots);
        let missing = || Error::Passes(format!("typify left a type of `{name}` out"));
        Ok((name.as_str(), definition.ok_or_else(missing)?))
    });
    definitions.collect()
}

fn read(schema: Value) -> Result<Schema, Error> {
    serde_json::from_value(schema).map_err(|error| refused(&error))
}

fn refused(error: &dyn std::fmt::Display) -> Error {
    Error::Passes(format!("typify refused a plain schema: {error}"))
}

/// What a plain schema consists of.
enum Parts<'a> {
    Members(&'a Map<String, Value>),
    /// Names, and the schemas of the payloads.
    Variants(Vec<(&'a str, Option<&'a Value>)>),
    Value,
}

fn parts(schema: &Value) -> Parts<'_> {
    if let Some(members) = schema.get("properties").and_then(Value::as_object) {
        return Parts::Members(members);
    }
    let variants = schema.get("oneOf").or_else(|| schema.get("enum"));
    match variants.and_then(Value::as_array) {
        Some(variants) => Parts::Variants(variants.iter().filter_map(variant).collect()),
        None => Parts::Value,
    }
}

/// The name of a variant, and the schema of its payload.
fn variant(variant: &Value) -> Option<(&str, Option<&Value>)> {
    match variant {
        Value::Object(payload) => {
            let (wire, payload) = payload.iter().next()?;
            Some((wire, Some(payload)))
        }
        other => Some((other.as_str()?, None)),
    }
}

/// Writes plain schemas as JSON Schema of draft 7, with numbers for names.
struct Neutral<'a> {
    /// The numbers of the definitions.
    numbers: BTreeMap<&'a str, usize>,
    /// Definitions `L0` and on, of one member each: the items of lists and maps that are lists,
    /// maps or optional themselves. typify recurses into a schema with much stack.
    inner: Vec<Value>,
}

impl Neutral<'_> {
    fn definition(&mut self, schema: &Value) -> Result<Value, Error> {
        match parts(schema) {
            Parts::Members(members) => {
                let required = schema.get("required").and_then(Value::as_array);
                let members = members.iter().map(|(wire, schema)| {
                    let is_required = required.is_some_and(|names| names.contains(&json!(wire)));
                    let value = self.value(schema)?;
                    // Explicit, because typify leaves `Option` out where a type has a default.
                    Ok(match is_required || schema.get("anyOf").is_some() {
                        true => value,
                        false => optional(&value),
                    })
                });
                members.collect::<Result<_, Error>>().map(object)
            }
            Parts::Variants(variants) => {
                let variants = variants.into_iter().enumerate();
                let variants = variants.map(|(number, (_, payload))| {
                    let name = format!("V{number}");
                    Ok(match payload {
                        Some(payload) => one_member(&name, &self.value(payload)?),
                        None => json!({ "type": "string", "enum": [name] }),
                    })
                });
                let mut variants = variants.collect::<Result<Vec<Value>, Error>>()?;
                variants.push(json!({ "type": "string", "enum": [FILLER] }));
                Ok(json!({ "oneOf": variants }))
            }
            // A struct of one member, because typify follows newtypes of newtypes by recursion.
            Parts::Value => Ok(object(vec![self.value(schema)?])),
        }
    }

    fn value(&mut self, schema: &Value) -> Result<Value, Error> {
        let text = |keyword: &str| schema.get(keyword).and_then(Value::as_str);
        let unknown = || Error::Passes(format!("{schema} has no Rust type"));
        if let Some(target) = text("$ref") {
            let name = target.strip_prefix("#/definitions/").ok_or_else(unknown)?;
            return match self.numbers.get(name) {
                Some(number) => Ok(reference(&format!("T{number}"))),
                None if [ANY, FREE_OBJECT].contains(&name) => Ok(reference(name)),
                None => Err(unknown()),
            };
        }
        if let Some(mut value) = schema.pointer("/anyOf/0") {
            while let Some(inner) = value.pointer("/anyOf/0") {
                value = inner;
            }
            return Ok(optional(&self.value(value)?));
        }
        let mut inner = |keyword: &str| {
            let schema = schema.get(keyword).ok_or_else(unknown)?;
            let value = self.value(schema)?;
            let outer = ["anyOf", "items", "additionalProperties"];
            if !outer.iter().any(|keyword| schema.get(keyword).is_some()) {
                return Ok(value);
            }
            self.inner.push(object(vec![value]));
            Ok::<_, Error>(reference(&format!("L{}", self.inner.len() - 1)))
        };
        Ok(match text("type") {
            Some(kind @ ("string" | "boolean" | "number")) => json!({ "type": kind }),
            Some("null") => reference(NULL),
            Some("integer") => {
                let format = match text("format") {
                    Some(
                        format @ ("int8" | "int16" | "int32" | "uint8" | "uint16" | "uint32"
                        | "uint64"),
                    ) => format,
                    Some("uint") => "uint64",
                    _ => "int64",
                };
                json!({ "type": "integer", "format": format })
            }
            Some("array") => json!({ "type": "array", "items": inner("items")? }),
            Some("object") => {
                let values = inner("additionalProperties")?;
                json!({ "type": "object", "additionalProperties": values })
            }
            _ => return Err(unknown()),
        })
    }
}

fn reference(name: &str) -> Value {
    json!({ "$ref": format!("#/definitions/{name}") })
}

fn optional(value: &Value) -> Value {
    json!({ "anyOf": [value, { "type": "null" }] })
}

/// Returns the schema of an object that must have all of its members.
fn object(members: Vec<Value>) -> Value {
    let members = members.into_iter().enumerate();
    let members: Map<String, Value> = members.map(|(n, value)| (format!("m{n}"), value)).collect();
    let required: Vec<&String> = members.keys().collect();
    json!({ "type": "object", "properties": members, "required": required, "additionalProperties": false })
}

fn one_member(name: &str, value: &Value) -> Value {
    json!({ "type": "object", "properties": { name: value }, "required": [name], "additionalProperties": false })
}

/// Fields or variants of an item, by their names for typify.
type Slots = BTreeMap<String, Option<Type>>;

fn slots(item: Item) -> Option<(String, Slots)> {
    match item {
        Item::Struct(item) => {
            let fields = item.fields.into_iter();
            let slots = fields.filter_map(|field| Some((field.ident?.to_string(), Some(field.ty))));
            Some((item.ident.to_string(), slots.collect()))
        }
        Item::Enum(item) => {
            let slots = item.variants.into_iter().map(|variant| {
                let ty = variant.fields.into_iter().next().map(|field| field.ty);
                (variant.ident.to_string(), ty)
            });
            Some((item.ident.to_string(), slots.collect()))
        }
        _ => None,
    }
}

/// Gives types their names back, and shortens paths to what the generated module has in scope.
struct Tidy {
    /// The names of the definitions.
    idents: Vec<Ident>,
    /// The content of the definitions `L0` and on; each is used once.
    inner: BTreeMap<String, Type>,
}

impl Tidy {
    /// Returns the types of a definition, if all are there.
    fn definition<'a>(&mut self, schema: &'a Value, mut slots: Slots) -> Option<Definition<'a>> {
        let mut field = |number: usize| {
            let mut ty = slots.remove(&format!("m{number}"))??;
            self.visit_type_mut(&mut ty);
            Some(ty)
        };
        Some(match parts(schema) {
            Parts::Members(members) => {
                let fields = members.keys().enumerate();
                let fields = fields.map(|(number, wire)| Some((wire.as_str(), field(number)?)));
                Definition::Struct(fields.collect::<Option<_>>()?)
            }
            Parts::Variants(variants) => {
                let variants = variants.into_iter().enumerate();
                let variants = variants.map(|(number, (wire, payload))| {
                    let mut ty = slots.remove(&format!("V{number}"))?;
                    if let Some(ty) = &mut ty {
                        self.visit_type_mut(ty);
                    }
                    (ty.is_some() == payload.is_some()).then_some((wire, ty))
                });
                Definition::Enum(variants.collect::<Option<_>>()?)
            }
            Parts::Value => Definition::Newtype(Box::new(field(0)?)),
        })
    }
}

impl VisitMut for Tidy {
    fn visit_type_mut(&mut self, ty: &mut Type) {
        if let Type::Path(path) = ty {
            let name = path.path.get_ident().map(Ident::to_string);
            match name.and_then(|name| self.inner.remove(&name)) {
                Some(inner) => *ty = inner,
                None if path.path.is_ident(NULL) => *ty = syn::parse_quote!(()),
                None => {}
            }
        }
        visit_mut::visit_type_mut(self, ty);
        // An absent member is `None` at once.
        if let Some(inner) = argument(ty, "Box").and_then(|ty| argument(ty, "Option")) {
            *ty = match argument(inner, "Box") {
                Some(_) => syn::parse_quote!(Option<#inner>),
                None => syn::parse_quote!(Option<Box<#inner>>),
            };
        }
    }

    fn visit_path_mut(&mut self, path: &mut syn::Path) {
        visit_mut::visit_path_mut(self, path);
        if path.leading_colon.is_some() {
            path.leading_colon = None;
            if let Some(last) = path.segments.pop() {
                path.segments = std::iter::once(last).collect();
            }
        }
        let Some(last) = path.segments.last_mut() else {
            return;
        };
        // Keys of JSON objects are strings, so our map has no type for them.
        if last.ident == "Map"
            && let syn::PathArguments::AngleBracketed(arguments) = &mut last.arguments
            && arguments.args.len() == 2
        {
            arguments.args = arguments.args.iter().skip(1).cloned().collect();
        }
        let number = last.ident.to_string();
        let number = number
            .strip_prefix('T')
            .and_then(|number| number.parse().ok());
        if let Some(ident) = number.and_then(|number: usize| self.idents.get(number)) {
            last.ident = ident.clone();
        }
    }
}

/// The argument of the generic type `name`.
fn argument<'a>(ty: &'a Type, name: &str) -> Option<&'a Type> {
    let Type::Path(ty) = ty else { return None };
    let last = ty.path.segments.last().filter(|last| last.ident == name)?;
    match &last.arguments {
        syn::PathArguments::AngleBracketed(arguments) => match arguments.args.first()? {
            syn::GenericArgument::Type(ty) => Some(ty),
            _ => None,
        },
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_chains_and_deep_values_have_types() {
        let mut plain = Map::new();
        plain.insert("Own".into(), reference("Own"));
        for number in 0..5_000 {
            let next = reference(&format!("Chain{}", (number + 1) % 5_000));
            plain.insert(format!("Chain{number}"), next);
        }
        let mut deep = json!({ "type": "null" });
        for _ in 0..120 {
            deep = json!({ "type": "array", "items": deep });
        }
        plain.insert("Deep".into(), deep);
        let types = types(&plain).unwrap();
        let text = |at: usize| match &types[at] {
            (_, Definition::Newtype(ty)) => quote::quote!(#ty).to_string().replace(' ', ""),
            (name, _) => panic!("`{name}` is no newtype"),
        };
        assert_eq!(text(0), "Box<Own>");
        let boxed = (1..=5_000).filter(|at| text(*at).starts_with("Box<Chain"));
        assert_eq!(boxed.count(), 1);
        assert_eq!(
            text(5_001),
            format!("{}(){}", "Vec<".repeat(120), ">".repeat(120))
        );
    }

    #[test]
    fn names_that_typify_would_merge_stay_apart() {
        let member = |wire: &str| one_member(wire, &json!({ "type": "boolean" }));
        let plain = json!({
            "HTTPSet": member("a-b"),
            "HttpSet": { "type": "object", "properties": { "a_b": reference("HTTPSet"), "a-b": { "type": "null" } } },
            "Vec": { "oneOf": [{ "x": reference("T0") }, "X"] },
            "T0": { "type": "integer", "format": "uint" },
        });
        let types = types(plain.as_object().unwrap()).unwrap();
        assert_eq!(types.len(), 4);
        let text = |ty: &Type| quote::quote!(#ty).to_string().replace(' ', "");
        let Definition::Struct(fields) = &types[1].1 else {
            panic!("no struct")
        };
        let fields: Vec<_> = fields.iter().map(|(wire, ty)| (*wire, text(ty))).collect();
        assert_eq!(
            fields,
            [
                ("a_b", "Option<HTTPSet>".into()),
                ("a-b", "Option<()>".into())
            ]
        );
        let Definition::Enum(variants) = &types[2].1 else {
            panic!("no enum")
        };
        let variants: Vec<_> = variants
            .iter()
            .map(|(wire, ty)| (*wire, ty.as_ref().map(text)))
            .collect();
        assert_eq!(variants, [("x", Some("T0".into())), ("X", None)]);
        let Definition::Newtype(ty) = &types[3].1 else {
            panic!("no newtype")
        };
        assert_eq!(text(ty), "u64");
    }
}
