//! Extensions of a protocol whose types exist already: only what an overlay adds.
//!
//! Definitions of the base document become paths into the module that has its types. New
//! methods become a trait per role, a caller trait, and a layer that dispatches them and
//! passes everything else on. New union members and typed keys of free objects become
//! conversions and accessors of the existing types. Every other change of an existing
//! definition needs types of its own, so it is an error.

mod changes;
mod types;

use std::collections::BTreeMap;

use acp_schema::Document;
use proc_macro2::TokenStream;
use syn::Path;

pub(crate) use self::changes::{Member, TypedKey};
use crate::Error;
use crate::dispatch::{self, Call, Role};
use crate::emit::Model;
use crate::lower::is_any;

/// What a document adds to its base.
#[derive(Debug)]
pub(crate) struct Extension {
    /// The document with the definitions of the base unchanged.
    pub(crate) document: Document,
    base: Document,
    /// The module with the types of the base.
    module: String,
    members: Vec<Member>,
    keys: Vec<TypedKey>,
}

impl Extension {
    /// Compares `document` with the document it was made from by overlays.
    ///
    /// # Errors
    /// Fails when the document changes a definition of the base in a way that its Rust type
    /// cannot express, or `module` is not a path.
    pub(crate) fn new(base: &Document, document: &Document, module: &str) -> Result<Self, Error> {
        if syn::parse_str::<Path>(module).is_err() {
            return Err(Error::unsupported(
                "/$defs",
                format!("`{module}` is not the path of a Rust module"),
                "write an absolute path such as `::acp_sdk::v1`",
            ));
        }
        let (members, keys) = changes::find(base, document)?;
        let mut restored = document.clone();
        for (name, schema) in base.defs() {
            let slot = restored.value_mut().pointer_mut("/$defs");
            if let Some(defs) = slot.and_then(serde_json::Value::as_object_mut) {
                defs.insert(name.to_owned(), schema.clone());
            }
        }
        Ok(Self {
            document: restored,
            base: base.clone(),
            module: module.to_owned(),
            members,
            keys,
        })
    }

    /// The paths of the types of the base.
    pub(crate) fn external(&self) -> BTreeMap<String, String> {
        let has_type = |(name, schema): &(&str, &serde_json::Value)| {
            let ignored = schema.get("x-docs-ignore").is_some_and(|flag| flag == true);
            !ignored && !is_any(schema) && !name.is_empty()
        };
        let types = self.base.defs().filter(has_type);
        types
            .map(|(name, _)| (name.to_owned(), self.path(name)))
            .collect()
    }

    /// The path of a type in the module of the base.
    pub(crate) fn path(&self, name: &str) -> String {
        format!("{}::{name}", self.module)
    }

    /// Whether a method is not in the base.
    pub(crate) fn adds(&self, call: &Call<'_>) -> bool {
        self.base.def(call.params_definition()).is_none()
    }

    /// The items beside the types.
    ///
    /// # Errors
    /// When a member or key does not fit.
    pub(crate) fn items(
        &self,
        model: &Model<'_>,
        roles: &[Role],
        calls: &[Call<'_>],
    ) -> Result<Vec<TokenStream>, Error> {
        let mut chunks = dispatch::extension(&self.document, model, roles, calls)?;
        chunks.extend(types::items(model, &self.members, &self.keys)?);
        Ok(chunks)
    }
}
