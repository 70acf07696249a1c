//! The notifications whose texts may be joined, as a table (`x-coalesce`).

use acp_schema::{CoalescingInfo, Document, TextPattern};
use proc_macro2::TokenStream;
use quote::quote;

use crate::Error;

/// Generates the table of the definitions that `covers` accepts; `None` when none is marked.
pub(super) fn items(
    document: &Document,
    covers: impl Fn(&str) -> bool,
) -> Result<Option<TokenStream>, Error> {
    let rules = document.coalescing()?;
    let rules: Vec<TokenStream> = rules
        .iter()
        .filter(|(definition, _)| covers(definition))
        .map(|(_, CoalescingInfo { method, params })| {
            let params = pattern(params);
            quote!(runtime::CoalescingRule { method: #method, params: #params })
        })
        .collect();
    Ok((!rules.is_empty()).then(|| {
        quote! {
            #[doc = " Notifications of this protocol whose texts may be joined."]
            pub static COALESCING: &[runtime::CoalescingRule] = &[#(#rules),*];
        }
    }))
}

fn pattern(of: &TextPattern) -> TokenStream {
    match of {
        TextPattern::Text => quote!(runtime::TextPattern::Text),
        TextPattern::Equal => quote!(runtime::TextPattern::Equal),
        TextPattern::Tag(values) => quote!(runtime::TextPattern::Tag(&[#(#values),*])),
        TextPattern::Object(members) => {
            let members = members.iter().map(|(name, member)| {
                let member = pattern(member);
                quote!((#name, #member))
            });
            quote!(runtime::TextPattern::Object(&[#(#members),*]))
        }
    }
}
