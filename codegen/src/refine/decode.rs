//! The lenient decoder of a struct: one line a field over the runtime's `Object`.

use proc_macro2::TokenStream;
use quote::quote;
use syn::Ident;

use super::Model;
use super::construct::default_name;
use super::structs::Part;
use crate::ir::{Leniency, Presence, Shape};

pub(super) fn items(
    model: &Model<'_>,
    name: &Ident,
    parts: &[Part<'_>],
    flattened: bool,
) -> TokenStream {
    let reads = parts.iter().map(|part| {
        let ident = part.ident;
        let read = read(model, part);
        quote!(#ident: #read)
    });
    // A struct that shares its object with a union cannot be read by serde alone, and
    // of one without members serde would take an empty list for it.
    let deserialize = (flattened || parts.is_empty())
        .then(|| quote!(runtime::deserialize_with!(#name, runtime::object);));
    let object = if parts.is_empty() {
        quote!(_)
    } else {
        quote!(object)
    };
    quote! {
        impl FromObject for #name {
            fn from_object(#object: &mut Object<'_>) -> Result<Self, DecodeError> {
                Ok(Self { #(#reads,)* })
            }
        }

        #deserialize
    }
}

fn read(model: &Model<'_>, part: &Part<'_>) -> TokenStream {
    let wire = &part.field.wire;
    if part.field.flattened {
        return flattened(model, part);
    }
    let required = part.field.presence == Presence::Required;
    let Leniency {
        on_error,
        on_null,
        skip_items,
    } = part.field.leniency;
    // A required field that has no default cannot be dropped.
    let on_error = on_error && (!required || has_default(part));
    if part.default.is_some() {
        let default = default_name(part.ident);
        let method = if on_error {
            quote!(lenient_or)
        } else {
            quote!(optional_or)
        };
        return quote!(object.#method(#wire, Self::#default)?);
    }
    let method = match (required, on_error, skip_items, on_null) {
        (false, true, true, _) => quote!(lenient_items),
        (false, true, false, _) => quote!(lenient),
        (true, true, true, _) => quote!(required_lenient_items),
        (true, true, false, _) => quote!(required_lenient),
        (false, false, true, _) => quote!(optional_items),
        (true, false, true, _) => quote!(required_items),
        (false, false, false, true) => quote!(nullable),
        (true, false, false, true) => quote!(required_nullable),
        (false, false, false, false) => quote!(optional),
        (true, false, false, false) => quote!(required),
    };
    quote!(object.#method(#wire)?)
}

/// A union among the members, which is absent when its tag is.
fn flattened(model: &Model<'_>, part: &Part<'_>) -> TokenStream {
    if part.field.presence == Presence::Required {
        return quote!(object.flattened()?);
    }
    let (name, _) = super::head(super::unwrap_option(&part.ty));
    let tag = match model.get(&name).map(|ty| &ty.shape) {
        Some(Shape::Union(union)) => union.tag.as_deref().unwrap_or_default(),
        _ => "",
    };
    let method = match part.field.leniency.on_error {
        true => quote!(flattened_lenient),
        false => quote!(flattened_optional),
    };
    quote!(object.#method(#tag)?)
}

/// Whether a required field's type has an obvious default.
fn has_default(part: &Part<'_>) -> bool {
    matches!(super::head(&part.ty).0.as_str(), "Option" | "Vec" | "Map")
}
