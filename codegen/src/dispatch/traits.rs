//! The traits that users implement, and the contexts that their methods get.

use proc_macro2::TokenStream;
use quote::quote;

use super::call::{Call, handled_by};
use super::role::Role;
use crate::Error;
use crate::emit::{described, written};

pub(super) fn items(role: Role, calls: &[Call<'_>]) -> Result<TokenStream, Error> {
    let name = role.ident("");
    let ctx = role.ident("Context");
    let methods: Vec<TokenStream> = handled_by(role, calls)
        .map(|call| method(role, call, call.method.is_added))
        .collect::<Result<_, _>>()?;
    let head = written(&format!(
        "Handles the requests and notifications sent to {}.\n\n\
         Defaults: requests fail with \"method not found\" (-32601), notifications are \
         ignored.\nMethods without a default are required.",
        role.with_article()
    ));
    let context = context(role);
    Ok(quote! {
        #head
        pub trait #name: Send + Sync + 'static {
            #(#methods)*

            #[doc = " Handles a request that the protocol does not define."]
            #[doc = ""]
            #[doc = " Default: fails with \"method not found\" (-32601)."]
            fn ext_request(
                &self,
                ctx: &#ctx,
                method: &str,
                params: Option<Json>,
            ) -> impl Future<Output = runtime::HandlerResult<Json>> + Send {
                let _ = (ctx, params);
                runtime::unsupported_ext(method)
            }

            #[doc = " Handles a notification that the protocol does not define. Default: no-op."]
            fn ext_notification(
                &self,
                ctx: &#ctx,
                method: &str,
                params: Option<Json>,
            ) -> impl Future<Output = runtime::HandlerResult<()>> + Send {
                let _ = (ctx, method, params);
                async { Ok(()) }
            }
        }

        #context
    })
}

/// The function of a method in its trait. One that `falls_back` leaves the message to `ext_request` or
/// `ext_notification` by default, where code that knows nothing of the overlay handles it.
///
/// # Errors
/// When a default answer in the override table is no Rust expression.
pub(super) fn method(role: Role, call: &Call<'_>, falls_back: bool) -> Result<TokenStream, Error> {
    let Call {
        function,
        params,
        marker,
        ..
    } = call;
    let ctx = role.ident("Context");
    let docs = described(Some(&call.docs), "");
    let (parameter, result) = match &call.result {
        Some(result) => (quote!(req), quote!(#result)),
        None => (quote!(notification), quote!(())),
    };
    let body = match (call.required, call.default, &call.result) {
        (true, _, _) => quote!(;),
        (false, Some(answer), _) => {
            let answer: syn::Expr = syn::parse_str(answer)?;
            quote!({
                let _ = (ctx, #parameter);
                async { Ok(#answer) }
            })
        }
        (false, None, Some(_)) if falls_back && !call.unknown => quote!({
            runtime::as_ext_request::<methods::#marker, _>(req, |method, params| {
                self.ext_request(ctx, method, params)
            })
        }),
        (false, None, None) if falls_back => quote!({
            runtime::as_ext_notification::<methods::#marker, _>(notification, |method, params| {
                self.ext_notification(ctx, method, params)
            })
        }),
        (false, None, Some(_)) => {
            let answer = match call.unknown {
                true => quote!(unknown),
                false => quote!(unsupported),
            };
            quote!({
                let _ = (ctx, #parameter);
                runtime::#answer::<methods::#marker>()
            })
        }
        (false, None, None) => quote!({
            let _ = (ctx, #parameter);
            async { Ok(()) }
        }),
    };
    let default = match (&call.result, call.unknown, falls_back) {
        (Some(_), true, _) => Some(" Default: fails with \"invalid params\" (-32602)."),
        (Some(_), false, true) => Some(" Default: that of `ext_request`."),
        (None, _, true) => Some(" Default: that of `ext_notification`."),
        _ => None,
    };
    let default = default.map(|text| quote! { #[doc = ""] #[doc = #text] });
    Ok(quote! {
        #docs
        #default
        fn #function(
            &self,
            ctx: &#ctx,
            #parameter: #params,
        ) -> impl Future<Output = runtime::HandlerResult<#result>> + Send #body
    })
}

/// The context of a handler: the runtime's, and a handle to the other role.
fn context(role: Role) -> TokenStream {
    let (name, ctx) = (role.ident(""), role.ident("Context"));
    let peer = role.peer();
    let field = peer.map(|peer| {
        let handle = peer.ident("Handle");
        quote!(peer: #handle)
    });
    let new = peer.map_or_else(
        || quote!(Self { ctx }),
        |peer| {
            let handle = peer.ident("Handle");
            quote! {
                let peer = #handle::new(ctx.peer().clone());
                Self { ctx, peer }
            }
        },
    );
    let accessor = peer.map(|peer| {
        let (function, handle) = (peer.accessor(), peer.ident("Handle"));
        let docs = written(&format!(
            "Returns a handle to the {} that sent the message.",
            peer.words()
        ));
        quote! {
            #docs
            #[must_use]
            pub fn #function(&self) -> &#handle { &self.peer }
        }
    });
    let head = match peer {
        Some(peer) => format!(
            "The context of a message to [`{name}`], and a handle to the {} that sent it.",
            peer.words()
        ),
        None => format!("The context of a message to [`{name}`]."),
    };
    let head = written(&head);
    quote! {
        #head
        #[derive(Clone, Debug)]
        pub struct #ctx {
            ctx: Context,
            #field
        }

        impl #ctx {
            #[doc = " Creates the typed context from the untyped one."]
            #[must_use]
            pub fn new(ctx: Context) -> Self { #new }

            #accessor
        }

        impl ::std::ops::Deref for #ctx {
            type Target = Context;

            fn deref(&self) -> &Context { &self.ctx }
        }
    }
}
