//! Dispatch: from a method's name to the trait's method.

use acp_schema::{CancellationInfo, SessionCancellationInfo};
use proc_macro2::TokenStream;
use quote::quote;

use super::call::{Call, handled_by};
use super::role::Role;
use super::version::Version;
use crate::emit::written;

pub(super) fn items(
    role: Role,
    calls: &[Call<'_>],
    version: Option<&Version>,
    cancels: bool,
) -> TokenStream {
    let service = role.ident("Service");
    let (name, ctx) = (role.ident(""), role.ident("Context"));
    let arm = |call: &Call<'_>| arm(role, call, version);
    let requests: Vec<_> = requests(role, calls).map(arm).collect();
    let notifications: Vec<_> = notifications(role, calls).map(arm).collect();
    let request = matched(
        &requests,
        &quote!(request.method()),
        &quote! {
            request.answer_ext(move |ctx, method, params| async move {
                handler.ext_request(&#ctx::new(ctx), &method, params).await
            })
        },
    );
    let notification = matched(
        &notifications,
        &quote!(notification.method()),
        &quote! {
            notification.handle_ext(move |ctx, method, params| async move {
                handler.ext_notification(&#ctx::new(ctx), &method, params).await
            })
        },
    );
    let null_ids = version.filter(|version| !version.has_null_ids()).map(|_| {
        quote! {
            fn has_null_ids(&self) -> bool { false }
        }
    });
    let cancellation = cancels.then(|| {
        quote! {
            fn cancellation(&self) -> &'static runtime::Cancellation { &CANCELLATION }
        }
    });
    let head = written(&format!(
        "Dispatches the messages of a connection to an implementation of [`{name}`]."
    ));
    quote! {
        #head
        #[derive(Debug)]
        pub struct #service<T>(Arc<T>);

        impl<T: #name> #service<T> {
            #[doc = " Creates a service that dispatches to `handler`."]
            #[must_use]
            pub fn new(handler: impl Into<Arc<T>>) -> Self { Self(handler.into()) }
        }

        impl<T> Clone for #service<T> {
            fn clone(&self) -> Self { Self(Arc::clone(&self.0)) }
        }

        impl<T: #name> Service for #service<T> {
            fn request(&self, request: IncomingRequest<'_>) -> HandlerFuture {
                let handler = Arc::clone(&self.0);
                #request
            }

            fn notification(&self, notification: IncomingNotification<'_>) -> HandlerFuture {
                let handler = Arc::clone(&self.0);
                #notification
            }

            #null_ids

            #cancellation

            fn masking_rules(&self) -> Vec<&'static runtime::MaskingRules> { Vec::from([&MASKING]) }
        }
    }
}

/// How both sides cancel requests.
pub(super) fn cancellation(info: CancellationInfo) -> TokenStream {
    let CancellationInfo {
        method,
        request_id,
        of_sessions,
    } = info;
    let of_sessions = of_sessions
        .iter()
        .map(|SessionCancellationInfo { method, requests }| quote!((#method, &[#(#requests),*])));
    quote! {
        #[doc = " The notifications that cancel requests of this protocol."]
        pub static CANCELLATION: runtime::Cancellation = runtime::Cancellation {
            method: #method,
            request_id: #request_id,
            of_sessions: &[#(#of_sessions),*],
        };
    }
}

/// The requests that a role handles.
pub(super) fn requests<'a>(
    role: Role,
    calls: &'a [Call<'a>],
) -> impl Iterator<Item = &'a Call<'a>> {
    handled_by(role, calls).filter(|call| call.result.is_some())
}

/// The notifications that a role handles.
pub(super) fn notifications<'a>(
    role: Role,
    calls: &'a [Call<'a>],
) -> impl Iterator<Item = &'a Call<'a>> {
    handled_by(role, calls).filter(|call| call.result.is_none())
}

/// The arm of a method, with `handler` in scope.
fn arm(role: Role, call: &Call<'_>, version: Option<&Version>) -> TokenStream {
    let (method, value) = (&call.method.name, dispatched(role, call, version));
    quote!(#method => #value)
}

/// Gives the message to the method of `handler`.
pub(super) fn dispatched(role: Role, call: &Call<'_>, version: Option<&Version>) -> TokenStream {
    let (ctx, function) = (role.ident("Context"), &call.function);
    let (receiver, verb) = match call.result {
        Some(_) => match version.filter(|version| version.is_negotiated_by(call)) {
            Some(Version { marker, .. }) => {
                (quote!(request), quote!(answer_initialize::<#marker, _, _>))
            }
            None => (quote!(request), quote!(answer)),
        },
        None => (quote!(notification), quote!(handle)),
    };
    quote! {
        #receiver.#verb(move |ctx, params| async move {
            T::#function(&handler, &#ctx::new(ctx), params).await
        })
    }
}

/// A match over method names; only its last arm when there are no others.
pub(super) fn matched(arms: &[TokenStream], on: &TokenStream, other: &TokenStream) -> TokenStream {
    if arms.is_empty() {
        return other.clone();
    }
    quote! {
        match #on {
            #(#arms,)*
            _ => #other,
        }
    }
}
