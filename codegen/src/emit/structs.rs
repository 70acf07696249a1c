//! Generates structs: fields with their docs.

use proc_macro2::TokenStream;
use quote::{format_ident, quote};

use super::docs::{described, written};
use super::model::{Model, unwrap_option};
use super::part::Part;
use super::{construct, decode, defaults, traits};
use crate::Error;
use crate::ir::{Field, Presence, Type};
use crate::lower::escape;

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
    let required = parts
        .iter()
        .any(|part| part.field.presence == Presence::Required);
    let own_defaults = parts.iter().all(|part| part.default.is_none());

    let derived: &[&str] = match !required && own_defaults {
        true => &["Default"],
        false => &[],
    };
    let head = described(ty.docs.as_deref(), &format!("The object `{name}`."));
    let usage = usage.map(|usage| written(&format!("\n{usage}")));
    let derives = traits::derives(model, ty, derived);
    let members = parts.iter().map(member);
    let construct = construct::items(model, &name, &parts, required, own_defaults);
    let decode = decode::items(model, &name, &parts);
    Ok(quote! {
        #head
        #usage
        #derives
        #[non_exhaustive]
        pub struct #name { #(#members,)* }

        #construct
        #decode
    })
}

fn part<'a>(model: &Model<'a>, ty: &Type, field: &'a Field) -> Result<Part<'a>, Error> {
    let slot = model.skeletons.slot(&ty.name, &field.wire)?;
    let rust = slot.ty.clone().ok_or_else(|| {
        Error::Passes(format!(
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
    let at = format!("{}/properties/{}", ty.at, escape(&field.wire));
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

fn member(part: &Part<'_>) -> TokenStream {
    let Part {
        field, ident, ty, ..
    } = part;
    let docs = described(
        field.docs.as_deref(),
        &format!("The member `{}`.", field.wire),
    );
    quote!(#docs pub #ident: #ty)
}
