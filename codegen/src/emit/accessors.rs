//! Generates getter and setter of a typed key of an open object.

use heck::ToSnakeCase as _;
use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use syn::Ident;

use super::docs::{described, written};
use crate::ir::Typed;

/// The parts of both functions.
pub(crate) struct Accessors {
    get_docs: TokenStream,
    get: TokenStream,
    get_body: TokenStream,
    set_docs: TokenStream,
    set: Ident,
    value: Ident,
    set_body: TokenStream,
}

/// Generates the accessors of the key `typed` in the field `field` of the type `owner`.
/// `optional`: the field is an `Option`.
pub(crate) fn accessors(field: &Ident, owner: &Ident, optional: bool, typed: &Typed) -> Accessors {
    let Typed { key, docs, ty } = typed;
    let ty = format_ident!("{ty}");
    let word = key.rsplit('/').next().unwrap_or(key).to_snake_case();
    let (get, set) = (
        format_ident!("{field}_{word}"),
        format_ident!("with_{field}_{word}"),
    );
    let link = format!("[`{field}`]({owner}::{field})");
    let head = written(&format!(
        "Returns the member `{key}` of {link}.\n\n`None` if the member is absent or invalid."
    ));
    let get_docs = match docs {
        Some(docs) => {
            let docs = described(Some(docs), "");
            quote!(#head #[doc = ""] #docs)
        }
        None => head,
    };
    let (object, whole, old) = match optional {
        true => (
            quote!(self.#field.as_ref()?),
            quote!(Some(object)),
            quote!(self.#field.take().unwrap_or_default()),
        ),
        false => (
            quote!(self.#field),
            quote!(object),
            quote!(::std::mem::take(&mut self.#field)),
        ),
    };
    Accessors {
        get_docs,
        get: quote!(fn #get(&self) -> Option<#ty>),
        get_body: quote!({ #object.get(#key) }),
        set_docs: written(&format!("Sets the member `{key}` of {link}.")),
        set,
        value: ty,
        set_body: quote!({
            let object = #old.with(#key, value);
            self.#field = #whole;
            self
        }),
    }
}

impl Accessors {
    /// Returns the functions as inherent methods of the type.
    pub(super) fn inherent(&self) -> TokenStream {
        let Self {
            get_docs,
            get,
            get_body,
            set_docs,
            set,
            value,
            set_body,
        } = self;
        quote! {
            #get_docs
            #[must_use]
            pub #get #get_body

            #set_docs
            #[must_use]
            pub fn #set(mut self, value: &#value) -> Self #set_body
        }
    }

    /// Returns the declarations in a trait.
    pub(crate) fn declared(&self) -> TokenStream {
        let Self {
            get_docs,
            get,
            set_docs,
            set,
            value,
            ..
        } = self;
        quote! {
            #get_docs
            #[must_use]
            #get;

            #set_docs
            #[must_use]
            fn #set(self, value: &#value) -> Self;
        }
    }

    /// Returns the functions in the implementation of a trait.
    pub(crate) fn implemented(&self) -> TokenStream {
        let Self {
            get,
            get_body,
            set,
            value,
            set_body,
            ..
        } = self;
        quote! {
            #get #get_body

            fn #set(mut self, value: &#value) -> Self #set_body
        }
    }
}
