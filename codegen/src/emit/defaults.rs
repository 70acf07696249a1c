//! Turns schema defaults into Rust expressions, by the type of the field.

use proc_macro2::{Literal, TokenStream};
use quote::{format_ident, quote};
use serde_json::{Map, Number, Value};
use syn::Type as RustType;

use super::model::{Model, head};
use super::part::default_name;
use crate::Error;
use crate::ir::{Content, Field, Form, Place, Presence, Shape, Union};
use crate::skeletons::Skeleton;

/// Returns a default as an expression; `None` when it equals `Default::default()`.
///
/// # Errors
/// Fails when the value is none of the type.
pub(super) fn expression(
    model: &Model<'_>,
    at: &str,
    ty: &RustType,
    value: &Value,
) -> Result<Option<TokenStream>, Error> {
    if is_default(model, ty, value) {
        return Ok(None);
    }
    written(model, ty, value).map(Some).ok_or_else(|| {
        Error::unsupported(
            format!("{at}/default"),
            "the default has no expression in Rust",
            "write a value of the member's type that is no union of objects, or remove it",
        )
    })
}

/// Returns whether the type implements `Default` and `value` is what that gives.
fn is_default(model: &Model<'_>, ty: &RustType, value: &Value) -> bool {
    let (name, _) = head(ty);
    match (name.as_str(), value) {
        ("bool", Value::Bool(on)) => !on,
        ("Vec", Value::Array(items)) => items.is_empty(),
        ("Map" | "Meta", Value::Object(members)) => members.is_empty(),
        (name, Value::Number(number)) if is_number(name) => number.as_f64() == Some(0.0),
        (name, Value::Object(members)) => match fields(model, name) {
            Some(fields) => {
                let omitted = |field: &Field| field.presence != Presence::Required;
                fields.iter().all(omitted) && is_own(model, name, fields, members)
            }
            None => false,
        },
        _ => false,
    }
}

/// Returns whether an object of defaults equals the default of its type.
fn is_own(model: &Model<'_>, name: &str, fields: &[Field], members: &Map<String, Value>) -> bool {
    members.iter().all(|(wire, value)| {
        let Some(field) = fields.iter().find(|field| field.wire == *wire) else {
            return false;
        };
        match &field.presence {
            Presence::Default(own) if own == value => true,
            Presence::Default(_) => {
                let slot = model.skeletons.slot(name, wire).ok();
                let ty = slot.and_then(|slot| slot.ty.as_ref());
                value.is_object() && ty.is_some_and(|ty| is_default(model, ty, value))
            }
            Presence::Empty => matches!(value, Value::Array(items) if items.is_empty()),
            Presence::Optional | Presence::Patch => value.is_null(),
            Presence::Required => false,
        }
    })
}

/// Returns a value as an expression of the type.
fn written(model: &Model<'_>, ty: &RustType, value: &Value) -> Option<TokenStream> {
    let (name, inner) = head(ty);
    match (name.as_str(), inner, value) {
        ("Json", _, value) => {
            let text = value.to_string();
            Some(quote!(runtime::json_literal(#text)))
        }
        ("Meta", _, Value::Object(_)) => {
            let text = value.to_string();
            Some(quote!(runtime::json_literal(#text).parse().unwrap_or_default()))
        }
        ("Option", _, Value::Null) => Some(quote!(None)),
        ("Option", Some(inner), value) => {
            let value = written(model, inner, value)?;
            Some(quote!(Some(#value)))
        }
        ("Box", Some(inner), value) => {
            let value = written(model, inner, value)?;
            Some(quote!(Box::new(#value)))
        }
        ("Vec", Some(inner), Value::Array(items)) => {
            let items = items.iter().map(|item| written(model, inner, item));
            let items = items.collect::<Option<Vec<_>>>()?;
            Some(quote!(Vec::from([#(#items),*])))
        }
        ("Map", Some(inner), Value::Object(members)) => map(model, inner, members.iter()),
        ("bool", _, Value::Bool(value)) => Some(quote!(#value)),
        ("String", _, Value::String(text)) => Some(quote!(<#ty>::from(#text))),
        (name, _, Value::Number(number)) if is_number(name) => literal(name, number),
        (name, _, value) => named(model, name, value),
    }
}

fn map<'a>(
    model: &Model<'_>,
    inner: &RustType,
    members: impl Iterator<Item = (&'a String, &'a Value)>,
) -> Option<TokenStream> {
    let members = members.map(|(name, value)| {
        let value = written(model, inner, value)?;
        Some(quote!((#name, #value)))
    });
    let members = members.collect::<Option<Vec<_>>>()?;
    Some(match members.is_empty() {
        true => quote!(Map::new()),
        false => quote!(Map::from([#(#members),*])),
    })
}

/// Returns a value as an expression of a type of the document.
fn named(model: &Model<'_>, name: &str, value: &Value) -> Option<TokenStream> {
    let ident = format_ident!("{name}");
    match (&model.get(name)?.shape, value) {
        (Shape::Text(values), Value::String(text)) => {
            match values.iter().any(|value| value.value == *text) {
                true => {
                    let variant = &model.skeletons.slot(name, text).ok()?.ident;
                    Some(quote!(#ident::#variant))
                }
                false => Some(quote!(<#ident>::from(#text))),
            }
        }
        (Shape::Id, Value::String(text)) => Some(quote!(<#ident>::from(#text))),
        (Shape::Integer(_), Value::Number(number)) => {
            let number = literal(&newtype(model, name)?.0, number)?;
            Some(quote!(#ident::new(#number)))
        }
        (Shape::Wrapper | Shape::Map, value) => {
            let value = written(model, newtype(model, name)?.1, value)?;
            Some(quote!(#ident(#value)))
        }
        (Shape::Struct(fields), Value::Object(members)) if model.is_own(name) => {
            structure(model, name, fields, members)
        }
        (Shape::Union(union), value) if union.tag.is_none() => variant(model, name, union, value),
        _ => None,
    }
}

/// Returns the content of a newtype, and the name of its type.
fn newtype<'a>(model: &Model<'a>, name: &str) -> Option<(String, &'a RustType)> {
    match model.skeletons.get(name)? {
        Skeleton::Newtype(inner) => Some((head(inner).0, inner)),
        _ => None,
    }
}

fn structure(
    model: &Model<'_>,
    name: &str,
    fields: &[Field],
    members: &Map<String, Value>,
) -> Option<TokenStream> {
    let ident = format_ident!("{name}");
    let known = |wire: &String| fields.iter().any(|field| field.wire == *wire);
    let others = members.iter().filter(|(wire, _)| !known(wire));
    let has_entries = fields.iter().any(|field| field.place == Place::Entries);
    if !has_entries && others.clone().next().is_some() {
        return None;
    }
    let values = fields.iter().map(|field| {
        let slot = model.skeletons.slot(name, &field.wire).ok()?;
        let (field_name, ty) = (&slot.ident, slot.ty.as_ref()?);
        let given = members.get(&field.wire);
        let value = match (field.place, &field.presence, given) {
            (Place::Union, _, _) => return None,
            (Place::Entries, _, _) => map(model, head(ty).1?, others.clone())?,
            (_, Presence::Patch, _) => return None,
            (_, _, Some(value)) => written(model, ty, value)?,
            (_, Presence::Required, None) => return None,
            (_, Presence::Optional, None) => quote!(None),
            (_, Presence::Empty, None) => quote!(Default::default()),
            (_, Presence::Default(own), None) => match is_default(model, ty, own) {
                true => quote!(Default::default()),
                false => {
                    let default = default_name(field_name);
                    quote!(#ident::#default())
                }
            },
        };
        Some(quote!(#field_name: #value))
    });
    let values = values.collect::<Option<Vec<_>>>()?;
    Some(quote!(#ident { #(#values),* }))
}

/// Returns a value of an untagged union: of the first variant that takes it.
fn variant(model: &Model<'_>, name: &str, union: &Union, value: &Value) -> Option<TokenStream> {
    let ident = format_ident!("{name}");
    union.variants.iter().find_map(|variant| {
        let fits = matches!(
            (variant.content, value),
            (Content::Null, Value::Null)
                | (Content::Value(Form::Boolean), Value::Bool(_))
                | (Content::Value(Form::Number), Value::Number(_))
                | (Content::Value(Form::String), Value::String(_))
                | (Content::Value(Form::Array), Value::Array(_))
                | (Content::Value(Form::Any), _)
                | (Content::Object, Value::Object(_))
        );
        let slot = model.skeletons.slot(name, &variant.key).ok()?;
        let case = &slot.ident;
        match &slot.ty {
            _ if !fits => None,
            None => Some(quote!(#ident::#case)),
            Some(ty) => {
                let value = written(model, ty, value)?;
                Some(quote!(#ident::#case(#value)))
            }
        }
    })
}

/// Returns the members of a struct.
fn fields<'a>(model: &Model<'a>, name: &str) -> Option<&'a [Field]> {
    match &model.get(name)?.shape {
        Shape::Struct(fields) => Some(fields),
        _ => None,
    }
}

fn is_number(name: &str) -> bool {
    matches!(name, "f64" | "f32") || range(name).is_some()
}

/// Returns a number as a literal of the type `name`, if it has a value for it.
fn literal(name: &str, number: &Number) -> Option<TokenStream> {
    let Some((least, most)) = range(name) else {
        let literal = Literal::f64_unsuffixed(number.as_f64()?);
        return Some(quote!(#literal));
    };
    let exact = number.as_i64().map(i128::from);
    let exact = exact.or_else(|| number.as_u64().map(i128::from));
    // JSON Schema counts 1.0 as an integer.
    let whole = number
        .as_f64()
        .filter(|n| n.fract() == 0.0 && n.abs() < 9e15);
    let exact = exact.or_else(|| whole.map(|n| n as i128))?;
    let literal = Literal::i128_unsuffixed(exact);
    (least..=most).contains(&exact).then(|| quote!(#literal))
}

/// Returns the smallest and largest number of a Rust type of integers.
fn range(name: &str) -> Option<(i128, i128)> {
    Some(match name {
        "i8" => (i8::MIN.into(), i8::MAX.into()),
        "i16" => (i16::MIN.into(), i16::MAX.into()),
        "i32" => (i32::MIN.into(), i32::MAX.into()),
        "i64" => (i64::MIN.into(), i64::MAX.into()),
        "u8" => (0, u8::MAX.into()),
        "u16" => (0, u16::MAX.into()),
        "u32" => (0, u32::MAX.into()),
        "u64" => (0, u64::MAX.into()),
        _ => return None,
    })
}
