//! Generates the conversion of a union, and compares the values of enums.

use proc_macro2::TokenStream;
use quote::quote;
use serde_json::Value;
use syn::Type as RustType;

use super::document::{Fate, Variant as Rule, Version};
use super::values::Limits;
use super::{Context, Conversion, path};
use crate::Error;
use crate::emit::catch_all;
use crate::ir::{Constant, Content, Type, Union, Variant};
use crate::lower::branches;
use crate::skeletons::Slot;

/// The name of the variants that a document does not know, in the mapping.
const UNKNOWN: &str = "*";

/// Generates the body of the conversion of a union.
///
/// # Errors
/// Fails when a variant has no equal and no row.
pub(super) fn body(
    context: &Context<'_>,
    conversion: &Conversion<'_>,
    from: &Union,
    to: &Union,
) -> Result<TokenStream, Error> {
    let one = OneUnion {
        context,
        conversion,
        from,
        to,
    };
    for rule in one.rules() {
        one.check(rule)?;
    }
    let mut arms = Vec::new();
    for variant in &from.variants {
        arms.push(one.arm(variant)?);
    }
    if from.tag.is_some() {
        arms.push(one.unknown()?);
    }
    Ok(quote!(Some(match self { #(#arms,)* })))
}

/// Compares the values of two enums.
///
/// # Errors
/// Fails when a value has no equal and no row.
pub(super) fn values(
    context: &Context<'_>,
    conversion: &Conversion<'_>,
    from: &[Constant<String>],
    to: &[Constant<String>],
) -> Result<(), Error> {
    let rules = conversion.row.map_or(&[][..], |row| &row.variants);
    for value in from {
        let name = Some(value.value.as_str());
        let in_row = |rule: &&Rule| rule.names.of(conversion.from()).as_deref() == name;
        let has_equal = to.iter().any(|other| other.value == value.value);
        let is_kept = rules
            .iter()
            .find(in_row)
            .map(|rule| matches!(rule.fate, Fate::Kept));
        if !has_equal && is_kept != Some(true) {
            return Err(no_equal(context, conversion, &value.value, "kept"));
        }
    }
    for rule in rules {
        let name = rule.names.of(conversion.from()).as_deref();
        if name.is_some() && !from.iter().any(|value| Some(value.value.as_str()) == name) {
            let message = format!("`{}` has no such value", conversion.source.name);
            return Err(rule
                .at
                .error(message, "correct the name, or remove the row"));
        }
    }
    Ok(())
}

struct OneUnion<'a> {
    context: &'a Context<'a>,
    conversion: &'a Conversion<'a>,
    from: &'a Union,
    to: &'a Union,
}

impl OneUnion<'_> {
    fn rules(&self) -> &[Rule] {
        self.conversion.row.map_or(&[][..], |row| &row.variants)
    }

    /// Returns the row of a variant of the source.
    fn rule(&self, key: &str) -> Option<&Rule> {
        let Conversion { to, .. } = self.conversion;
        self.rules().iter().find(|rule| {
            rule.names.of(to.other()).as_deref() == Some(key)
                && rule.only.is_none_or(|only| only == *to)
        })
    }

    /// Fails when a row names a variant that does not exist.
    fn check(&self, rule: &Rule) -> Result<(), Error> {
        let Conversion { to, .. } = self.conversion;
        for (version, union) in [(to.other(), self.from), (*to, self.to)] {
            let Some(key) = rule.names.of(version) else {
                continue;
            };
            if key != UNKNOWN && !union.variants.iter().any(|variant| variant.key == *key) {
                let keys: Vec<&str> = union
                    .variants
                    .iter()
                    .map(|variant| variant.key.as_str())
                    .collect();
                let message = format!("{} has no variant `{key}`", version.name());
                let help = format!("use one of {}, or remove the row", keys.join(", "));
                return Err(rule.at.error(message, help));
            }
        }
        Ok(())
    }

    fn arm(&self, variant: &Variant) -> Result<TokenStream, Error> {
        let Conversion { to, target, .. } = self.conversion;
        let key = &variant.key;
        let slot = self.slot(to.other(), key)?;
        let ident = &slot.ident;
        let (pattern, argument) = match &slot.ty {
            Some(_) => (quote!(Self::#ident(value)), quote!(value, losses)),
            None => (quote!(Self::#ident), quote!(losses)),
        };
        let rule = self.rule(key);
        if let Some(function) = rule.and_then(|rule| rule.fate.by(*to)) {
            let function = self.conversion.function(function);
            return Ok(quote!(#pattern => #function(#argument)?));
        }
        let renamed = rule.and_then(|rule| rule.names.of(*to).as_deref());
        let mut report = None;
        match (rule.map(|rule| &rule.fate), renamed) {
            (Some(Fate::Lost(reason)), None) => {
                return Ok(quote!(Self::#ident { .. } => return losses.none(#reason)));
            }
            (Some(Fate::Lost(reason)), Some(_)) => {
                let tag = self.from.tag.as_deref().unwrap_or_default();
                report = Some(quote!(losses.lost(#tag, #reason);));
            }
            (Some(Fate::Kept), _) if self.to.tag.is_some() => {
                let (target, other) = (path(*to, &target.name), self.catch_all(*to));
                return Ok(quote! {
                    other @ Self::#ident { .. } => #target::#other(kept(#key, &other, losses)?)
                });
            }
            _ => {}
        }
        let equal = renamed.unwrap_or(key);
        let equal = self.to.variants.iter().find(|variant| variant.key == equal);
        let Some(equal) = equal else {
            return Err(no_equal(self.context, self.conversion, key, "lost"));
        };
        let next = self.slot(*to, &equal.key)?;
        let (target, next_ident) = (path(*to, &target.name), &next.ident);
        let value = match (&slot.ty, &next.ty) {
            (None, None) => return Ok(quote!(#pattern => { #report #target::#next_ident })),
            (None, Some(_)) => quote!(Default::default()),
            (Some(_), None) => {
                return Ok(quote!(#pattern => {
                    if !is_default(&value) { losses.lost("", "the variant has no members"); }
                    #target::#next_ident
                }));
            }
            (Some(a), Some(b)) => {
                self.has_conversion(key, a, b)?;
                let source = self.limits(to.other(), self.conversion.source, key);
                let limits = self
                    .limits(*to, self.conversion.target, &equal.key)
                    .beyond(source);
                match limits {
                    Some(limits) => {
                        quote!(limit("", value.convert(losses), #limits, losses)?)
                    }
                    None => quote!(value.convert(losses)?),
                }
            }
        };
        Ok(quote!(#pattern => { #report #target::#next_ident(#value) }))
    }

    /// Generates the arm of variants that the source does not know.
    fn unknown(&self) -> Result<TokenStream, Error> {
        let Conversion {
            row, to, target, ..
        } = self.conversion;
        let ident = self.catch_all(to.other());
        let rule = self.rule(UNKNOWN);
        if let Some(function) = rule.and_then(|rule| rule.fate.by(*to)) {
            let function = self.conversion.function(function);
            return Ok(quote!(Self::#ident(value) => #function(value, losses)?));
        }
        if let Some(Fate::Lost(reason)) = rule.map(|rule| &rule.fate) {
            return Ok(quote!(Self::#ident(_) => return losses.none(#reason)));
        }
        if self.to.tag.is_none() {
            return Err(no_equal(self.context, self.conversion, UNKNOWN, "lost"));
        }
        let renames = row.map_or(&[][..], |row| &row.unknown);
        let renames = renames.iter().map(|names| {
            let (from, to) = (names.of(to.other()), names.of(*to));
            quote!((#from, #to))
        });
        let known = self
            .to
            .variants
            .iter()
            .filter(|variant| self.is_reread(variant));
        let known = known.map(|variant| &variant.key);
        let required = self.required();
        let (target, other) = (path(*to, &target.name), self.catch_all(*to));
        Ok(quote! {
            Self::#ident(value) => {
                unknown(value, &[#(#renames),*], &[#(#known),*], &[#(#required),*], #target::#other, losses)?
            }
        })
    }

    /// Returns whether an unknown variant of the source may be this one of the target: the source
    /// keeps it with its JSON, or has it without a tag.
    fn is_reread(&self, variant: &Variant) -> bool {
        let to = self.conversion.to;
        let is_kept = self.rules().iter().any(|rule| {
            rule.names.of(to).as_deref() == Some(&variant.key) && matches!(rule.fate, Fate::Kept)
        });
        let untagged = self.from.variants.iter().any(|other| {
            other.key == variant.key && matches!(other.content, Content::Default { .. })
        });
        let is_tagged = !matches!(variant.content, Content::Default { .. });
        is_tagged && (is_kept || untagged)
    }

    /// Returns the members that the target demands of unknown variants, without the tag.
    fn required(&self) -> Vec<&str> {
        let Conversion { to, target, .. } = self.conversion;
        let schema = self.context.side(*to).document.value().pointer(&target.at);
        let Some(tag) = &self.to.tag else {
            return Vec::new();
        };
        let Some((_, branches)) = schema.and_then(branches) else {
            return Vec::new();
        };
        let is_open = |branch: &&Value| {
            let tag = branch
                .get("properties")
                .and_then(|members| members.get(tag));
            tag.is_some_and(|tag| {
                tag.get("type").is_some_and(|ty| ty == "string") && tag.get("const").is_none()
            })
        };
        let open = branches.iter().find(is_open);
        let names = open.and_then(|branch| branch.get("required")?.as_array());
        let names = names.into_iter().flatten().filter_map(Value::as_str);
        names.filter(|name| name != tag).collect()
    }

    fn limits(&self, version: Version, ty: &Type, key: &str) -> Limits {
        let schema = self.context.side(version).document.value().pointer(&ty.at);
        let branches = schema.and_then(branches).map(|(_, branches)| branches);
        let is_it = |branch: &&Value| branch.get("title").is_some_and(|title| title == key);
        Limits::of(branches.into_iter().flatten().find(is_it))
    }

    fn slot(&self, version: Version, key: &str) -> Result<&Slot, Error> {
        let ty = self.ty(version);
        self.context
            .side(version)
            .model
            .skeletons
            .slot(&ty.name, key)
    }

    fn catch_all(&self, version: Version) -> syn::Ident {
        let skeletons = &self.context.side(version).model.skeletons;
        let slots = skeletons.slots(&self.ty(version).name);
        let variants = match version == self.conversion.to {
            true => &self.to.variants,
            false => &self.from.variants,
        };
        let is_variant = |slot: &&Slot| variants.iter().any(|variant| variant.key == slot.wire);
        catch_all(slots.iter().filter(is_variant).map(|slot| &slot.ident))
    }

    fn ty(&self, version: Version) -> &Type {
        match version == self.conversion.to {
            true => self.conversion.target,
            false => self.conversion.source,
        }
    }

    fn has_conversion(&self, key: &str, a: &RustType, b: &RustType) -> Result<(), Error> {
        let Conversion { to, source, .. } = self.conversion;
        if self.context.values.has(a, b, *to) {
            return Ok(());
        }
        let message = format!(
            "the variant `{key}` has a `{}`, which has no conversion to `{}`",
            quote!(#a),
            quote!(#b)
        );
        let help = format!("map the two types in {}", self.context.file);
        Err(self
            .context
            .side(to.other())
            .error(&source.at, message, help))
    }
}

fn no_equal(context: &Context<'_>, conversion: &Conversion<'_>, key: &str, fate: &str) -> Error {
    let Conversion {
        source, target, to, ..
    } = conversion;
    let message = format!("`{key}` has no equal in `{}` of {}", target.name, to.name());
    let help = format!(
        "add it to `variants` of the pair of `{}` in {}: {{\"{}\": \"{key}\", \"{fate}\": \
         \"reason\"}}, or the name of its equal",
        source.name,
        context.file,
        to.other().name()
    );
    context.side(to.other()).error(&source.at, message, help)
}
