//! The traits that users implement, and the context their methods get.

use proc_macro2::TokenStream;
use quote::quote;

use super::{Call, Role, handled_by};
use crate::Error;
use crate::refine::{described, written};

pub(super) fn items(role: Role, calls: &[Call<'_>]) -> Result<TokenStream, Error> {
    let name = role.ident("");
    let ctx = role.ident("Context");
    let methods: Vec<TokenStream> = handled_by(role, calls)
        .map(|call| method(role, call))
        .collect::<Result<_, _>>()?;
    let article = if role.name.starts_with('A') {
        "an"
    } else {
        "a"
    };
    let head = written(&format!(
        "What {article} {} does: one method per method of the protocol.\n\n\
         Requests that are not implemented are answered with \"method not found\",\n\
         notifications are ignored.",
        role.name.to_lowercase()
    ));
    let context = context(role);
    Ok(quote! {
        #head
        pub trait #name: Send + Sync + 'static {
            #(#methods)*

            #[doc = " Answers a request that the protocol does not define."]
            #[doc = ""]
            #[doc = " Names of such methods start with `_`."]
            fn ext_request(
                &self,
                ctx: &#ctx,
                method: &str,
                params: Option<Json>,
            ) -> impl Future<Output = runtime::HandlerResult<Json>> + Send {
                let _ = (ctx, params);
                runtime::unsupported_ext(method)
            }

            #[doc = " Handles a notification that the protocol does not define."]
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

fn method(role: Role, call: &Call<'_>) -> Result<TokenStream, Error> {
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
        (false, None, Some(_)) => quote!({
            let _ = (ctx, #parameter);
            runtime::unsupported::<methods::#marker>()
        }),
        (false, None, None) => quote!({
            let _ = (ctx, #parameter);
            async { Ok(()) }
        }),
    };
    Ok(quote! {
        #docs
        fn #function(
            &self,
            ctx: &#ctx,
            #parameter: #params,
        ) -> impl Future<Output = runtime::HandlerResult<#result>> + Send #body
    })
}

/// The context of a handler: the runtime's, and the other side.
fn context(role: Role) -> TokenStream {
    let ctx = role.ident("Context");
    let peer = role.peer();
    let handle = peer.ident("Handle");
    let accessor = quote::format_ident!("{}", peer.name.to_lowercase());
    let head = written(&format!(
        "What a handler of [`{}`] knows of the message, and the {} that sent it.",
        role.name, accessor
    ));
    let accessor_docs = written(&format!(
        "The {accessor} on the other end of the connection."
    ));
    quote! {
        #head
        #[derive(Clone, Debug)]
        pub struct #ctx {
            ctx: Context,
            peer: #handle,
        }

        impl #ctx {
            #[doc = " The typed view of a message's context."]
            #[must_use]
            pub fn new(ctx: Context) -> Self {
                let peer = #handle::new(ctx.peer().clone());
                Self { ctx, peer }
            }

            #accessor_docs
            #[must_use]
            pub fn #accessor(&self) -> &#handle { &self.peer }
        }

        impl ::std::ops::Deref for #ctx {
            type Target = Context;

            fn deref(&self) -> &Context { &self.ctx }
        }
    }
}
