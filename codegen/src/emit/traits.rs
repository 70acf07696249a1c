//! Selects the traits that each type can derive.

use proc_macro2::TokenStream;
use quote::{format_ident, quote};

use super::content::parts;
use super::model::Model;
use crate::ir::{Shape, Type};

/// `#[derive(Clone, Debug, PartialEq, …)]`.
pub(super) fn derives(model: &Model<'_>, ty: &Type, more: &[&str]) -> TokenStream {
    let eq = model.is_eq(&ty.name).then_some("Eq");
    let more = eq.iter().chain(more).map(|name| format_ident!("{name}"));
    quote!(#[derive(Clone, Debug, PartialEq #(, #more)*)])
}

/// Returns whether a union consists of scalars and can be a map key, as request ids are.
pub(super) fn is_hash(model: &Model<'_>, ty: &Type) -> bool {
    const PLAIN: &[&str] = &[
        "String", "bool", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64",
    ];
    matches!(&ty.shape, Shape::Union(union) if union.tag.is_none())
        && parts(model.skeletons.get(&ty.name))
            .iter()
            .all(|part| PLAIN.contains(&part.as_str()))
}
