//! Definitions that have a Rust type elsewhere: which types that covers, and their paths.
//!
//! The passes treat such a definition like any other, because what refers to it depends on
//! its form. Only its items are left out; a re-export takes their place.

use std::collections::{BTreeMap, BTreeSet};

use acp_schema::Document;
use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use syn::Path;

use crate::Error;
use crate::ir::Type;
use crate::lower::escape;
use crate::refine::identifiers;

/// The paths of external types by their name in the generated module.
#[derive(Default)]
pub(crate) struct Types {
    definitions: BTreeMap<String, Path>,
    /// Types of inline schemas in external definitions.
    inline: BTreeMap<String, Path>,
}

impl Types {
    /// Resolves the table `paths` against the types of a document.
    ///
    /// # Errors
    /// When a definition does not exist or is no type, or a path does not parse.
    pub(crate) fn new(
        document: &Document,
        paths: &BTreeMap<String, String>,
        types: &[Type],
    ) -> Result<Self, Error> {
        let mut found = Self::default();
        for (name, text) in paths {
            let at = format!("/$defs/{}", escape(name));
            let path: Path = syn::parse_str(text).map_err(|_| {
                Error::unsupported(
                    &at,
                    format!("`{text}` is not the path of a Rust type"),
                    "write an absolute path such as `::acp_sdk::v1::SessionId`",
                )
            })?;
            if !types.iter().any(|ty| ty.name == *name && ty.at == at) {
                let problem = match document.def(name) {
                    Some(_) => "no type is generated for the definition",
                    None => "no such definition",
                };
                return Err(Error::unsupported(
                    &at,
                    format!("{problem}, so it cannot be the external type `{text}`"),
                    "correct the name of the external type",
                ));
            }
            let inside = format!("{at}/");
            // A union among the members of an object has the place of the object.
            let is_inside =
                |ty: &&Type| ty.at.starts_with(&inside) || (ty.at == at && ty.name != *name);
            for ty in types.iter().filter(is_inside) {
                let mut path = path.clone();
                if let Some(last) = path.segments.last_mut() {
                    last.ident = format_ident!("{}", ty.name);
                }
                found.inline.insert(ty.name.clone(), path);
            }
            found.definitions.insert(name.clone(), path);
        }
        Ok(found)
    }

    /// Whether the type `name` is defined elsewhere.
    pub(crate) fn contains(&self, name: &str) -> bool {
        self.definitions.contains_key(name) || self.inline.contains_key(name)
    }

    /// Re-exports all definitions, and the inline types that `chunks` use.
    pub(crate) fn reexports(&self, chunks: &[TokenStream]) -> TokenStream {
        let mut used = BTreeSet::new();
        for chunk in chunks {
            identifiers(chunk.clone(), &mut used);
        }
        let inline = self.inline.iter().filter(|(name, _)| used.contains(*name));
        let items = self.definitions.iter().chain(inline).map(|(name, path)| {
            let last = path.segments.last().map(|last| last.ident.to_string());
            let rename = (last.as_deref() != Some(name)).then(|| {
                let name = format_ident!("{name}");
                quote!(as #name)
            });
            quote!(#[doc(no_inline)] pub use #path #rename;)
        });
        quote!(#(#items)*)
    }
}
