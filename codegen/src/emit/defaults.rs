//! Turns schema defaults into Rust expressions.

use proc_macro2::{Literal, TokenStream};
use quote::quote;
use serde_json::Value;
use syn::Type as RustType;

use super::{Model, head};
use crate::Error;
use crate::ir::{Presence, Shape};

/// Returns a default as an expression; `None` when it equals `Default::default()`.
pub(super) fn expression(
    model: &Model<'_>,
    at: &str,
    ty: &RustType,
    value: &Value,
) -> Result<Option<TokenStream>, Error> {
    let expression = match value {
        Value::Null | Value::Bool(false) => None,
        Value::Bool(true) => Some(quote!(true)),
        Value::Number(number) if number.as_f64() == Some(0.0) => None,
        Value::Number(number) => match (number.as_u64(), number.as_i64(), number.as_f64()) {
            (Some(number), _, _) => Some(Literal::u64_unsuffixed(number).into()),
            (_, Some(number), _) => Some(Literal::i64_unsuffixed(number).into()),
            (_, _, Some(number)) => Some(Literal::f64_unsuffixed(number).into()),
            _ => None,
        }
        .map(|literal: proc_macro2::TokenTree| quote!(#literal)),
        Value::Array(items) if items.is_empty() => None,
        Value::Object(members) if members.is_empty() => None,
        Value::String(text) => return text_expression(model, ty, text).map(Some),
        Value::Object(members) if is_own(model, ty, members) => None,
        _ => {
            return Err(Error::unsupported(
                at,
                "a default of this form",
                "use an empty list, a scalar, or an object that repeats its fields' defaults",
            ));
        }
    };
    Ok(expression)
}

fn text_expression(model: &Model<'_>, ty: &RustType, text: &str) -> Result<TokenStream, Error> {
    let (name, _) = head(ty);
    match model.get(&name).map(|ty| &ty.shape) {
        Some(Shape::Text(values)) if values.iter().any(|value| value.value == text) => {
            let variant = &model.skeletons.slot(&name, text)?.ident;
            Ok(quote!(#ty::#variant))
        }
        _ => Ok(quote!(<#ty>::from(#text))),
    }
}

/// Returns whether an object of defaults equals the default of its type.
fn is_own(model: &Model<'_>, ty: &RustType, members: &serde_json::Map<String, Value>) -> bool {
    let (name, _) = head(ty);
    let Some(Shape::Struct(fields)) = model.get(&name).map(|ty| &ty.shape) else {
        return false;
    };
    members.iter().all(|(wire, value)| {
        let Some(field) = fields.iter().find(|field| field.wire == *wire) else {
            return false;
        };
        match &field.presence {
            Presence::Default(own) => {
                own == value
                    || model
                        .skeletons
                        .slot(&name, wire)
                        .is_ok_and(|slot| match (value, &slot.ty) {
                            (Value::Object(members), Some(ty)) => is_own(model, ty, members),
                            _ => false,
                        })
            }
            Presence::Empty => matches!(value, Value::Array(items) if items.is_empty()),
            Presence::Optional | Presence::Patch => value.is_null(),
            Presence::Required => false,
        }
    })
}
