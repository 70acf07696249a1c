//! The module `methods`: one type per method, with its name, params and result.

use std::collections::BTreeSet;

use proc_macro2::TokenStream;
use quote::quote;

use super::call::Call;
use super::version::Version;
use crate::emit::{Model, described};
use crate::ir::{Presence, Shape};

/// The member by which messages belong to a session.
const SESSION: &str = "sessionId";

pub(super) fn module(calls: &[Call<'_>], version: Option<&Version>) -> TokenStream {
    // A method that both sides handle has one marker.
    let mut seen = BTreeSet::new();
    let markers = calls
        .iter()
        .filter(|call| seen.insert(&call.marker))
        .map(|call| {
            let Call {
                marker,
                params,
                result,
                ..
            } = call;
            let name = &call.method.name;
            let docs = described(Some(&call.docs), "");
            let negotiates = version.and_then(|version| version.constant(call));
            let body = quote! {
                const NAME: &'static str = #name;
                type Params = super::#params;
            };
            let implementation = match result {
                Some(result) => quote! {
                    impl runtime::Method for #marker {
                        #body
                        type Result = super::#result;
                        #negotiates
                    }
                },
                None => quote!(impl runtime::Notification for #marker { #body }),
            };
            quote! {
                #docs
                #[derive(Clone, Copy, Debug)]
                pub struct #marker;

                #implementation
            }
        });
    quote! {
        #[doc = " One type per method, with the method's name, params and result."]
        pub mod methods {
            use super::runtime;

            #(#markers)*
        }
    }
}

/// What the connection asks of params: which session they are about.
pub(super) fn params(model: &Model<'_>, calls: &[Call<'_>]) -> TokenStream {
    let mut seen = BTreeSet::new();
    let typed = calls
        .iter()
        .filter(|call| model.is_own(&call.params.to_string()));
    let impls = typed.filter(|call| seen.insert(&call.params)).map(|call| {
        let params = &call.params;
        match session(model, &params.to_string()) {
            Some(member) => quote! {
                impl Params for #params {
                    fn session_id(&self) -> Option<&str> { Some(self #member.as_ref()) }
                }
            },
            None => quote!(impl Params for #params {}),
        }
    });
    quote!(#(#impls)*)
}

/// Returns the access of the required member with the session's id, also inside of newtypes.
fn session(model: &Model<'_>, name: &str) -> Option<TokenStream> {
    let (name, newtypes) = model.unwrapped(name)?;
    let Shape::Struct(fields) = &model.get(&name)?.shape else {
        return None;
    };
    let mut fields = fields.iter();
    let field =
        fields.find(|field| field.wire == SESSION && field.presence == Presence::Required)?;
    let slot = model.skeletons.slot(&name, &field.wire).ok()?;
    let ident = &slot.ident;
    let newtypes = (0..newtypes).map(|_| quote!(.0));
    Some(quote!(#(#newtypes)* .#ident))
}
