//! Conversions and accessors of existing types for what an extension adds to them.

use std::collections::BTreeMap;

use heck::ToSnakeCase as _;
use proc_macro2::TokenStream;
use quote::{format_ident, quote};

use super::{Member, TypedKey};
use crate::Error;
use crate::emit::{Model, accessors, catch_all, described, written};
use crate::ir::{Field, Presence, Shape, Typed};
use crate::lower::escape;

pub(super) fn items(
    model: &Model<'_>,
    members: &[Member],
    keys: &[TypedKey],
) -> Result<Vec<TokenStream>, Error> {
    let mut chunks = Vec::new();
    for (index, member) in members.iter().enumerate() {
        let earlier = members.get(..index).unwrap_or_default();
        let same = |other: &Member| other.union == member.union && other.payload == member.payload;
        if !model.is_own(&member.payload) || earlier.iter().any(same) {
            return Err(Error::unsupported(
                format!("/$defs/{}", escape(&member.union)),
                format!(
                    "the member `{}` of the union needs a new definition for itself alone",
                    member.value
                ),
                "define a type for it and refer to that",
            ));
        }
        chunks.push(conversions(model, member));
    }
    let mut by_definition: BTreeMap<&str, Vec<&TypedKey>> = BTreeMap::new();
    for key in keys {
        by_definition.entry(&key.definition).or_default().push(key);
    }
    for (definition, keys) in by_definition {
        chunks.push(typed_keys(model, definition, &keys)?);
    }
    Ok(chunks)
}

/// Conversions between a union and the type of a member that the union does not know.
fn conversions(model: &Model<'_>, member: &Member) -> TokenStream {
    let (union, payload) = (
        format_ident!("{}", member.union),
        format_ident!("{}", member.payload),
    );
    let slots = model.skeletons.slots(&member.union);
    let unknown = catch_all(slots.iter().map(|slot| &slot.ident));
    let (tag, value) = (&member.tag, &member.value);
    let function = format_ident!("from_{}", member.union.to_snake_case());
    let head = written(&format!(
        "Returns the value of a [`{union}`] whose `{tag}` is `{value}`.\n\n\
         `None` for every other variant and for invalid members."
    ));
    let about = member.docs.as_deref().map(|docs| {
        let docs = described(Some(docs), "");
        quote!(#[doc = ""] #docs)
    });
    quote! {
        impl #payload {
            #head
            #about
            #[must_use]
            pub fn #function(value: &#union) -> Option<Self> {
                match value {
                    #union::#unknown(variant) => {
                        runtime::payload_of(#value, variant)
                    }
                    _ => None,
                }
            }
        }

        impl From<#payload> for #union {
            fn from(value: #payload) -> Self {
                Self::#unknown(runtime::variant_of(#tag, #value, &value))
            }
        }
    }
}

/// A trait with a getter and a setter for each typed key of a definition.
fn typed_keys(
    model: &Model<'_>,
    definition: &str,
    keys: &[&TypedKey],
) -> Result<TokenStream, Error> {
    let (name, ty) = (
        format_ident!("{definition}Ext"),
        format_ident!("{definition}"),
    );
    let (mut declared, mut implemented) = (Vec::new(), Vec::new());
    for key in keys {
        let slot = model.skeletons.slot(definition, &key.property)?;
        let optional = presence(model, definition, &key.property) == Some(Presence::Optional);
        let typed = Typed {
            key: key.key.clone(),
            docs: key.docs.clone(),
            ty: key.ty.clone(),
        };
        let accessors = accessors(&slot.ident, &ty, optional, &typed);
        declared.push(accessors.declared());
        implemented.push(accessors.implemented());
    }
    let head = written(&format!("Typed keys of the open objects in [`{ty}`]."));
    Ok(quote! {
        #head
        pub trait #name: Sized { #(#declared)* }

        impl #name for #ty { #(#implemented)* }
    })
}

fn presence(model: &Model<'_>, definition: &str, property: &str) -> Option<Presence> {
    let Shape::Struct(fields) = &model.get(definition)?.shape else {
        return None;
    };
    let found = fields.iter().find(|field: &&Field| field.wire == property);
    found.map(|field| field.presence.clone())
}
