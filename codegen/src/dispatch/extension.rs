//! New methods of a protocol whose traits and handles exist already.
//!
//! Each role gets a trait with the new methods, a trait that adds calls of them to the
//! existing handle, and a layer that dispatches them and passes everything else on.

use acp_schema::Document;
use proc_macro2::TokenStream;
use quote::quote;

use super::call::{Call, handled_by};
use super::role::Role;
use super::{coalescing, markers, masking, services, traits};
use crate::Error;
use crate::emit::{Model, described, written};

/// The items of all roles that handle new methods.
///
/// # Errors
/// As of [`traits::method`].
pub(crate) fn extension(
    document: &Document,
    model: &Model<'_>,
    roles: &[Role],
    calls: &[Call<'_>],
) -> Result<Vec<TokenStream>, Error> {
    if calls.is_empty() {
        return Ok(Vec::new());
    }
    let coalescing = coalescing::items(document, |name| model.is_own(name))?;
    let mut chunks = vec![markers::params(model, calls), markers::module(calls, None)];
    for role in roles.iter().copied() {
        if handled_by(role, calls).next().is_some() {
            chunks.push(handlers(role, calls)?);
            chunks.push(callers(role, calls));
            chunks.push(layer(role, calls));
        }
    }
    chunks.extend(coalescing);
    chunks.push(masking::items(document, calls, |name| model.is_own(name))?);
    Ok(chunks)
}

/// The trait that users implement.
fn handlers(role: Role, calls: &[Call<'_>]) -> Result<TokenStream, Error> {
    let name = role.ident("Extension");
    let methods: Vec<TokenStream> = handled_by(role, calls)
        .map(|call| traits::method(role, call, false))
        .collect::<Result<_, _>>()?;
    let layer = role.ident("ExtensionLayer");
    let head = written(&format!(
        "Handles the additional methods of {}; see [`{layer}`].\n\n\
         Defaults: requests fail with \"method not found\" (-32601), notifications are ignored.",
        role.with_article()
    ));
    Ok(quote! {
        #head
        pub trait #name: Send + Sync + 'static { #(#methods)* }
    })
}

/// The trait with the calls, implemented for the existing handle.
fn callers(role: Role, calls: &[Call<'_>]) -> TokenStream {
    let (name, handle) = (role.ident("HandleExt"), role.ident("Handle"));
    let parts: Vec<(TokenStream, TokenStream)> = handled_by(role, calls).map(caller).collect();
    let declared = parts.iter().map(|(declared, _)| declared);
    let implemented = parts.iter().map(|(_, implemented)| implemented);
    let head = written(&format!(
        "Calls the additional methods of {}.",
        role.with_article()
    ));
    quote! {
        #head
        pub trait #name { #(#declared)* }

        impl #name for #handle { #(#implemented)* }
    }
}

fn caller(call: &Call<'_>) -> (TokenStream, TokenStream) {
    let Call {
        function,
        params,
        marker,
        ..
    } = call;
    let (argument, result, verb, errors) = match &call.result {
        Some(result) => (
            quote!(req),
            quote!(#result),
            quote!(call),
            "Fails when the peer answers with an error or the connection closes.",
        ),
        None => (
            quote!(notification),
            quote!(()),
            quote!(notify),
            "Fails when the connection is closed.",
        ),
    };
    let docs = described(Some(&format!("{}\n\n# Errors\n{errors}", call.docs)), "");
    let declared = quote! {
        #docs
        fn #function(
            &self,
            #argument: #params,
        ) -> impl Future<Output = runtime::Result<#result>> + Send;
    };
    let implemented = quote! {
        async fn #function(&self, #argument: #params) -> runtime::Result<#result> {
            self.peer().#verb::<methods::#marker>(&#argument).await
        }
    };
    (declared, implemented)
}

/// The layer, and the service that it makes.
fn layer(role: Role, calls: &[Call<'_>]) -> TokenStream {
    let (name, handler) = (role.ident("ExtensionLayer"), role.ident("Extension"));
    let service = role.ident("ExtensionService");
    let arm = |call: &Call<'_>| {
        let (method, value) = (&call.method.name, services::dispatched(role, call, None));
        quote!(#method => {
            let handler = Arc::clone(&self.handler);
            #value
        })
    };
    let requests: Vec<_> = services::requests(role, calls).map(arm).collect();
    let notifications: Vec<_> = services::notifications(role, calls).map(arm).collect();
    let request = services::matched(
        &requests,
        &quote!(request.method()),
        &quote!(self.inner.request(request)),
    );
    let notification = services::matched(
        &notifications,
        &quote!(notification.method()),
        &quote!(self.inner.notification(notification)),
    );
    let head = written(&format!(
        "A layer that dispatches the methods of [`{handler}`] and passes all others on."
    ));
    quote! {
        #head
        #[derive(Debug)]
        pub struct #name<T>(Arc<T>);

        impl<T: #handler> #name<T> {
            #[doc = " Creates a layer that dispatches to `handler`."]
            #[must_use]
            pub fn new(handler: impl Into<Arc<T>>) -> Self { Self(handler.into()) }
        }

        impl<T> Clone for #name<T> {
            fn clone(&self) -> Self { Self(Arc::clone(&self.0)) }
        }

        impl<T: #handler> ::acp_sdk::service::Layer for #name<T> {
            fn layer(&self, inner: Arc<dyn Service>) -> Arc<dyn Service> {
                Arc::new(#service { handler: Arc::clone(&self.0), inner })
            }
        }

        struct #service<T> {
            handler: Arc<T>,
            inner: Arc<dyn Service>,
        }

        impl<T: #handler> Service for #service<T> {
            fn request(&self, request: IncomingRequest<'_>) -> HandlerFuture { #request }

            fn notification(&self, notification: IncomingNotification<'_>) -> HandlerFuture {
                #notification
            }

            fn masking_rules(&self) -> Vec<&'static runtime::MaskingRules> { Vec::from([&MASKING]) }
        }
    }
}
