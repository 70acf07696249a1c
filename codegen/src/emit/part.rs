//! A field of a struct, as the files that generate its parts see it.

use proc_macro2::TokenStream;
use quote::format_ident;
use syn::{Ident, Type as RustType};

use crate::ir::Field;

/// A field with its Rust name and type.
pub(super) struct Part<'a> {
    pub(super) field: &'a Field,
    pub(super) ident: &'a Ident,
    pub(super) ty: RustType,
    /// The default, if it differs from that of the type.
    pub(super) default: Option<TokenStream>,
}

/// Returns the function with the default of a field, if it differs from that of its type.
pub(super) fn default_name(field: &Ident) -> Ident {
    format_ident!("default_{}", field.to_string().trim_end_matches('_'))
}
