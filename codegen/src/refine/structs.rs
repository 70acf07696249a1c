//! Struct items: fields with their docs and serde attributes.

use heck::ToLowerCamelCase as _;
use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use syn::{Ident, Type as RustType};

use super::{Model, construct, decode, defaults, described, traits, unwrap_option, written};
use crate::Error;
use crate::ir::{Field, Presence, Type};

/// A field with what typify made of it.
pub(super) struct Part<'a> {
    pub(super) field: &'a Field,
    pub(super) ident: &'a Ident,
    pub(super) ty: RustType,
    /// The default that is not the type's own.
    pub(super) default: Option<TokenStream>,
}

pub(super) fn items(
    model: &Model<'_>,
    ty: &Type,
    fields: &[Field],
    usage: Option<&str>,
) -> Result<TokenStream, Error> {
    let parts: Vec<Part<'_>> = fields
        .iter()
        .map(|field| part(model, ty, field))
        .collect::<Result<_, _>>()?;
    let name = format_ident!("{}", ty.name);
    let flattened = fields.iter().any(|field| field.flattened);
    let required = parts
        .iter()
        .any(|part| part.field.presence == Presence::Required);
    let own_defaults = parts.iter().all(|part| part.default.is_none());

    let mut derived = Vec::new();
    if !required && own_defaults {
        derived.push("Default");
    }
    derived.push("Serialize");
    let head = described(ty.docs.as_deref(), &format!("The object `{name}`."));
    let usage = usage.map(|usage| written(&format!("\n{usage}")));
    let derives = traits::derives(model, ty, &derived);
    let rename_all = parts.iter().any(|part| {
        let ident = part.ident.to_string();
        !part.field.flattened
            && ident != part.field.wire
            && ident.to_lower_camel_case() == part.field.wire
    });
    let rename_all = rename_all.then(|| quote!(rename_all = "camelCase",));
    let members = parts.iter().map(|part| member(part, rename_all.is_some()));
    let construct = construct::items(model, &name, &parts, required, own_defaults);
    let decode = decode::items(model, &name, &parts, flattened);
    Ok(quote! {
        #head
        #usage
        #derives
        #[serde(#rename_all crate = "::acp_sdk::runtime::serde")]
        #[non_exhaustive]
        pub struct #name { #(#members,)* }

        #construct
        #decode
    })
}

fn part<'a>(model: &Model<'a>, ty: &Type, field: &'a Field) -> Result<Part<'a>, Error> {
    let slot = model.skeletons.slot(&ty.name, &field.wire)?;
    let rust = slot.ty.clone().ok_or_else(|| {
        Error::Typify(format!(
            "field `{}` of `{}` has no type",
            field.wire, ty.name
        ))
    })?;
    let rust = match field.presence {
        Presence::Patch => {
            let inner = unwrap_option(&rust);
            syn::parse_quote!(Patch<#inner>)
        }
        _ => rust,
    };
    let at = format!("{}/properties/{}", ty.at, field.wire);
    let default = match &field.presence {
        Presence::Default(value) => defaults::expression(model, &at, &rust, value)?,
        _ => None,
    };
    Ok(Part {
        field,
        ident: &slot.ident,
        ty: rust,
        default,
    })
}

fn member(part: &Part<'_>, rename_all: bool) -> TokenStream {
    let Part {
        field, ident, ty, ..
    } = part;
    let docs = described(
        field.docs.as_deref(),
        &format!("The member `{}`.", field.wire),
    );
    let attributes = attributes(part, rename_all);
    let attributes = (!attributes.is_empty()).then(|| quote!(#[serde(#(#attributes),*)]));
    quote!(#docs #attributes pub #ident: #ty)
}

/// The serde attributes of a field, for writing.
fn attributes(part: &Part<'_>, rename_all: bool) -> Vec<TokenStream> {
    let Part {
        field, ident, ty, ..
    } = part;
    let mut attributes = Vec::new();
    let ident = ident.to_string();
    let natural = if rename_all {
        ident.to_lower_camel_case()
    } else {
        ident
    };
    if field.flattened {
        attributes.push(quote!(flatten));
    } else if natural != field.wire {
        let wire = &field.wire;
        attributes.push(quote!(rename = #wire));
    }
    let test = match &field.presence {
        Presence::Required | Presence::Default(_) => return attributes,
        Presence::Optional => "Option::is_none".to_owned(),
        Presence::Patch => "Patch::is_absent".to_owned(),
        Presence::Empty => format!("{}::is_empty", super::head(ty).0),
    };
    attributes.push(quote!(skip_serializing_if = #test));
    attributes
}
