//! Names that are different on the wire and would be one in Rust.
//!
//! Rust has one spelling where JSON has many: `a-b` and `a_b` are one field. What clashes is
//! reported before the compiler fails on the generated code.

use std::collections::BTreeMap;

use heck::ToShoutySnakeCase as _;

use crate::Error;
use crate::identifiers::{field, variants};
use crate::ir::{Shape, Type};
use crate::lower::escape;

/// Functions that traits and handles have beside those of the methods.
const FUNCTIONS: [&str; 5] = [
    "new",
    "peer",
    "with_timeout",
    "ext_request",
    "ext_notification",
];

/// Fails when two members, values or variants of a type would have one name.
pub(crate) fn check(types: &[Type]) -> Result<(), Error> {
    for ty in types {
        let (wires, names, what): (Vec<&str>, Vec<String>, _) = match &ty.shape {
            Shape::Text(values) => {
                let wires: Vec<&str> = values.iter().map(|value| value.value.as_str()).collect();
                let names = variants(wires.iter().copied());
                (wires, names, "values")
            }
            Shape::Union(union) => {
                let wires = union.variants.iter().map(|variant| variant.key.as_str());
                let wires: Vec<&str> = wires.collect();
                let names = variants(wires.iter().copied());
                (wires, names, "variants")
            }
            Shape::Struct(fields) => {
                let wires: Vec<&str> = fields.iter().map(|field| field.wire.as_str()).collect();
                let names = wires.iter().map(|wire| field(wire).to_string()).collect();
                (wires, names, "members")
            }
            Shape::Integer(values) => {
                let wires: Vec<&str> = values.iter().map(|value| value.name.as_str()).collect();
                let names = wires
                    .iter()
                    .map(|wire| wire.to_shouty_snake_case())
                    .collect();
                (wires, names, "values")
            }
            _ => continue,
        };
        let mut known: BTreeMap<String, &str> = BTreeMap::new();
        for (second, name) in wires.into_iter().zip(names) {
            if let Some(first) = known.insert(name.clone(), second) {
                return Err(one_name(ty.at.clone(), what, [first, second], &name));
            }
        }
    }
    Ok(())
}

/// Fails when two methods would be one function; each comes with its function and the definition
/// of its params. A method that both sides handle is one.
pub(crate) fn functions(methods: impl Iterator<Item = (String, String)>) -> Result<(), Error> {
    let mut known: BTreeMap<String, String> = BTreeMap::new();
    for (function, params) in methods {
        let own = FUNCTIONS.contains(&function.as_str());
        let first = known.insert(function.clone(), params.clone());
        let taken_by = match first {
            _ if own => "all traits and handles have".to_owned(),
            Some(first) => format!("`{first}` has"),
            None => continue,
        };
        return Err(Error::unsupported(
            format!("/$defs/{}", escape(&params)),
            format!("its method would be the function `{function}`, which {taken_by} already"),
            "rename the definition, which gives the function its name",
        ));
    }
    Ok(())
}

fn one_name(at: String, what: &str, [first, second]: [&str; 2], name: &str) -> Error {
    let message = match first == second {
        true => format!("two {what} are called `{first}`"),
        false => format!("the {what} `{first}` and `{second}` would both be `{name}` in Rust"),
    };
    Error::unsupported(
        at,
        message,
        "give them names that differ in a letter or digit",
    )
}
