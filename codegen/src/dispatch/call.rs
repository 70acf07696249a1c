//! The methods of a document with the Rust names they get.

use std::collections::{BTreeMap, BTreeSet};

use acp_schema::{Kind, Method, Protocol};
use heck::{ToSnakeCase as _, ToUpperCamelCase as _};
use quote::format_ident;
use syn::Ident;

use super::role::Role;
use crate::Options;
use crate::emit::Model;
use crate::identifiers::identifier;
use crate::lower::ANY;
use crate::overrides::{Hint, Overrides};

/// A method with the Rust names it gets.
#[derive(Debug)]
pub(crate) struct Call<'a> {
    pub(super) method: &'a Method,
    /// Of the trait's and the handle's method.
    pub(super) function: Ident,
    /// Of the type in the module `methods`.
    pub(super) marker: Ident,
    pub(super) params: Ident,
    /// What it answers with; a notification has no answer.
    pub(super) result: Option<Ident>,
    pub(super) docs: String,
    pub(super) required: bool,
    pub(super) default: Option<&'static str>,
    /// Whether the default answer is that what the request names does not exist.
    pub(super) unknown: bool,
}

impl<'a> Call<'a> {
    /// The method that is called.
    pub(crate) fn method(&self) -> &'a Method {
        self.method
    }

    /// The definition of its params.
    pub(crate) fn params_definition(&self) -> &str {
        self.method.kind.params()
    }

    /// Its function, and the definition of its params.
    pub(crate) fn names(&self) -> (String, String) {
        let params = self.method.kind.params().to_owned();
        (self.function.to_string(), params)
    }
}

/// The methods with their Rust names, in the order of the document.
pub(crate) fn calls<'a>(
    protocol: &'a Protocol,
    model: &Model<'_>,
    overrides: &Overrides,
    options: &Options,
) -> Vec<Call<'a>> {
    let mut calls: Vec<Call<'a>> = protocol
        .methods()
        .map(|method| call(method, model, overrides, options))
        .collect();
    separate_forms(&mut calls);
    calls
}

/// What the docs of params and results say about where they are used.
/// In an extension (`extends`), traits have other names.
pub(crate) fn uses(roles: &[Role], calls: &[Call<'_>], extends: bool) -> BTreeMap<String, String> {
    let (handler, caller) = match extends {
        true => ("Extension", "HandleExt"),
        false => ("", "Handle"),
    };
    let mut uses: BTreeMap<String, String> = BTreeMap::new();
    for role in roles.iter().copied() {
        for call in handled_by(role, calls) {
            let (name, caller) = (role.ident(handler), role.ident(caller));
            let function = &call.function;
            let mut add = |ty: &Ident, text: String| {
                let known = uses.entry(ty.to_string()).or_default();
                if !known.is_empty() {
                    known.push('\n');
                }
                known.push_str(&text);
            };
            add(
                &call.params,
                format!("Handled by [`{name}::{function}`], sent by [`{caller}::{function}`]."),
            );
            if let Some(result) = &call.result {
                add(result, format!("Returned by [`{name}::{function}`]."));
            }
        }
    }
    uses
}

fn call<'a>(
    method: &'a Method,
    model: &Model<'_>,
    overrides: &Overrides,
    options: &Options,
) -> Call<'a> {
    let (params, result) = match &method.kind {
        Kind::Request { params, result } => (params, Some(result)),
        Kind::Notification { params } => (params, None),
    };
    let named = overrides.find(params, |hint| match hint {
        Hint::MethodName(name) => Some(name.to_owned()),
        _ => None,
    });
    let name = named.unwrap_or_else(|| {
        let stem = params
            .strip_suffix("Request")
            .or_else(|| params.strip_suffix("Notification"));
        let stem = stem.filter(|stem| !stem.is_empty());
        stem.unwrap_or(params).to_snake_case()
    });
    // A definition that accepts anything has no type of its own.
    let ty = |name: &str| format_ident!("{}", if model.get(name).is_some() { name } else { ANY });
    let mut docs = method.description.clone().unwrap_or_default();
    let link = match &options.reference {
        // The page has the protocol's own methods.
        Some(page) if !method.name.starts_with('_') => {
            let anchor = method.name.trim_start_matches("$/").replace('/', "-");
            format!("[`{}`]({page}#{anchor})", method.name)
        }
        _ => format!("`{}`", method.name),
    };
    if !docs.is_empty() {
        docs.push_str("\n\n");
    }
    docs.push_str(&format!("Method {link}."));
    Call {
        method,
        marker: identifier(&name.to_upper_camel_case()),
        function: identifier(&name),
        params: ty(params),
        result: result.map(|result| ty(result)),
        docs,
        required: overrides.has(&method.name, Hint::RequiredMethod),
        default: overrides.find(&method.name, |hint| match hint {
            // The expression is written against one document's types.
            Hint::DefaultAnswer(answer) if options.complete => Some(answer),
            _ => None,
        }),
        unknown: overrides.has(&method.name, Hint::UnknownByDefault),
    }
}

/// A method can be a request and a notification, on one side or on different
/// ones; the name of the latter says so, for each has a marker of its own.
fn separate_forms(calls: &mut [Call<'_>]) {
    let requests: BTreeSet<Ident> = calls
        .iter()
        .filter(|call| call.result.is_some())
        .map(|call| call.function.clone())
        .collect();
    for call in calls.iter_mut().filter(|call| call.result.is_none()) {
        if requests.contains(&call.function) {
            call.function = format_ident!("{}_notification", call.function);
            call.marker = format_ident!("{}Notification", call.marker);
        }
    }
}

/// The calls that a side handles.
pub(super) fn handled_by<'a>(
    role: Role,
    calls: &'a [Call<'a>],
) -> impl Iterator<Item = &'a Call<'a>> {
    calls
        .iter()
        .filter(move |call| call.method.side.includes(role.side))
}
