//! Every vector of every definition, against the generated types and the validator.
//!
//! Valid ones parse, mean the same when written again, and validate. Lenient ones
//! parse and report what they lose. Invalid ones fail with a path that is to blame.

#![allow(clippy::unwrap_used, reason = "a helper of tests fails by panicking")]

mod checks;
mod differential;
#[cfg(feature = "schemars")]
mod schemas;
mod sizes;
mod strict;
mod types;
mod v1;
#[cfg(feature = "v2")]
mod v2;

use acp_codegen::vectors::{Vector, Vectors, vectors};
use acp_schema::Document;
use serde_json::Value;

use self::differential::Known;
use self::types::Type;

/// How many random messages of each definition are tried.
const SEEDS: u32 = 60;

/// A version of the protocol, as documents and as types.
struct Suite {
    /// The document that the types were generated from.
    document: Document,
    vectors: Vec<Vectors>,
    types: Vec<&'static Type>,
    known: &'static [Known],
    /// Types that are not valid any more without what may be dropped.
    loses_too_much: &'static [&'static str],
}

impl Suite {
    fn new(
        document: Document,
        (name, overlay): (&str, &str),
        [stable, proposed]: [&'static [Type]; 2],
        known: &'static [Known],
    ) -> Self {
        let document = match cfg!(feature = "unstable") {
            true => document.overlay(name, overlay).unwrap(),
            false => document,
        };
        Self {
            vectors: vectors(&document).unwrap(),
            document,
            types: stable.iter().chain(proposed).collect(),
            known,
            loses_too_much: &[],
        }
    }

    /// The type of a definition.
    fn ty(&self, definition: &str) -> &'static Type {
        let mut types = self.types.iter();
        let found = types.find(|ty| ty.name == definition);
        found.unwrap_or_else(|| panic!("add {definition} to the list of types"))
    }

    /// The vectors with what is wrong with each, for one kind of check.
    fn failures(&self, check: impl Fn(&Type, &Vector) -> Result<(), String>) -> Vec<String> {
        let mut found = Vec::new();
        let mut checked = 0;
        for set in &self.vectors {
            let ty = self.ty(&set.definition);
            for vector in &set.vectors {
                checked += 1;
                if let Err(message) = check(ty, vector) {
                    let (name, value) = (&vector.name, &vector.value);
                    found.push(format!("{}: {name}: {message}\n    {value}", ty.name));
                }
            }
        }
        assert!(checked > 5_000, "only {checked} vectors");
        found
    }
}

/// The tests of one version.
macro_rules! tests {
    ($suite:ident) => {
        $crate::tests!($suite:
            differential both_accept_refuse_and_write_alike,
            checks each_is_read_as_the_schema_says,
            checks messages_made_by_chance_are_read_as_the_schema_says,
            checks the_strict_and_the_lenient_pass_agree,
            checks what_is_written_is_read_as_the_same,
            checks the_validator_accepts_what_is_valid_and_nothing_else,
            checks what_valid_and_lenient_ones_are_written_as_is_valid,
            checks the_list_of_types_is_complete,
            sizes no_type_is_large,
            strict an_object_is_not_the_list_of_its_values,
            strict a_number_is_not_what_looks_like_one,
            strict an_integer_is_one_with_a_fraction_of_zero,
        );
    };
    ($suite:ident: $($module:ident $test:ident,)*) => {
        $(
            #[test]
            fn $test() {
                $crate::$module::$test(&$suite);
            }
        )*

        #[cfg(feature = "schemars")]
        #[test]
        fn the_schemas_of_types_accept_what_the_document_does() {
            $crate::schemas::the_schemas_of_types_accept_what_the_document_does(&$suite);
        }

        #[cfg(feature = "schemars")]
        #[test]
        fn exported_again_the_types_add_nothing() {
            $crate::schemas::exported_again_the_types_add_nothing(&$suite);
        }
    };
}
use tests;

/// Whether two values are equal; `1` and `1.0` are the same number.
fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => a == b || a.as_f64() == b.as_f64(),
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            let is_in = |(name, a): (&String, &Value)| b.get(name).is_some_and(|b| same(a, b));
            a.len() == b.len() && a.iter().all(is_in)
        }
        (a, b) => a == b,
    }
}
