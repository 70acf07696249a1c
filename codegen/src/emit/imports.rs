//! Generates the imports that a text needs.

use std::collections::BTreeSet;

use proc_macro2::TokenStream;
use quote::{format_ident, quote};

use crate::names::{OF_METHODS, OF_TYPES};
use crate::tokens::identifiers;

/// Returns the imports that `chunks` need, and no others. `methods`: whether the document has any.
pub(crate) fn imports(chunks: &[TokenStream], methods: bool) -> TokenStream {
    let mut used = BTreeSet::new();
    chunks
        .iter()
        .for_each(|chunk| identifiers(chunk.clone(), &mut used));
    let names = |names: &[&str]| {
        let names = names.iter().filter(|name| used.contains(**name));
        names
            .map(|name| format_ident!("{name}"))
            .collect::<Vec<_>>()
    };
    let arc = used.contains("Arc").then(|| {
        quote!(
            use ::std::sync::Arc;
        )
    });
    let serde = names(&["Serialize"]);
    let serde = (!serde.is_empty()).then(|| quote!(use ::acp_sdk::runtime::serde::{#(#serde),*};));
    let mut runtime = names(OF_TYPES);
    if methods {
        runtime.extend(names(OF_METHODS));
        runtime.sort();
    }
    let runtime = match (used.contains("runtime"), runtime.as_slice()) {
        (true, []) => Some(quote!(
            use ::acp_sdk::runtime;
        )),
        (true, names) => Some(quote!(use ::acp_sdk::runtime::{self, #(#names),*};)),
        (false, []) => None,
        (false, names) => Some(quote!(use ::acp_sdk::runtime::{#(#names),*};)),
    };
    quote! {
        #arc
        #serde
        #runtime
    }
}
