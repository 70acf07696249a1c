//! Generates the items of types: docs, constructors, serde.
//!
//! Each file adds one aspect to the skeleton of a type.

mod accessors;
mod construct;
mod content;
mod decode;
mod defaults;
mod docs;
mod imports;
mod model;
mod part;
mod strings;
mod structs;
mod traits;
mod unions;

use std::collections::BTreeMap;

use proc_macro2::TokenStream;
use quote::{format_ident, quote};

pub(crate) use self::accessors::accessors;
pub(crate) use self::docs::{described, written};
pub(crate) use self::imports::imports;
pub(crate) use self::model::{Model, catch_all, head, unwrap_option};
pub(crate) use self::strings::codes;
use crate::Error;
use crate::ir::{Shape, Type};
use crate::skeletons::Skeleton;

/// Generates the items of all types, a chunk per type. `uses` has a note about the use of a type.
///
/// # Errors
/// Fails when a default has no Rust expression.
pub(crate) fn types(
    model: &Model<'_>,
    uses: &BTreeMap<String, String>,
) -> Result<Vec<TokenStream>, Error> {
    let one = |ty| one(model, ty, uses);
    model.own_types().map(one).collect()
}

fn one(
    model: &Model<'_>,
    ty: &Type,
    uses: &BTreeMap<String, String>,
) -> Result<TokenStream, Error> {
    match &ty.shape {
        Shape::Struct(fields) => {
            let usage = uses.get(&ty.name).map(String::as_str);
            structs::items(model, ty, fields, usage)
        }
        Shape::Id => Ok(strings::id(ty)),
        Shape::Text(values) => strings::text(model, ty, values),
        Shape::Integer(values) => Ok(strings::integer(model, ty, values)),
        Shape::Union(union) => unions::items(model, ty, union),
        Shape::Map | Shape::Wrapper => wrapper(model, ty),
    }
}

fn wrapper(model: &Model<'_>, ty: &Type) -> Result<TokenStream, Error> {
    let Some(Skeleton::Newtype(inner)) = model.skeletons.get(&ty.name) else {
        return Err(Error::Passes(format!("`{}` is no newtype", ty.name)));
    };
    let name = format_ident!("{}", ty.name);
    let fallback = match ty.shape {
        Shape::Map => "A map.",
        _ => "A newtype.",
    };
    let docs = described(ty.docs.as_deref(), fallback);
    let members = model.is_object(&ty.name).then(|| quote!(, members));
    let derives = traits::derives(model, ty, &[]);
    Ok(quote! {
        #docs
        #derives
        pub struct #name(pub #inner);

        runtime::wrapper!(#name, #inner #members);
    })
}
