//! The identifiers of a generated text.

use std::collections::BTreeSet;

use proc_macro2::{TokenStream, TokenTree};

/// Adds the identifiers among `tokens` to `found`.
pub(crate) fn identifiers(tokens: TokenStream, found: &mut BTreeSet<String>) {
    for token in tokens {
        match token {
            TokenTree::Ident(ident) => {
                found.insert(ident.to_string());
            }
            TokenTree::Group(group) => identifiers(group.stream(), found),
            TokenTree::Literal(_) | TokenTree::Punct(_) => {}
        }
    }
}
