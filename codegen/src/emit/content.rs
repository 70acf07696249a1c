//! The types that a type contains.

use std::collections::BTreeSet;

use proc_macro2::TokenStream;
use quote::ToTokens as _;

use crate::ir::Type;
use crate::skeletons::{Skeleton, Skeletons};

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
pub(super) fn parts(skeleton: Option<&Skeleton>) -> BTreeSet<String> {
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
