//! The types of a document, as all files of this folder see them.

use std::collections::{BTreeMap, BTreeSet};

use quote::format_ident;
use syn::{Ident, Type as RustType};

use super::content::not_eq;
use crate::external;
use crate::ir::{Shape, Type};
use crate::skeletons::{Skeleton, Skeletons};

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
        let not_eq = not_eq(types, skeletons);
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

    /// Returns whether the JSON form of a type is an object, also by another name.
    pub(super) fn is_object(&self, name: &str) -> bool {
        let inner = self.unwrapped(name).and_then(|(name, _)| self.get(&name));
        inner.is_some_and(|ty| ty.shape.is_object())
    }

    /// Returns the type inside of a newtype and the number of newtypes around it; a type that is no
    /// newtype as it is.
    pub(crate) fn unwrapped(&self, name: &str) -> Option<(String, usize)> {
        let mut name = name.to_owned();
        // A chain of names has no cycle, which would have no value.
        for newtypes in 0..self.types.len() {
            match (&self.get(&name)?.shape, self.skeletons.get(&name)) {
                (Shape::Wrapper, Some(Skeleton::Newtype(inner))) => name = head(inner).0,
                _ => return Some((name, newtypes)),
            }
        }
        None
    }

    pub(super) fn is_eq(&self, name: &str) -> bool {
        !self.not_eq.contains(name)
    }
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
