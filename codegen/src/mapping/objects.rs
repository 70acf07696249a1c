//! Generates the conversion of an object.

use std::collections::{BTreeMap, BTreeSet};

use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use syn::{Ident, Type as RustType};

use super::document::{Fate, Member, Version};
use super::values::{Form, Limits, form};
use super::{Context, Conversion, path};
use crate::Error;
use crate::emit::head;
use crate::ir::{Field, Presence, Type};
use crate::lower::escape;
use crate::skeletons::Slot;

/// Generates the body of the conversion of an object with the fields `from`.
///
/// # Errors
/// Fails when a field has no equal and no row.
pub(super) fn body(
    context: &Context<'_>,
    conversion: &Conversion<'_>,
    from: &[Field],
    to: &[Field],
) -> Result<TokenStream, Error> {
    let object = Object {
        context,
        conversion,
        from,
        to,
    };
    object.body()
}

struct Object<'a> {
    context: &'a Context<'a>,
    conversion: &'a Conversion<'a>,
    from: &'a [Field],
    to: &'a [Field],
}

/// A field with its Rust name and type.
struct Part<'a> {
    field: &'a Field,
    ident: &'a Ident,
    ty: &'a RustType,
}

impl Object<'_> {
    fn body(&self) -> Result<TokenStream, Error> {
        let Conversion {
            row, to, target, ..
        } = self.conversion;
        let mut done: BTreeSet<&str> = BTreeSet::new();
        let mut values: BTreeMap<&str, TokenStream> = BTreeMap::new();
        let mut before = Vec::new();
        for rule in row.map_or(&[][..], |row| &row.members) {
            let (sources, targets) = (rule.names.of(to.other()), rule.names.of(*to));
            for (names, version) in [(sources, to.other()), (targets, *to)] {
                names
                    .iter()
                    .try_for_each(|name| self.part(rule, version, name).map(drop))?;
            }
            done.extend(sources.iter().map(String::as_str));
            if let Some(function) = rule.fate.by(*to) {
                let function = self.conversion.function(function);
                let arguments = self.idents(to.other(), sources)?;
                let made: Vec<Ident> = self
                    .idents(*to, targets)?
                    .iter()
                    .map(|ident| format_ident!("made_{ident}"))
                    .collect();
                let pattern = match made.as_slice() {
                    [one] => quote!(#one),
                    _ => quote!((#(#made),*)),
                };
                before.push(quote!(let #pattern = #function(#(self.#arguments,)* losses)?;));
                let made = made.iter().map(|made| quote!(#made));
                values.extend(targets.iter().map(String::as_str).zip(made));
                continue;
            }
            match (&rule.fate, sources.as_slice(), targets.as_slice()) {
                (Fate::Lost(reason), [source], []) => before.push(self.lost(rule, source, reason)?),
                (Fate::Lost(_), [], [target]) => {
                    if let Some(given) = &rule.given {
                        let given = given.to_string();
                        values.insert(target, quote!(given(#given)?));
                    }
                }
                (Fate::Renamed | Fate::By(_), [source], [target]) => {
                    values.insert(target, self.member(Some(rule), source, target)?);
                }
                _ => {
                    let help = "write `lost` with a reason for a member of one version, or the names \
                                in both versions";
                    return Err(rule.at.error("not a mapping of members", help));
                }
            }
        }
        for field in self
            .from
            .iter()
            .filter(|field| !done.contains(field.wire.as_str()))
        {
            let equal = self.to.iter().find(|other| other.wire == field.wire);
            match equal.filter(|equal| !values.contains_key(equal.wire.as_str())) {
                Some(equal) => {
                    values.insert(&equal.wire, self.member(None, &field.wire, &equal.wire)?);
                }
                None => return Err(self.no_equal(field)),
            }
        }
        let mut members = Vec::new();
        for field in self.to {
            let slot = self.slot(*to, &field.wire)?;
            let value = match (values.remove(field.wire.as_str()), &field.presence) {
                (Some(value), _) => value,
                (None, Presence::Required) => return Err(self.no_source(field)),
                (None, _) => quote!(Default::default()),
            };
            let ident = &slot.ident;
            members.push(quote!(#ident: #value));
        }
        let target = path(*to, &target.name);
        Ok(quote! {
            #(#before)*
            Some(#target { #(#members),* })
        })
    }

    /// Generates the conversion of one member to another.
    fn member(
        &self,
        rule: Option<&Member>,
        source: &str,
        target: &str,
    ) -> Result<TokenStream, Error> {
        let to = self.conversion.to;
        let (source, target) = (self.get(to.other(), source)?, self.get(to, target)?);
        let ((from_form, a), (to_form, b)) =
            (form(source.field, source.ty), form(target.field, target.ty));
        let (wire, ident) = (&source.field.wire, source.ident);
        let value = quote!(self.#ident);
        // The members of a union among the object's own have the place of the object.
        let name = match source.field.place.is_flattened() {
            true => quote!(""),
            false => quote!(#wire),
        };
        let values = &self.context.values;
        if head(a).0 == "bool" && head(b).0 != "bool" && values.is_marker(to, b) {
            return Ok(quote!(marker(#value)));
        }
        if head(b).0 == "bool" && head(a).0 != "bool" && values.is_marker(to.other(), a) {
            return Ok(quote!(flag(#name, #value, losses)));
        }
        if !values.has(a, b, to) {
            return Err(self.no_conversion(&source, &target));
        }
        let given = rule
            .and_then(|rule| rule.given.as_ref())
            .map(ToString::to_string);
        let null = rule
            .and_then(|rule| rule.null.as_ref())
            .map(ToString::to_string);
        let limits = self.limits(&source, &target);
        let whole = rule.is_some_and(|rule| rule.whole);
        let cleared = match &null {
            Some(null) => quote!(cleared(#name, #value, #null, losses)),
            None => quote!(uncleared(#name, #value, losses)),
        };
        // The value as an `Option` of the source's type.
        let option = match from_form {
            Form::Option => value.clone(),
            Form::Patch => cleared,
            Form::Plain { .. } => quote!(Some(#value)),
        };
        let convert = |option: TokenStream| {
            let converted = match whole {
                true => quote!(every(#name, #option, losses)),
                false => quote!(optional(#name, #option, losses)),
            };
            match &limits {
                Some(limits) => quote!(limit(#name, #converted, #limits, losses)),
                None => converted,
            }
        };
        Ok(match (from_form, to_form) {
            (Form::Plain { default: false }, Form::Plain { .. }) => {
                let converted = convert(option);
                quote!(#converted?)
            }
            (Form::Plain { default: true }, Form::Plain { .. }) => {
                let converted = convert(option);
                match limits.is_some() && to_form != (Form::Plain { default: false }) {
                    true => quote!(#converted.unwrap_or_default()),
                    false => quote!(#converted?),
                }
            }
            (Form::Plain { default: true }, Form::Option) => {
                convert(quote!(unless_default(#value)))
            }
            (Form::Plain { default: true }, Form::Patch) => {
                let converted = convert(quote!(unless_default(#value)));
                quote!(patch(#converted))
            }
            (Form::Plain { default: false } | Form::Option, Form::Patch) => {
                let converted = convert(option);
                quote!(patch(#converted))
            }
            (Form::Option, Form::Option) if whole => {
                let converted = convert(option);
                quote! {
                    match (#value.is_some(), #converted) {
                        (true, None) => return None,
                        (_, value) => value,
                    }
                }
            }
            (_, Form::Option) => convert(option),
            (Form::Patch, Form::Patch) if limits.is_none() && !whole => {
                quote!(patched(#name, #value, losses))
            }
            (Form::Patch, Form::Patch) => {
                let message = format!("`{wire}` has limits and can be cleared");
                let help = format!("map it with `by` in {}", self.context.file);
                return Err(self.error(&source, message, help));
            }
            (Form::Option | Form::Patch, Form::Plain { default: true }) => {
                let converted = convert(option);
                quote!(or_default(#name, #converted, losses))
            }
            (Form::Option | Form::Patch, Form::Plain { default: false }) => {
                let converted = convert(option);
                match (&given, rule) {
                    (Some(given), _) => quote!(or_given(#name, #converted, #given, losses)?),
                    (None, Some(rule)) if matches!(rule.fate, Fate::Renamed) => {
                        quote!(required(#name, #converted, losses)?)
                    }
                    _ => {
                        let message = format!(
                            "`{wire}` is optional in {} and required in {}",
                            to.other().name(),
                            to.name()
                        );
                        let help = format!(
                            "add it to the members of the pair `{}` in {}, with `given` for its \
                             absence, or without if there is no equal then",
                            self.conversion.source.name, self.context.file
                        );
                        return Err(self.error(&source, message, help));
                    }
                }
            }
        })
    }

    /// Generates the report of a member that is lost.
    fn lost(&self, rule: &Member, source: &str, reason: &str) -> Result<TokenStream, Error> {
        let part = self.get(self.conversion.from(), source)?;
        let (form, _) = form(part.field, part.ty);
        let (ident, wire) = (part.ident, &part.field.wire);
        let there = match (form, &part.field.presence) {
            _ if rule.given.is_some() => {
                let given = rule.given.as_ref().map(ToString::to_string);
                quote!(given(#given).as_ref() != Some(&self.#ident))
            }
            (Form::Option, _) => quote!(self.#ident.is_some()),
            (Form::Patch, _) => quote!(!self.#ident.is_absent()),
            (Form::Plain { default: true }, _) => quote!(!is_default(&self.#ident)),
            (Form::Plain { default: false }, _) => quote!(true),
        };
        Ok(quote!(if #there { losses.lost(#wire, #reason); }))
    }

    fn limits(&self, source: &Part<'_>, target: &Part<'_>) -> Option<TokenStream> {
        let to = self.conversion.to;
        let limits = |version: Version, ty: &Type, field: &Field| {
            let at = format!("{}/properties/{}", ty.at, escape(&field.wire));
            Limits::of(self.context.side(version).document.value().pointer(&at))
        };
        let source = limits(to.other(), self.conversion.source, source.field);
        limits(to, self.conversion.target, target.field).beyond(source)
    }

    fn ty(&self, version: Version) -> (&Type, &[Field]) {
        match version == self.conversion.to {
            true => (self.conversion.target, self.to),
            false => (self.conversion.source, self.from),
        }
    }

    fn slot(&self, version: Version, wire: &str) -> Result<&Slot, Error> {
        let (ty, _) = self.ty(version);
        self.context
            .side(version)
            .model
            .skeletons
            .slot(&ty.name, wire)
    }

    fn get(&self, version: Version, wire: &str) -> Result<Part<'_>, Error> {
        let missing = || Error::Passes(format!("`{wire}` is missing"));
        let (_, fields) = self.ty(version);
        let field = fields
            .iter()
            .find(|field| field.wire == wire)
            .ok_or_else(missing)?;
        let slot = self.slot(version, wire)?;
        Ok(Part {
            field,
            ident: &slot.ident,
            ty: slot.ty.as_ref().ok_or_else(missing)?,
        })
    }

    /// Returns a member that a row names.
    fn part(&self, rule: &Member, version: Version, wire: &str) -> Result<Part<'_>, Error> {
        self.get(version, wire).map_err(|_| {
            let name = &self.ty(version).0.name;
            let message = format!("`{name}` of {} has no member `{wire}`", version.name());
            rule.at
                .error(message, "correct the name, or remove the row")
        })
    }

    fn idents(&self, version: Version, names: &[String]) -> Result<Vec<&Ident>, Error> {
        let ident = |name: &String| self.slot(version, name).map(|slot| &slot.ident);
        names.iter().map(ident).collect()
    }

    fn error(&self, part: &Part<'_>, message: String, help: String) -> Error {
        let at = format!(
            "{}/properties/{}",
            self.conversion.source.at,
            escape(&part.field.wire)
        );
        self.context
            .side(self.conversion.from())
            .error(&at, message, help)
    }

    fn no_equal(&self, field: &Field) -> Error {
        let Conversion {
            source, target, to, ..
        } = self.conversion;
        let (from, wire) = (to.other(), &field.wire);
        let at = match field.place.is_flattened() {
            true => source.at.clone(),
            false => format!("{}/properties/{}", source.at, escape(wire)),
        };
        let message = format!(
            "`{wire}` has no equal in `{}` of {}",
            target.name,
            to.name()
        );
        let help = format!(
            "add it to `members` of the pair of `{}` in {}: {{\"{}\": \"{wire}\", \"lost\": \
             \"reason\"}}, or the name of its equal instead of `lost`",
            source.name,
            self.context.file,
            from.name(),
        );
        self.context.side(from).error(&at, message, help)
    }

    fn no_source(&self, field: &Field) -> Error {
        let Conversion {
            source, target, to, ..
        } = self.conversion;
        let at = format!("{}/properties/{}", target.at, escape(&field.wire));
        let message = format!(
            "the required `{}` has no source in `{}` of {}",
            field.wire,
            source.name,
            to.other().name()
        );
        let help = format!(
            "add it to `members` of the pair of `{}` in {}, with `given` or `by`",
            target.name, self.context.file
        );
        self.context.side(*to).error(&at, message, help)
    }

    fn no_conversion(&self, source: &Part<'_>, target: &Part<'_>) -> Error {
        let (a, b) = (source.ty, target.ty);
        let message = format!(
            "`{}` is a `{}` and has no conversion to `{}`",
            source.field.wire,
            quote!(#a),
            quote!(#b)
        );
        let help = format!(
            "map the two types, or the member with `by`, in {}",
            self.context.file
        );
        self.error(source, message, help)
    }
}
