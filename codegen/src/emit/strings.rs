//! Generates ids, enums of strings and integers, with macros of the runtime.

use heck::{ToShoutySnakeCase as _, ToSnakeCase as _};
use proc_macro2::{Literal, TokenStream};
use quote::{format_ident, quote};

use super::docs::{described, written};
use super::model::{Model, catch_all};
use crate::Error;
use crate::ir::{Constant, Shape, Type};
use crate::skeletons::Skeleton;

pub(super) fn id(ty: &Type) -> TokenStream {
    let name = format_ident!("{}", ty.name);
    let docs = described(ty.docs.as_deref(), "An identifier.");
    quote! {
        #docs
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct #name(Arc<str>);

        runtime::string_id!(#name);
    }
}

pub(super) fn text(
    model: &Model<'_>,
    ty: &Type,
    values: &[Constant<String>],
) -> Result<TokenStream, Error> {
    let name = format_ident!("{}", ty.name);
    let head = described(ty.docs.as_deref(), "A string with known values.");
    let mut variants = Vec::new();
    let mut pairs = Vec::new();
    let other = catch_all(
        model
            .skeletons
            .slots(&ty.name)
            .iter()
            .map(|slot| &slot.ident),
    );
    for value in values {
        let ident = &model.skeletons.slot(&ty.name, &value.value)?.ident;
        let docs = described(value.docs.as_deref(), &format!("`{}`", value.value));
        let text = &value.value;
        variants.push(quote!(#docs #ident));
        pairs.push(quote!(#ident = #text));
    }
    let unknown = described(ty.unknown.as_deref(), "Any other value, unchanged.");
    Ok(quote! {
        #head
        #[derive(Clone, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum #name {
            #(#variants,)*
            #unknown
            #other(String),
        }

        runtime::string_enum!(#name { #(#pairs,)* .. #other });
    })
}

pub(super) fn integer(model: &Model<'_>, ty: &Type, values: &[Constant<i64>]) -> TokenStream {
    let name = format_ident!("{}", ty.name);
    let fallback = match values {
        [] => "An integer.",
        _ => "An integer with named values.",
    };
    let head = described(ty.docs.as_deref(), fallback);
    let repr = match model.skeletons.get(&ty.name) {
        Some(Skeleton::Newtype(repr)) => quote!(#repr),
        _ => quote!(i64),
    };
    let constants = values.iter().map(|value| {
        let ident = format_ident!("{}", value.name.to_shouty_snake_case());
        let docs = described(value.docs.as_deref(), &format!("`{}`", value.name));
        let number = Literal::i64_unsuffixed(value.value);
        quote!(#docs pub const #ident: Self = Self(#number);)
    });
    let constants = (!values.is_empty()).then(|| quote!(impl #name { #(#constants)* }));
    quote! {
        #head
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct #name(#repr);

        #constants

        runtime::integer!(#name, #repr);
    }
}

/// Generates a module of constants for the named values of an integer with an external type, and
/// the list of them.
pub(crate) fn codes(ty: &Type) -> Option<TokenStream> {
    let Shape::Integer(values) = &ty.shape else {
        return None;
    };
    let [_, ..] = values.as_slice() else {
        return None;
    };
    let name = format_ident!("{}", ty.name);
    let module = format_ident!("{}s", ty.name.to_snake_case());
    let docs = written(&format!(
        "Values of [`{}`] that this document names.",
        ty.name
    ));
    let constants = values.iter().map(|value| {
        let ident = format_ident!("{}", value.name.to_shouty_snake_case());
        let docs = described(value.docs.as_deref(), &format!("`{}`", value.name));
        let number = Literal::i64_unsuffixed(value.value);
        quote!(#docs pub const #ident: #name = #name::new(#number);)
    });
    let named = values.iter().map(|value| {
        let ident = format_ident!("{}", value.name.to_shouty_snake_case());
        let title = &value.name;
        let description = value.docs.as_deref().unwrap_or_default();
        quote!(NamedValue { value: #ident, name: #title, description: #description })
    });
    Some(quote! {
        #docs
        pub mod #module {
            use super::#name;
            use super::runtime::NamedValue;

            #(#constants)*

            #[doc = " All of them, in the order of the document."]
            pub static ALL: &[NamedValue<#name>] = &[#(#named),*];
        }
    })
}
