//! Rust names and types, by typify; the only file that knows it.
//!
//! typify gets the plain schema and gives Rust source. Of that we keep the
//! skeletons of structs and enums: identifiers and types, by the name on the wire.
//! Its serde impls, builders and conversions are dropped, for the refining passes
//! write their own.

use std::collections::BTreeMap;

use schemars08::schema::Schema;
use serde_json::{Map, Value};
use syn::visit_mut::{self, VisitMut};
use syn::{Fields, Ident, Item, Type};
use typify::{TypeSpace, TypeSpaceSettings};

use crate::Error;
use crate::lower::{ANY, FREE_OBJECT};

/// What typify made of one definition.
#[derive(Clone)]
pub(crate) enum Skeleton {
    Struct(Vec<Slot>),
    Newtype(Box<Type>),
    Enum(Vec<Slot>),
}

/// A field or a variant.
#[derive(Clone)]
pub(crate) struct Slot {
    /// The name on the wire.
    pub(crate) wire: String,
    pub(crate) ident: Ident,
    /// The type of the field or payload; a unit variant has none.
    pub(crate) ty: Option<Type>,
}

/// Skeletons by the name of the definition.
pub(crate) struct Skeletons(BTreeMap<String, Skeleton>);

impl Skeletons {
    /// Runs typify over plain schemas.
    ///
    /// # Errors
    /// When typify refuses a schema, or leaves one out.
    pub(crate) fn new(plain: &Map<String, Value>) -> Result<Self, Error> {
        let mut settings = TypeSpaceSettings::default();
        settings
            .with_replacement(ANY, ANY, std::iter::empty())
            .with_replacement(FREE_OBJECT, FREE_OBJECT, std::iter::empty())
            .with_map_type("Map");
        let mut space = TypeSpace::new(&settings);
        let mut definitions = Vec::with_capacity(plain.len() + 2);
        for (name, schema) in plain {
            let schema = serde_json::from_value(schema.clone());
            let schema: Schema =
                schema.map_err(|error| Error::Typify(format!("{name}: {error}")))?;
            definitions.push((name.clone(), schema));
        }
        definitions.push((ANY.to_owned(), Schema::Bool(true)));
        definitions.push((FREE_OBJECT.to_owned(), Schema::Bool(true)));
        space
            .add_ref_types(definitions)
            .map_err(|error| Error::Typify(error.to_string()))?;
        let file: syn::File = syn::parse2(space.to_stream())?;
        let skeletons = Self(file.items.into_iter().filter_map(skeleton).collect());
        match plain.keys().find(|name| !skeletons.0.contains_key(*name)) {
            Some(name) => Err(Error::Typify(format!(
                "no type `{name}` came of its definition"
            ))),
            None => Ok(skeletons),
        }
    }

    pub(crate) fn get(&self, name: &str) -> Option<&Skeleton> {
        self.0.get(name)
    }

    /// The fields of a struct or the variants of an enum.
    pub(crate) fn slots(&self, name: &str) -> &[Slot] {
        match self.0.get(name) {
            Some(Skeleton::Struct(slots) | Skeleton::Enum(slots)) => slots,
            _ => &[],
        }
    }

    /// The field or variant of a type by its name on the wire.
    pub(crate) fn slot(&self, name: &str, wire: &str) -> Result<&Slot, Error> {
        let slot = self.slots(name).iter().find(|slot| slot.wire == wire);
        slot.ok_or_else(|| Error::Typify(format!("`{wire}` of `{name}` is missing")))
    }
}

fn skeleton(item: Item) -> Option<(String, Skeleton)> {
    match item {
        Item::Struct(item) => {
            let skeleton = match item.fields {
                Fields::Named(fields) => {
                    let slot = |field: syn::Field| {
                        let ident = field.ident?;
                        Some(slot(ident, &field.attrs, Some(field.ty)))
                    };
                    Skeleton::Struct(fields.named.into_iter().filter_map(slot).collect())
                }
                Fields::Unnamed(fields) => {
                    Skeleton::Newtype(Box::new(tidy(fields.unnamed.into_iter().next()?.ty)))
                }
                Fields::Unit => Skeleton::Struct(Vec::new()),
            };
            Some((item.ident.to_string(), skeleton))
        }
        Item::Enum(item) => {
            let variant = |variant: syn::Variant| {
                let ty = variant.fields.into_iter().next().map(|field| field.ty);
                slot(variant.ident, &variant.attrs, ty)
            };
            let variants = item.variants.into_iter().map(variant).collect();
            Some((item.ident.to_string(), Skeleton::Enum(variants)))
        }
        _ => None,
    }
}

fn slot(ident: Ident, attrs: &[syn::Attribute], ty: Option<Type>) -> Slot {
    let wire = attrs
        .iter()
        .find_map(rename)
        .unwrap_or_else(|| ident.to_string());
    Slot {
        wire,
        ident,
        ty: ty.map(tidy),
    }
}

/// The name in `#[serde(rename = "…")]`.
fn rename(attribute: &syn::Attribute) -> Option<String> {
    let mut name = None;
    if attribute.path().is_ident("serde") {
        // Other keys make the parser stop, after which the name is known or absent.
        let _ = attribute.parse_nested_meta(|meta| {
            if meta.path.is_ident("rename") {
                name = Some(meta.value()?.parse::<syn::LitStr>()?.value());
            } else if meta.input.peek(syn::Token![=]) {
                meta.value()?.parse::<syn::Expr>()?;
            }
            Ok(())
        });
    }
    name
}

/// Shortens paths to what the generated module has in scope.
fn tidy(mut ty: Type) -> Type {
    struct Tidy;
    impl VisitMut for Tidy {
        fn visit_path_mut(&mut self, path: &mut syn::Path) {
            visit_mut::visit_path_mut(self, path);
            if path.leading_colon.is_some() {
                path.leading_colon = None;
                if let Some(last) = path.segments.pop() {
                    path.segments = std::iter::once(last).collect();
                }
            }
            // Keys of JSON objects are strings, so our map has no type for them.
            if let Some(last) = path.segments.last_mut()
                && last.ident == "Map"
                && let syn::PathArguments::AngleBracketed(arguments) = &mut last.arguments
                && arguments.args.len() == 2
            {
                arguments.args = arguments.args.iter().skip(1).cloned().collect();
            }
        }
    }
    Tidy.visit_type_mut(&mut ty);
    ty
}
