//! Selects the traits that each type can derive.

use std::collections::BTreeSet;

use proc_macro2::TokenStream;
use quote::{ToTokens as _, format_ident, quote};

use super::Model;
use crate::ir::{Shape, Type};
use crate::typify_adapter::{Skeleton, Skeletons};

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

/// Returns the types that contain a floating-point number, which has no `Eq`.
pub(super) fn not_eq<'a>(types: &'a [Type], skeletons: &Skeletons) -> BTreeSet<&'a str> {
    let parts: Vec<(&str, BTreeSet<String>)> = types
        .iter()
        .map(|ty| (ty.name.as_str(), parts(skeletons.get(&ty.name))))
        .collect();
    let mut not_eq = BTreeSet::new();
    loop {
        let before = not_eq.len();
        for (name, parts) in &parts {
            let floating = parts
                .iter()
                .any(|part| matches!(part.as_str(), "f64" | "f32"));
            if floating || parts.iter().any(|part| not_eq.contains(part.as_str())) {
                not_eq.insert(*name);
            }
        }
        if not_eq.len() == before {
            return not_eq;
        }
    }
}

/// Returns the names of the types that a type contains.
fn parts(skeleton: Option<&Skeleton>) -> BTreeSet<String> {
    let types: Vec<TokenStream> = match skeleton {
        Some(Skeleton::Struct(slots) | Skeleton::Enum(slots)) => slots
            .iter()
            .filter_map(|slot| Some(slot.ty.as_ref()?.to_token_stream()))
            .collect(),
        Some(Skeleton::Newtype(ty)) => vec![ty.to_token_stream()],
        None => Vec::new(),
    };
    types
        .into_iter()
        .flatten()
        .map(|token| token.to_string())
        .collect::<BTreeSet<_>>()
        .into_iter()
        .flat_map(|token| words(&token))
        .collect()
}

fn words(text: &str) -> Vec<String> {
    let word = |c: char| !c.is_alphanumeric() && c != '_';
    text.split(word)
        .filter(|word| !word.is_empty())
        .map(str::to_owned)
        .collect()
}
