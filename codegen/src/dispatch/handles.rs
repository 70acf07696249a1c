//! Typed callers: one role calls the other with them.

use proc_macro2::TokenStream;
use quote::quote;

use super::call::{Call, handled_by};
use super::role::Role;
use crate::emit::{described, written};

pub(super) fn items(role: Role, calls: &[Call<'_>]) -> TokenStream {
    let handle = role.ident("Handle");
    let methods = handled_by(role, calls).map(method);
    let head = written(&format!(
        "Calls the methods of {} over a connection. Clones share the connection.",
        role.with_article()
    ));
    quote! {
        #head
        #[derive(Clone, Debug)]
        pub struct #handle(Peer);

        impl #handle {
            #[doc = " Creates a typed caller from an untyped one."]
            #[must_use]
            pub fn new(peer: Peer) -> Self { Self(peer) }

            #[doc = " Returns the untyped caller: custom methods, and the state of the connection."]
            #[must_use]
            pub fn peer(&self) -> &Peer { &self.0 }

            #[doc = " Returns a caller whose requests fail after `timeout` without an answer."]
            #[doc = ""]
            #[doc = " A request that fails with `Error::TimedOut` has been cancelled."]
            #[must_use]
            pub fn with_timeout(&self, timeout: ::std::time::Duration) -> Self {
                Self(self.0.with_timeout(timeout))
            }

            #(#methods)*

            #[doc = " Sends a request that the protocol does not define and returns the result."]
            #[doc = ""]
            #[doc = " # Errors"]
            #[doc = " Fails when the peer answers with an error or the connection closes."]
            pub async fn ext_request(
                &self,
                method: &str,
                params: Option<&Json>,
            ) -> runtime::Result<Json> {
                self.0.call_ext(method, params).await
            }

            #[doc = " Sends a notification that the protocol does not define."]
            #[doc = ""]
            #[doc = " # Errors"]
            #[doc = " Fails when the connection is closed."]
            pub async fn ext_notification(
                &self,
                method: &str,
                params: Option<&Json>,
            ) -> runtime::Result<()> {
                self.0.notify_ext(method, params).await
            }
        }
    }
}

fn method(call: &Call<'_>) -> TokenStream {
    let Call {
        function,
        params,
        marker,
        ..
    } = call;
    let errors = match call.result {
        Some(_) => "Fails when the peer answers with an error or the connection closes.",
        None => "Fails when the connection is closed.",
    };
    let docs = described(Some(&format!("{}\n\n# Errors\n{errors}", call.docs)), "");
    match &call.result {
        Some(result) => quote! {
            #docs
            pub async fn #function(&self, req: #params) -> runtime::Result<#result> {
                self.0.call::<methods::#marker>(&req).await
            }
        },
        None => quote! {
            #docs
            pub async fn #function(&self, notification: #params) -> runtime::Result<()> {
                self.0.notify::<methods::#marker>(&notification).await
            }
        },
    }
}
