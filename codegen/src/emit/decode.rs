//! Generates how a struct is read and written: a table with a line per member, and `Deserialize`
//! where the table does not suffice.

use proc_macro2::TokenStream;
use quote::quote;
use syn::Ident;

use super::model::{Model, head, unwrap_option};
use super::part::{Part, default_name};
use crate::ir::{Place, Presence, Shape};

pub(super) fn items(
    model: &Model<'_>,
    name: &Ident,
    parts: &[Part<'_>],
    flattened: bool,
) -> TokenStream {
    let members = parts.iter().map(|part| member(model, part));
    // A struct whose object also holds a union cannot be read member by member.
    let deserialize = flattened.then(|| shared(model, name, parts));
    let marker = flattened.then(|| quote!(shared));
    quote! {
        runtime::members!(#name #marker { #(#members),* });

        #deserialize
    }
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

/// Generates `Deserialize` from buffered members.
fn shared(model: &Model<'_>, name: &Ident, parts: &[Part<'_>]) -> TokenStream {
    // A union or map reads the remaining members, so it comes last.
    let (unions, own): (Vec<_>, Vec<_>) = parts
        .iter()
        .partition(|part| part.field.place.is_flattened());
    let reads = own.into_iter().chain(unions).map(|part| {
        let (ident, read) = (part.ident, read(model, part));
        quote!(#ident: members.#read?)
    });
    quote! {
        impl<'de> Deserialize<'de> for #name {
            fn deserialize<D: runtime::serde::Deserializer<'de>>(
                deserializer: D,
            ) -> Result<Self, D::Error> {
                runtime::read_shared_object(deserializer, |members| { Some(Self { #(#reads,)* }) })
            }
        }
    }
}

fn read(model: &Model<'_>, part: &Part<'_>) -> TokenStream {
    let required = part.field.presence == Presence::Required;
    match part.field.place {
        Place::Member => {}
        Place::Union if !required => {
            let tag = tag(model, part);
            return quote!(read_optional(#tag));
        }
        Place::Union | Place::Entries => return quote!(read()),
    }
    let wire = &part.field.wire;
    if part.default.is_some() {
        let default = default_name(part.ident);
        return quote!(optional_or(#wire, Self::#default));
    }
    match (required, part.field.leniency.on_null) {
        (false, true) => quote!(nullable(#wire)),
        (true, true) => quote!(required_nullable(#wire)),
        (false, false) => quote!(optional(#wire)),
        (true, false) => quote!(required(#wire)),
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
