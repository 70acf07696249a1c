//! What the variants of unions contribute to a conversation, as a table for each union.

use acp_schema::{Content, Document};
use heck::ToShoutySnakeCase as _;
use proc_macro2::TokenStream;
use quote::{format_ident, quote};

use crate::Error;
use crate::emit::written;

/// The tables of the unions that `document` marks with `x-content`.
///
/// # Errors
/// When a variant has no mark.
pub(crate) fn items(document: &Document) -> Result<Vec<TokenStream>, Error> {
    let tables = document.contents()?.into_iter().map(|info| {
        let ident = format_ident!("{}_CONTENT", info.union.to_shouty_snake_case());
        let mut variants = info.variants;
        variants.sort_unstable_by_key(|(tag, _)| *tag);
        let rows = variants.into_iter().map(|(tag, content)| {
            let content = match content {
                Content::Input => quote!(Input),
                Content::Output => quote!(Output),
                Content::State => quote!(State),
            };
            quote!((#tag, runtime::Content::#content))
        });
        let docs = written(&format!(
            "What the variants of `{}` contribute to a conversation, those of proposals included.",
            info.union
        ));
        quote! {
            #docs
            pub static #ident: runtime::ContentTable = runtime::ContentTable::new(&[#(#rows),*]);
        }
    });
    Ok(tables.collect())
}
