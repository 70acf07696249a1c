//! Generates unions: enums of newtype variants, identified by a tag or by their JSON kind.

use std::collections::{BTreeMap, BTreeSet};

use proc_macro2::TokenStream;
use quote::{ToTokens as _, format_ident, quote};
use syn::Ident;

use super::docs::described;
use super::model::{Model, catch_all, head};
use super::traits;
use crate::Error;
use crate::ir::{Content, Field, Form, Place, Presence, Shape, Type, Union, Variant};
use crate::skeletons::Slot;

pub(super) fn items(model: &Model<'_>, ty: &Type, union: &Union) -> Result<TokenStream, Error> {
    let name = format_ident!("{}", ty.name);
    let slots: Vec<(&Variant, &Slot)> = union
        .variants
        .iter()
        .map(|variant| Ok((variant, model.skeletons.slot(&ty.name, &variant.key)?)))
        .collect::<Result<_, Error>>()?;
    let froms = froms(model, &ty.name, union);
    let key = |slot: &&Slot| Some(slot.ty.as_ref()?.to_token_stream().to_string());
    let mut seen: BTreeSet<String> = froms.iter().filter_map(key).collect();
    let text = text_from(model, &name, &slots).filter(|_| seen.insert("String".into()));
    let inner = inner_froms(model, ty, &slots, &mut seen);
    let froms = froms.into_iter().map(|slot| {
        let (ident, payload) = (&slot.ident, &slot.ty);
        let text = slot.ty.as_ref().is_some_and(|ty| head(ty).0 == "String");
        let borrowed = text.then(|| {
            quote! {
                impl From<&str> for #name {
                    fn from(value: &str) -> Self { Self::#ident(value.to_owned()) }
                }
            }
        });
        quote! {
            impl From<#payload> for #name {
                fn from(value: #payload) -> Self { Self::#ident(value) }
            }

            #borrowed
        }
    });
    let other = catch_all(slots.iter().map(|(_, slot)| &slot.ident));
    let unknown = described(ty.unknown.as_deref(), "Any other variant, unchanged.");
    let (unknown, decode) = match &union.tag {
        Some(tag) => (
            Some(quote!(#unknown #other(UnknownVariant),)),
            tagged(&name, tag, &slots, &other),
        ),
        None => (None, untagged(model, &name, &slots)),
    };
    let variants = slots.iter().map(|(variant, slot)| {
        let docs = described(variant.docs.as_deref(), &format!("`{}`", variant.key));
        let ident = &slot.ident;
        let payload = slot.ty.as_ref().map(|ty| quote!((#ty)));
        quote!(#docs #ident #payload)
    });
    let head = described(ty.docs.as_deref(), "A union.");
    let hash = traits::is_hash(model, ty).then_some("Hash");
    let derives = traits::derives(model, ty, hash.as_slice());
    Ok(quote! {
        #head
        #derives
        #[non_exhaustive]
        pub enum #name {
            #(#variants,)*
            #unknown
        }

        #(#froms)*
        #(#inner)*
        #text
        #decode
    })
}

fn tagged(name: &Ident, tag: &str, slots: &[(&Variant, &Slot)], other: &Ident) -> TokenStream {
    let arms = slots.iter().map(|(variant, slot)| {
        let (key, ident) = (&variant.key, &slot.ident);
        match variant.content {
            Content::Unit => quote!(#key => variant.unit().map(|()| Self::#ident)),
            _ => quote!(#key => variant.payload().map(Self::#ident)),
        }
    });
    let default = slots
        .iter()
        .find_map(|(variant, slot)| match variant.content {
            Content::Default { takes_unknown } => Some((*slot, takes_unknown)),
            _ => None,
        });
    let fallback = match default {
        Some((Slot { ident, .. }, true)) => {
            quote!(variant.payload_or_unknown(other, Self::#ident, Self::#other))
        }
        _ => quote!(variant.unknown(other).map(Self::#other)),
    };
    let untagged = default.map(|(slot, _)| {
        let ident = &slot.ident;
        quote! {
            fn read_untagged(variant: VariantReader<'_, '_>) -> Result<Self, StrictError> {
                variant.payload().map(Self::#ident)
            }
        }
    });
    let or = default.map(|(slot, takes_unknown)| {
        let payload = &slot.ty;
        match takes_unknown {
            true => quote!(otherwise #payload),
            false => quote!(or #payload),
        }
    });
    let known = slots.iter().filter_map(|(variant, slot)| {
        let (key, payload) = (&variant.key, payload(slot));
        match variant.content {
            Content::Default { .. } => None,
            Content::Unit => Some(quote!(#key: ())),
            _ => Some(quote!(#key: #payload)),
        }
    });
    let written = slots.iter().map(|(variant, slot)| {
        let (key, ident) = (&variant.key, &slot.ident);
        match variant.content {
            Content::Default { .. } => quote! {
                Self::#ident(payload) => runtime::Members::write(payload, out)
            },
            Content::Unit => quote! {
                Self::#ident => runtime::write_variant(out, [#tag, #key], &())
            },
            _ => quote! {
                Self::#ident(payload) => runtime::write_variant(out, [#tag, #key], payload)
            },
        }
    });
    quote! {
        impl TaggedUnion for #name {
            const TAG: &'static str = #tag;

            fn read(tag: &str, variant: VariantReader<'_, '_>) -> Result<Self, StrictError> {
                match tag {
                    #(#arms,)*
                    other => #fallback,
                }
            }

            #untagged
        }

        impl runtime::Members for #name {
            fn write<M: runtime::serde::ser::SerializeMap>(
                &self,
                out: &mut M,
            ) -> Result<(), M::Error> {
                match self {
                    #(#written,)*
                    Self::#other(variant) => runtime::Members::write(variant, out),
                }
            }
        }

        runtime::tagged_union!(#name [#tag] #or { #(#known),* });
    }
}

fn untagged(model: &Model<'_>, name: &Ident, slots: &[(&Variant, &Slot)]) -> TokenStream {
    if slots
        .iter()
        .all(|(variant, _)| variant.content == Content::Object)
    {
        let branches = slots.iter().map(|(_, slot)| {
            let (ident, payload, names) = (&slot.ident, payload(slot), required(model, slot));
            quote!(#ident: #payload = [#(#names),*])
        });
        return quote!(runtime::object_union!(#name { #(#branches),* }););
    }
    let branches = slots.iter().map(|(variant, slot)| {
        let (ident, payload) = (&slot.ident, payload(slot));
        let form = format_ident!("{}", form(variant.content));
        quote!(#ident: #payload = #form)
    });
    let written = slots.iter().map(|(variant, slot)| {
        let ident = &slot.ident;
        match variant.content {
            Content::Null => quote!(Self::#ident => serializer.serialize_unit()),
            _ => quote!(Self::#ident(value) => value.serialize(serializer)),
        }
    });
    quote! {
        impl Serialize for #name {
            fn serialize<S: runtime::serde::Serializer>(
                &self,
                serializer: S,
            ) -> Result<S::Ok, S::Error> {
                match self { #(#written,)* }
            }
        }

        runtime::value_union!(#name { #(#branches),* });
    }
}

/// Returns the type of a variant's payload.
fn payload(slot: &Slot) -> TokenStream {
    slot.ty
        .as_ref()
        .map_or_else(|| quote!(()), |ty| quote!(#ty))
}

/// Generates conversions from the only field of a payload that is defined inline, except from
/// types in `seen`.
fn inner_froms(
    model: &Model<'_>,
    ty: &Type,
    slots: &[(&Variant, &Slot)],
    seen: &mut BTreeSet<String>,
) -> Vec<TokenStream> {
    let name = format_ident!("{}", ty.name);
    let inner = slots.iter().filter_map(|(_, slot)| {
        let payload = head(slot.ty.as_ref()?).0;
        let inline = model.get(&payload)?;
        let Shape::Struct(fields) = &inline.shape else {
            return None;
        };
        let [
            Field {
                presence: Presence::Required,
                wire,
                place: Place::Member,
                ..
            },
        ] = &fields[..]
        else {
            return None;
        };
        if !inline.at.starts_with(&format!("{}/", ty.at)) {
            return None;
        }
        let field = model.skeletons.slot(&payload, wire).ok()?.ty.as_ref()?;
        if !seen.insert(field.to_token_stream().to_string()) {
            return None;
        }
        let (variant, payload) = (&slot.ident, &slot.ty);
        Some(quote! {
            impl From<#field> for #name {
                fn from(value: #field) -> Self { Self::#variant(#payload::new(value)) }
            }
        })
    });
    inner.collect()
}

/// Generates the conversion from a string, if a variant holds only text: the name of its only
/// required member equals its tag.
fn text_from(model: &Model<'_>, name: &Ident, slots: &[(&Variant, &Slot)]) -> Option<TokenStream> {
    slots.iter().find_map(|(variant, slot)| {
        let payload = head(slot.ty.as_ref()?).0;
        let field = model.skeletons.slot(&payload, &variant.key).ok()?;
        let text = head(field.ty.as_ref()?).0 == "String";
        if !text || required(model, slot) != [&variant.key] {
            return None;
        }
        let (variant, payload) = (&slot.ident, &slot.ty);
        Some(quote! {
            impl From<&str> for #name {
                fn from(value: &str) -> Self { Self::#variant(#payload::new(value)) }
            }

            impl From<String> for #name {
                fn from(value: String) -> Self { Self::#variant(#payload::new(value)) }
            }
        })
    })
}

/// Returns the required members of the payload of a variant.
fn required<'a>(model: &Model<'a>, slot: &Slot) -> Vec<&'a str> {
    let name = slot.ty.as_ref().map(|ty| head(ty).0).unwrap_or_default();
    let Some(Shape::Struct(fields)) = model.get(&name).map(|ty| &ty.shape) else {
        return Vec::new();
    };
    let required =
        |field: &&Field| field.presence == Presence::Required && field.place == Place::Member;
    fields
        .iter()
        .filter(required)
        .map(|field| field.wire.as_str())
        .collect()
}

/// Returns the JSON kind of a variant, as the runtime names it.
fn form(content: Content) -> &'static str {
    match content {
        Content::Null => "Null",
        Content::Object => "Object",
        Content::Value(form) => match form {
            Form::Boolean => "Boolean",
            Form::Number => "Number",
            Form::String => "String",
            Form::Array => "Array",
            Form::Any => "Any",
        },
        Content::Unit | Content::Payload | Content::Default { .. } => "Any",
    }
}

/// Returns whether a conversion into the union exists.
pub(super) fn has_from(model: &Model<'_>, name: &str, union: &Union) -> bool {
    !froms(model, name, union).is_empty()
}

/// Returns the variants whose payload type is unique in the union.
fn froms<'a>(model: &Model<'a>, name: &str, union: &Union) -> Vec<&'a Slot> {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    let slots: Vec<&Slot> = union
        .variants
        .iter()
        .filter_map(|variant| model.skeletons.slot(name, &variant.key).ok())
        .filter(|slot| slot.ty.is_some())
        .collect();
    let key = |slot: &Slot| slot.ty.as_ref().map(|ty| ty.to_token_stream().to_string());
    for slot in &slots {
        *counts.entry(key(slot).unwrap_or_default()).or_default() += 1;
    }
    slots
        .into_iter()
        .filter(|slot| counts.get(&key(slot).unwrap_or_default()) == Some(&1))
        .collect()
}
