//! Generates the items of types: docs, constructors, serde.
//!
//! Each file adds one aspect to the skeleton of a type.

mod accessors;
mod construct;
mod decode;
mod defaults;
mod docs;
mod strings;
mod structs;
mod traits;
mod unions;

use std::collections::{BTreeMap, BTreeSet};

use proc_macro2::{TokenStream, TokenTree};
use quote::{format_ident, quote};
use syn::{Ident, Type as RustType};

pub(crate) use self::accessors::accessors;
pub(crate) use self::docs::{described, written};
pub(crate) use self::strings::codes;
use crate::ir::{Shape, Type};
use crate::names::RUNTIME;
use crate::typify_adapter::{Skeleton, Skeletons};
use crate::{Error, external};

/// The types of a document with their skeletons.
pub(crate) struct Model<'a> {
    pub(crate) types: &'a [Type],
    pub(crate) skeletons: &'a Skeletons,
    by_name: BTreeMap<&'a str, &'a Type>,
    not_eq: BTreeSet<&'a str>,
    external: &'a external::Types,
}

impl<'a> Model<'a> {
    pub(crate) fn new(
        types: &'a [Type],
        skeletons: &'a Skeletons,
        external: &'a external::Types,
    ) -> Self {
        let by_name = types.iter().map(|ty| (ty.name.as_str(), ty)).collect();
        let not_eq = traits::not_eq(types, skeletons);
        Self {
            types,
            skeletons,
            by_name,
            not_eq,
            external,
        }
    }

    /// Returns the types to generate: all except external ones.
    pub(crate) fn own_types(&self) -> impl Iterator<Item = &'a Type> {
        let external = self.external;
        let own = move |ty: &&Type| !external.contains(&ty.name);
        self.types.iter().filter(own)
    }

    /// Returns whether the type `name` is generated.
    pub(crate) fn is_own(&self, name: &str) -> bool {
        self.by_name.contains_key(name) && !self.external.contains(name)
    }

    pub(crate) fn get(&self, name: &str) -> Option<&'a Type> {
        self.by_name.get(name).copied()
    }

    fn is_eq(&self, name: &str) -> bool {
        !self.not_eq.contains(name)
    }
}

/// Returns the imports that `chunks` need, and no others.
pub(crate) fn imports(chunks: &[TokenStream]) -> TokenStream {
    let mut used = BTreeSet::new();
    chunks
        .iter()
        .for_each(|chunk| identifiers(chunk.clone(), &mut used));
    let names = |names: &[&str]| {
        let names = names.iter().filter(|name| used.contains(**name));
        names
            .map(|name| format_ident!("{name}"))
            .collect::<Vec<_>>()
    };
    let arc = used.contains("Arc").then(|| {
        quote!(
            use ::std::sync::Arc;
        )
    });
    let serde = names(&["Deserialize", "Serialize"]);
    let serde = (!serde.is_empty()).then(|| quote!(use ::acp_sdk::runtime::serde::{#(#serde),*};));
    let runtime = names(RUNTIME);
    let runtime = match (used.contains("runtime"), runtime.as_slice()) {
        (true, []) => Some(quote!(
            use ::acp_sdk::runtime;
        )),
        (true, names) => Some(quote!(use ::acp_sdk::runtime::{self, #(#names),*};)),
        (false, []) => None,
        (false, names) => Some(quote!(use ::acp_sdk::runtime::{#(#names),*};)),
    };
    quote! {
        #arc
        #serde
        #runtime
    }
}

/// Adds the identifiers among `tokens` to `found`.
pub(crate) fn identifiers(tokens: TokenStream, found: &mut BTreeSet<String>) {
    for token in tokens {
        match token {
            TokenTree::Ident(ident) => {
                found.insert(ident.to_string());
            }
            TokenTree::Group(group) => identifiers(group.stream(), found),
            TokenTree::Literal(_) | TokenTree::Punct(_) => {}
        }
    }
}

/// Generates the items of all types, a chunk per type. `uses` has a note about the use of a type.
///
/// # Errors
/// Fails when a default has no Rust expression.
pub(crate) fn types(
    model: &Model<'_>,
    uses: &BTreeMap<String, String>,
) -> Result<Vec<TokenStream>, Error> {
    let one = |ty| one(model, ty, uses);
    model.own_types().map(one).collect()
}

fn one(
    model: &Model<'_>,
    ty: &Type,
    uses: &BTreeMap<String, String>,
) -> Result<TokenStream, Error> {
    match &ty.shape {
        Shape::Struct(fields) => {
            let usage = uses.get(&ty.name).map(String::as_str);
            structs::items(model, ty, fields, usage)
        }
        Shape::Id => Ok(strings::id(ty)),
        Shape::Text(values) => strings::text(model, ty, values),
        Shape::Integer(values) => Ok(strings::integer(model, ty, values)),
        Shape::Union(union) => unions::items(model, ty, union),
        Shape::Wrapper => wrapper(model, ty),
    }
}

fn wrapper(model: &Model<'_>, ty: &Type) -> Result<TokenStream, Error> {
    let Some(Skeleton::Newtype(inner)) = model.skeletons.get(&ty.name) else {
        return Err(Error::Typify(format!("`{}` is no newtype", ty.name)));
    };
    let name = format_ident!("{}", ty.name);
    let docs = described(ty.docs.as_deref(), "A newtype.");
    let derives = traits::derives(model, ty, &[]);
    Ok(quote! {
        #docs
        #derives
        pub struct #name(pub #inner);

        runtime::wrapper!(#name, #inner);
    })
}

/// Name of the catch-all variant.
pub(crate) fn catch_all<'a>(mut idents: impl Iterator<Item = &'a Ident>) -> Ident {
    let taken = idents.any(|ident| ident == "Unknown");
    format_ident!("{}", if taken { "Unrecognized" } else { "Unknown" })
}

/// Returns the last segment of a path type and its first argument: `("Vec", T)` for `Vec<T>`.
pub(crate) fn head(ty: &RustType) -> (String, Option<&RustType>) {
    let RustType::Path(path) = ty else {
        return (String::new(), None);
    };
    let Some(last) = path.path.segments.last() else {
        return (String::new(), None);
    };
    let argument = match &last.arguments {
        syn::PathArguments::AngleBracketed(arguments) => {
            arguments.args.iter().find_map(|argument| match argument {
                syn::GenericArgument::Type(ty) => Some(ty),
                _ => None,
            })
        }
        _ => None,
    };
    (last.ident.to_string(), argument)
}

/// Returns the type inside `Option<…>`, or the type itself.
pub(crate) fn unwrap_option(ty: &RustType) -> &RustType {
    match head(ty) {
        (name, Some(inner)) if name == "Option" => inner,
        _ => ty,
    }
}
