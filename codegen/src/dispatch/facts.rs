//! The facts of methods as a table for each role.

use std::collections::BTreeMap;

use acp_schema::{AccessRight, Attachment, Login, Method, MethodFacts, Protocol, Retry, Scope};
use heck::ToShoutySnakeCase as _;
use proc_macro2::TokenStream;
use quote::{format_ident, quote};

use super::role::Role;
use crate::emit::written;

/// The tables of the methods that have facts; none if there is no such method.
///
/// Methods of `protocol` have precedence over those of `beside`, which are not generated.
pub(crate) fn items<'a>(
    roles: &[Role],
    methods: impl Iterator<Item = &'a Method>,
    beside: Option<&'a Protocol>,
) -> Option<TokenStream> {
    let mut known: BTreeMap<_, &MethodFacts> = BTreeMap::new();
    for method in methods.chain(beside.into_iter().flat_map(Protocol::methods)) {
        if let Some(facts) = &method.facts {
            let key = (method.name.as_str(), method.side);
            known.entry(key).or_insert(facts);
        }
    }
    if known.is_empty() {
        return None;
    }
    let tables = roles.iter().map(|role| {
        let ident = format_ident!("{}_METHODS", role.side.as_str().to_shouty_snake_case());
        let handled = known.iter().filter(|((_, side), _)| {
            // Both ends handle what no role does: methods of the connection, and of proxies.
            side.includes(role.side) || !side.is_role()
        });
        let rows = handled.map(|((name, _), facts)| row(name, facts));
        let docs = written(&format!(
            "Facts of the methods that {} handles, those of known extensions included.",
            role.with_article()
        ));
        quote! {
            #docs
            pub static #ident: runtime::MethodTable = runtime::MethodTable::new(&[#(#rows),*]);
        }
    });
    Some(quote!(#(#tables)*))
}

fn row(name: &str, facts: &MethodFacts) -> TokenStream {
    let scope = match facts.scope {
        Scope::Connection => quote!(Connection),
        Scope::Session => quote!(Session),
    };
    let access = match facts.access {
        AccessRight::Reader => quote!(Reader),
        AccessRight::Session => quote!(Session),
        AccessRight::Owner => quote!(Owner),
    };
    let retry = match facts.retry {
        Retry::Safe => quote!(Safe),
        Retry::Keyed => quote!(Keyed),
        Retry::Never => quote!(Never),
    };
    let joins = match facts.joins {
        Attachment::Creates => quote!(Creates),
        Attachment::Joins => quote!(Joins),
        Attachment::Leaves => quote!(Leaves),
        Attachment::Keeps => quote!(Keeps),
    };
    let login = match facts.login {
        Some(Login::In) => quote!(Some(runtime::Login::In)),
        Some(Login::Out) => quote!(Some(runtime::Login::Out)),
        None => quote!(None),
    };
    let capability = match &facts.capability {
        Some(pointer) => quote!(Some(#pointer)),
        None => quote!(None),
    };
    quote! {
        runtime::MethodFacts {
            name: #name,
            scope: runtime::Scope::#scope,
            access: runtime::AccessRight::#access,
            retry: runtime::Retry::#retry,
            joins: runtime::Attachment::#joins,
            login: #login,
            capability: #capability,
        }
    }
}
