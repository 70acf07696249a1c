//! Generates how a struct is read and written: a table with a line per member.

use proc_macro2::TokenStream;
use quote::quote;
use syn::Ident;

use super::model::{Model, head, unwrap_option};
use super::part::{Part, default_name};
use crate::ir::{Place, Presence, Shape};

pub(super) fn items(model: &Model<'_>, name: &Ident, parts: &[Part<'_>]) -> TokenStream {
    let members = parts.iter().map(|part| member(model, part));
    quote!(runtime::members!(#name { #(#members),* });)
}

/// Returns the line of a member: field, name, type, presence and leniency.
fn member(model: &Model<'_>, part: &Part<'_>) -> TokenStream {
    let required = part.field.presence == Presence::Required;
    let leniency = part.field.leniency;
    // An invalid value of a required field without a default cannot be dropped.
    let or_default = leniency.on_error && (!required || has_default(part));
    let presence = match required {
        true => quote!(required),
        false => quote!(optional),
    };
    let or_default = or_default.then(|| quote!(+ or_default));
    let (ident, ty) = (part.ident, &part.ty);
    match part.field.place {
        Place::Member => {}
        Place::Union => {
            let tag = tag(model, part);
            return quote!(#ident #tag: #ty = #presence + flattened #or_default);
        }
        Place::Entries => return quote!(#ident "": #ty = required + flattened),
    }
    let wire = &part.field.wire;
    let valid_items = leniency.skip_items.then(|| quote!(+ valid_items));
    let or_null = leniency.on_null.then(|| quote!(+ or_null));
    let default = default(part);
    quote!(#ident #wire: #ty = #presence #default #or_default #valid_items #or_null)
}

/// Returns the value of an absent member, unless absence is a value of its type.
fn default(part: &Part<'_>) -> TokenStream {
    match (&part.field.presence, &part.default) {
        (Presence::Default(_), Some(_)) => {
            let default = default_name(part.ident);
            quote!((Self::#default))
        }
        (Presence::Default(_), None) => quote!((Default::default)),
        _ => quote!(),
    }
}

/// Returns the tag of a union in the object; empty if it has none.
fn tag<'a>(model: &Model<'a>, part: &Part<'_>) -> &'a str {
    let (name, _) = head(unwrap_option(&part.ty));
    match model.get(&name).map(|ty| &ty.shape) {
        Some(Shape::Union(union)) => union.tag.as_deref().unwrap_or_default(),
        _ => "",
    }
}

/// Returns whether the type of a required field has a default.
fn has_default(part: &Part<'_>) -> bool {
    matches!(head(&part.ty).0.as_str(), "Option" | "Vec" | "Map")
}
