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
use crate::tokens::identifiers;

/// The paths of external types by their name in the generated module.
#[derive(Default)]
pub(crate) struct Types {
    /// Re-exported in any case.
    definitions: BTreeMap<String, Path>,
    /// Re-exported when used: types of inline schemas, and the module that is extended.
    on_use: BTreeMap<String, Path>,
    /// Those that users know by the name of the runtime alone; other names are the definitions'.
    of_runtime: BTreeSet<String>,
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
            let path = parse(&at, text)?;
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
                found.on_use.insert(ty.name.clone(), path);
            }
            found.definitions.insert(name.clone(), path);
        }
        Ok(found)
    }

    /// Adds a type that is no definition, re-exported when it is used.
    ///
    /// # Errors
    /// When the path does not parse.
    pub(crate) fn add(&mut self, name: &str, path: &str) -> Result<(), Error> {
        self.on_use.insert(name.to_owned(), parse("", path)?);
        Ok(())
    }

    /// Has definitions re-exported by the names that their types have in the runtime.
    pub(crate) fn name_as_runtime(&mut self, definitions: impl Iterator<Item = String>) {
        self.of_runtime.extend(definitions);
    }

    /// Has definitions re-exported only when they are used.
    pub(crate) fn reexport_on_use(&mut self) {
        self.on_use.append(&mut self.definitions);
    }

    /// Whether the type `name` is defined elsewhere.
    pub(crate) fn contains(&self, name: &str) -> bool {
        self.definitions.contains_key(name) || self.on_use.contains_key(name)
    }

    /// Re-exports all definitions, and the other types that `chunks` use.
    pub(crate) fn reexports(&self, chunks: &[TokenStream]) -> TokenStream {
        let mut found = BTreeSet::new();
        for chunk in chunks {
            identifiers(chunk.clone(), &mut found);
        }
        let used = self.on_use.iter().filter(|(name, _)| found.contains(*name));
        let items = self.definitions.iter().chain(used).map(|(name, path)| {
            let last = path.segments.last().map(|last| last.ident.to_string());
            let ident = format_ident!("{name}");
            let alias = quote!(use #path as #ident;);
            match (
                last.as_deref() == Some(name),
                self.of_runtime.contains(name),
            ) {
                (true, _) => quote!(#[doc(no_inline)] pub use #path;),
                (false, false) => quote!(#[doc(no_inline)] pub #alias),
                (false, true) => quote! {
                    #[doc(no_inline)]
                    pub use #path;
                    #[allow(unused_imports)]
                    #alias
                },
            }
        });
        quote!(#(#items)*)
    }
}

fn parse(at: &str, path: &str) -> Result<Path, Error> {
    syn::parse_str(path).map_err(|_| {
        Error::unsupported(
            at,
            format!("`{path}` is not the path of a Rust type"),
            "write an absolute path such as `::acp_sdk::v1::SessionId`",
        )
    })
}
