//! The traits that users implement, and the context their methods get.

use proc_macro2::TokenStream;
use quote::quote;

use super::{Call, Role, handled_by};
use crate::Error;
use crate::refine::{described, written};

pub(super) fn items(role: Role, calls: &[Call<'_>]) -> Result<TokenStream, Error> {
    let name = role.ident("");
    let cx = role.ident("Cx");
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
                cx: &#cx,
                method: &str,
                params: Option<Json>,
            ) -> impl Future<Output = runtime::Result<Json>> + Send {
                let _ = (cx, params);
                runtime::unsupported_ext(method)
            }

            #[doc = " Handles a notification that the protocol does not define."]
            fn ext_notification(
                &self,
                cx: &#cx,
                method: &str,
                params: Option<Json>,
            ) -> impl Future<Output = runtime::Result<()>> + Send {
                let _ = (cx, method, params);
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
    let cx = role.ident("Cx");
    let docs = described(Some(&call.docs), "");
    let (parameter, result) = match &call.result {
        Some(result) => (quote!(req), quote!(#result)),
        None => (quote!(note), quote!(())),
    };
    let body = match (call.required, call.default, &call.result) {
        (true, _, _) => quote!(;),
        (false, Some(answer), _) => {
            let answer: syn::Expr = syn::parse_str(answer)?;
            quote!({
                let _ = (cx, #parameter);
                async { Ok(#answer) }
            })
        }
        (false, None, Some(_)) => quote!({
            let _ = (cx, #parameter);
            runtime::unsupported::<methods::#marker>()
        }),
        (false, None, None) => quote!({
            let _ = (cx, #parameter);
            async { Ok(()) }
        }),
    };
    Ok(quote! {
        #docs
        fn #function(
            &self,
            cx: &#cx,
            #parameter: #params,
        ) -> impl Future<Output = runtime::Result<#result>> + Send #body
    })
}

/// The context of a handler: the runtime's, and the other side.
fn context(role: Role) -> TokenStream {
    let cx = role.ident("Cx");
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
        pub struct #cx {
            cx: Cx,
            peer: #handle,
        }

        impl #cx {
            #[doc = " The typed view of a message's context."]
            #[must_use]
            pub fn new(cx: Cx) -> Self {
                let peer = #handle::new(cx.peer().clone());
                Self { cx, peer }
            }

            #accessor_docs
            #[must_use]
            pub fn #accessor(&self) -> &#handle { &self.peer }
        }

        impl ::std::ops::Deref for #cx {
            type Target = Cx;

            fn deref(&self) -> &Cx { &self.cx }
        }
    }
}
