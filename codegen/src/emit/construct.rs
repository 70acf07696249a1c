//! Generates constructors: `new` with the required fields, and a setter for each other field.

use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use syn::{Ident, Type as RustType};

use super::accessors::accessors;
use super::model::{Model, head, unwrap_option};
use super::part::{Part, default_name};
use super::unions;
use crate::ir::{Presence, Shape};

pub(super) fn items(
    model: &Model<'_>,
    name: &Ident,
    parts: &[Part<'_>],
    required: bool,
    own_defaults: bool,
) -> TokenStream {
    let new = new(model, parts, required, own_defaults);
    let setters = parts
        .iter()
        .filter(|part| part.field.presence != Presence::Required);
    let setters = setters.map(|part| setter(model, part));
    let defaults = parts.iter().filter_map(|part| {
        let (ident, ty) = (default_name(part.ident), &part.ty);
        let value = part.default.as_ref()?;
        Some(quote!(fn #ident() -> #ty { #value }))
    });
    let typed = parts.iter().flat_map(|part| {
        let optional = part.field.presence == Presence::Optional;
        let one = move |typed| accessors(part.ident, name, optional, typed).inherent();
        part.field.typed.iter().map(one)
    });
    let by_hand = (!required && !own_defaults).then(|| {
        quote! {
            impl Default for #name {
                fn default() -> Self { Self::new() }
            }
        }
    });
    quote! {
        impl #name {
            #new
            #(#setters)*
            #(#typed)*
            #(#defaults)*
        }

        #by_hand
    }
}

fn new(model: &Model<'_>, parts: &[Part<'_>], required: bool, own_defaults: bool) -> TokenStream {
    if !required && own_defaults {
        return quote! {
            #[doc = " Creates the value with no field set."]
            #[must_use]
            pub fn new() -> Self { Self::default() }
        };
    }
    let mut values = Vec::new();
    for part in parts {
        let (ident, ty) = (part.ident, &part.ty);
        match (&part.field.presence, &part.default) {
            (Presence::Required, _) => {
                values.push(match parameter(model, ident, ty).1 {
                    Some(value) => quote!(#ident: #value),
                    None => quote!(#ident),
                });
            }
            (Presence::Optional, _) => values.push(quote!(#ident: None)),
            (_, Some(_)) => {
                let default = default_name(ident);
                values.push(quote!(#ident: Self::#default()));
            }
            (Presence::Empty, None) => {
                let head = format_ident!("{}", head(ty).0);
                values.push(quote!(#ident: #head::new()));
            }
            (Presence::Patch, None) => values.push(quote!(#ident: Patch::Absent)),
            (Presence::Default(_), None) => values.push(quote!(#ident: Default::default())),
        }
    }
    let required_parts = parts
        .iter()
        .filter(|part| part.field.presence == Presence::Required);
    let parameters = required_parts.map(|part| {
        let (ident, parameter) = (part.ident, parameter(model, part.ident, &part.ty).0);
        quote!(#ident: #parameter)
    });
    let doc = if required {
        " Creates the value from its required fields."
    } else {
        " Creates the value with no field set."
    };
    quote! {
        #[doc = #doc]
        #[must_use]
        pub fn new(#(#parameters),*) -> Self { Self { #(#values),* } }
    }
}

fn setter(model: &Model<'_>, part: &Part<'_>) -> TokenStream {
    let ident = part.ident;
    let name = format_ident!("with_{}", ident.to_string().trim_end_matches('_'));
    let doc = format!(" Sets [`{ident}`](Self::{ident}).");
    let inner = match part.field.presence {
        Presence::Patch => {
            let ty = &part.ty;
            return quote! {
                #[doc = #doc]
                #[must_use]
                pub fn #name(mut self, #ident: impl Into<#ty>) -> Self {
                    self.#ident = #ident.into();
                    self
                }
            };
        }
        Presence::Optional => return optional_setter(model, part, &name, &doc),
        _ => &part.ty,
    };
    let (parameter, value) = parameter(model, ident, inner);
    let value = value.unwrap_or_else(|| quote!(#ident));
    quote! {
        #[doc = #doc]
        #[must_use]
        pub fn #name(mut self, #ident: #parameter) -> Self {
            self.#ident = #value;
            self
        }
    }
}

/// Generates the setter of an optional field. It accepts a value or an `Option`, except for
/// lists: their arguments are often collected and would lose their inferred type.
fn optional_setter(model: &Model<'_>, part: &Part<'_>, name: &Ident, doc: &str) -> TokenStream {
    let (ident, inner) = (part.ident, unwrap_option(&part.ty));
    let (generics, parameter, value) = if matches!(head(inner).0.as_str(), "Vec" | "Map") {
        (quote!(), quote!(#inner), quote!(Some(#ident)))
    } else if parameter(model, ident, inner).1.is_some() {
        let value = quote!(#ident.into_option());
        // A type of the document may have the name of the parameter.
        let marker = format_ident!("{}", if head(inner).0 == "M" { "N" } else { "M" });
        let parameter = quote!(impl IntoOption<#inner, #marker>);
        (quote!(<#marker>), parameter, value)
    } else {
        (
            quote!(),
            quote!(impl Into<Option<#inner>>),
            quote!(#ident.into()),
        )
    };
    quote! {
        #[doc = #doc]
        #[must_use]
        pub fn #name #generics(mut self, #ident: #parameter) -> Self {
            self.#ident = #value;
            self
        }
    }
}

/// Returns the type of an argument for a value of type `ty`, and its conversion.
///
/// `impl Into<T>` only where conversions exist. For lists and plain structs it would only
/// break inference.
fn parameter(
    model: &Model<'_>,
    ident: &Ident,
    ty: &RustType,
) -> (TokenStream, Option<TokenStream>) {
    let (name, _) = head(ty);
    let convertible = match name.as_str() {
        "String" | "Json" | "Meta" => true,
        _ => model.get(&name).is_some_and(|ty| match &ty.shape {
            Shape::Id | Shape::Text(_) | Shape::Integer(_) => true,
            Shape::Union(union) => unions::has_from(model, &ty.name, union),
            Shape::Struct(_) | Shape::Map | Shape::Wrapper => false,
        }),
    };
    if convertible {
        (quote!(impl Into<#ty>), Some(quote!(#ident.into())))
    } else {
        (quote!(#ty), None)
    }
}
