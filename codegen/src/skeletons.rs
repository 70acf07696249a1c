//! Rust names of the plain schemas with the types of
//! [`typify_adapter`](crate::typify_adapter), by the names on the wire.

use std::collections::BTreeMap;

use quote::format_ident;
use serde_json::{Map, Value};
use syn::{Ident, Type};

use crate::Error;
use crate::identifiers::{field, variants};
use crate::typify_adapter::{self, Definition};

/// The Rust form of one definition.
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
    /// Makes the skeletons of plain schemas.
    ///
    /// # Errors
    /// When a plain schema has another form than the lowering pass gives, or typify refuses one.
    pub(crate) fn new(plain: &Map<String, Value>) -> Result<Self, Error> {
        let definitions = typify_adapter::types(plain)?.into_iter();
        let skeletons = definitions.map(|(name, types)| (name.to_owned(), skeleton(types)));
        Ok(Self(skeletons.collect()))
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
        slot.ok_or_else(|| Error::Passes(format!("`{wire}` of `{name}` has no Rust name")))
    }
}

fn skeleton(definition: Definition<'_>) -> Skeleton {
    match definition {
        Definition::Struct(fields) => {
            let slots = fields.into_iter().map(|(wire, ty)| Slot {
                wire: wire.to_owned(),
                ident: field(wire),
                ty: Some(ty),
            });
            Skeleton::Struct(slots.collect())
        }
        Definition::Newtype(ty) => Skeleton::Newtype(ty),
        Definition::Enum(cases) => {
            let idents = variants(cases.iter().map(|(wire, _)| *wire));
            let slots = cases
                .into_iter()
                .zip(idents)
                .map(|((wire, ty), ident)| Slot {
                    wire: wire.to_owned(),
                    ident: format_ident!("{ident}"),
                    ty,
                });
            Skeleton::Enum(slots.collect())
        }
    }
}

#[cfg(test)]
mod tests {
    use quote::quote;
    use serde_json::json;

    use super::*;

    fn ty(skeletons: &Skeletons, name: &str, wire: &str) -> String {
        let slot = skeletons.slot(name, wire).unwrap();
        let ty = slot.ty.as_ref().unwrap();
        quote!(#ty).to_string().replace(' ', "")
    }

    #[test]
    fn a_box_closes_each_cycle() {
        let reference = |name: &str| json!({ "$ref": format!("#/definitions/{name}") });
        let plain = json!({
            "A": { "type": "object", "properties": { "b": reference("B"), "list": { "type": "array", "items": reference("A") }, "own": reference("A") }, "required": ["list"] },
            "B": { "oneOf": [{ "c": reference("C") }, { "a": reference("A") }, "none"] },
            "C": { "type": "object", "properties": { "own": { "anyOf": [reference("C"), { "type": "null" }] } }, "required": [] },
        });
        let skeletons = Skeletons::new(plain.as_object().unwrap()).unwrap();
        for (name, wire, expected) in [
            ("A", "b", "Option<B>"),
            ("A", "list", "Vec<A>"),
            ("A", "own", "Option<Box<A>>"),
            ("B", "c", "C"),
            ("B", "a", "Box<A>"),
            ("C", "own", "Option<Box<C>>"),
        ] {
            assert_eq!(ty(&skeletons, name, wire), expected, "{name}.{wire}");
        }
        assert!(skeletons.slot("B", "none").unwrap().ty.is_none());
    }
}
