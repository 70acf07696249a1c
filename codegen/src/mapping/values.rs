//! Whether a value of one Rust type has a conversion to another, and the limits of its schema.

use std::cell::RefCell;
use std::collections::BTreeSet;

use proc_macro2::TokenStream;
use quote::quote;
use serde_json::Value;
use syn::Type as RustType;

use super::document::{Both, Version};
use super::pairs::Pairs;
use super::{Side, path};
use crate::emit::{head, unwrap_option};
use crate::ir::{Field, Presence, Shape};

/// Integers with conversions to each other.
const INTEGERS: &[&str] = &["i32", "i64", "u16", "u32", "u64"];

/// Types that are the same in both versions.
const SAME: &[&str] = &["String", "bool", "f64", "Json", "Meta"];

pub(super) struct Values<'a> {
    sides: &'a Both<Side<'a>>,
    pairs: &'a Pairs<'a>,
    /// Identifiers that are strings in the other version.
    texts: RefCell<BTreeSet<(&'static str, String)>>,
}

impl<'a> Values<'a> {
    pub(super) fn new(sides: &'a Both<Side<'a>>, pairs: &'a Pairs<'a>) -> Self {
        Self {
            sides,
            pairs,
            texts: RefCell::default(),
        }
    }

    /// Returns whether a value of type `a` has a conversion to `b` of the version `to`.
    pub(super) fn has(&self, a: &RustType, b: &RustType, to: Version) -> bool {
        let ((a_name, a_inner), (b_name, b_inner)) = (head(a), head(b));
        match (a_name.as_str(), b_name.as_str(), a_inner, b_inner) {
            ("Vec", "Vec", Some(a), Some(b)) | ("Map", "Map", Some(a), Some(b)) => {
                return self.has(a, b, to);
            }
            (a, b, _, _) if a == b && SAME.contains(&a) => return true,
            (a, b, _, _) if INTEGERS.contains(&a) && INTEGERS.contains(&b) => return true,
            _ => {}
        }
        let is_external = |version: Version, name: &str| {
            let model = &self.sides.of(version).model;
            model.get(name).is_some() && !model.is_own(name)
        };
        if a_name == b_name && is_external(to, &a_name) && is_external(to.other(), &a_name) {
            return true;
        }
        let is_id = |version: Version, name: &str| {
            let ty = self.sides.of(version).model.get(name);
            ty.is_some_and(|ty| ty.shape == Shape::Id)
        };
        for (text, id, version) in [(&a_name, &b_name, to), (&b_name, &a_name, to.other())] {
            if text == "String" && is_id(version, id) {
                let id = (version.name(), id.clone());
                self.texts.borrow_mut().insert(id);
                return true;
            }
        }
        self.pairs.has(&a_name, &b_name, to)
    }

    /// Generates the conversions between strings and identifiers that were needed.
    pub(super) fn texts(&self) -> Vec<TokenStream> {
        let texts = self.texts.borrow();
        let text = |(version, name): &(&'static str, String)| {
            let version = match *version {
                "v1" => Version::V1,
                _ => Version::V2,
            };
            let id = path(version, name);
            quote!(string!(#id);)
        };
        texts.iter().map(text).collect()
    }

    /// Returns whether a type is an object that can be made of nothing: a marker of support.
    pub(super) fn is_marker(&self, version: Version, ty: &RustType) -> bool {
        let ty = self.sides.of(version).model.get(&head(ty).0);
        let optional = |field: &Field| field.presence == Presence::Optional;
        match ty.map(|ty| &ty.shape) {
            Some(Shape::Struct(fields)) => fields.iter().all(optional),
            _ => false,
        }
    }
}

/// The form of a field: whether it can be absent or cleared.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Form {
    /// Always there. `default`: the schema has a value for its absence.
    Plain {
        default: bool,
    },
    Option,
    Patch,
}

/// Returns the form of a field and the type of its value.
pub(super) fn form<'t>(field: &Field, ty: &'t RustType) -> (Form, &'t RustType) {
    let inner = unwrap_option(ty);
    let form = match &field.presence {
        Presence::Patch => Form::Patch,
        _ if !std::ptr::eq(inner, ty) => Form::Option,
        Presence::Required => Form::Plain { default: false },
        _ => Form::Plain { default: true },
    };
    (form, inner)
}

/// The least and the greatest number that a schema permits, or the least number of items.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Limits {
    least: Option<f64>,
    greatest: Option<f64>,
}

impl Limits {
    /// Reads the limits of a schema that may permit null.
    pub(super) fn of(schema: Option<&Value>) -> Self {
        let Some(schema) = schema else {
            return Self::default();
        };
        let number = |key: &str| schema.get(key).and_then(Value::as_f64);
        Self {
            least: number("minimum").or_else(|| number("minItems")),
            greatest: number("maximum"),
        }
    }

    /// Returns the limits that a source with the limits `source` may break.
    pub(super) fn beyond(self, source: Self) -> Option<TokenStream> {
        // The types of numbers have these bounds.
        let least = self
            .least
            .filter(|least| *least > 0.0 && source.least != self.least);
        let least = least.or(self.least.filter(|_| self.greatest.is_some()));
        let greatest = self.greatest.filter(|_| source.greatest != self.greatest);
        match (least, greatest) {
            (None, None) => None,
            (Some(least), None) => Some(quote!(#least..)),
            (None, Some(greatest)) => Some(quote!(..=#greatest)),
            (Some(least), Some(greatest)) => Some(quote!(#least..=#greatest)),
        }
    }
}
