//! Names that are different on the wire and would be one in Rust.
//!
//! Rust has one spelling where JSON has many: `a-b` and `a_b` are one field. What clashes is
//! said before the compiler would stumble over generated code, or typify over its own names.

use std::collections::BTreeMap;

use acp_schema::Side;
use heck::{ToPascalCase as _, ToShoutySnakeCase as _, ToSnakeCase as _};

use crate::Error;
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
        let (names, what): (Vec<&str>, _) = match &ty.shape {
            Shape::Text(values) => (values.iter().map(|v| v.value.as_str()).collect(), "values"),
            Shape::Union(union) => {
                let keys = union.variants.iter().map(|variant| variant.key.as_str());
                (keys.collect(), "variants")
            }
            Shape::Struct(fields) => {
                let names = fields.iter().map(|field| field.wire.as_str());
                let collision = twice(names, |name| {
                    name.replace(|c| !is_part(c), "-").to_snake_case()
                });
                let Some(collision) = collision else { continue };
                return Err(one_name(ty.at.clone(), "members", &collision));
            }
            Shape::Integer(values) => {
                let names = values.iter().map(|value| value.name.as_str());
                let collision = twice(names, |name| name.to_shouty_snake_case());
                let Some(collision) = collision else { continue };
                return Err(one_name(ty.at.clone(), "values", &collision));
            }
            _ => continue,
        };
        // As typify does: characters that no name can have are left out, or, if that makes two
        // names one, stand as a letter.
        let plain = twice(names.iter().copied(), |name| {
            pascal(&name.replace(|c| !is_part(c), "-"))
        });
        let lettered = twice(names.iter().copied(), |name| {
            pascal(&name.replace(|c| c == '_' || !is_part(c), "X"))
        });
        if let (Some(_), Some(collision)) = (plain, lettered) {
            return Err(one_name(ty.at.clone(), what, &collision));
        }
    }
    Ok(())
}

/// Fails when two methods of a side would be one function; each comes with its side, its
/// function and the definition of its params.
pub(crate) fn functions(
    methods: impl Iterator<Item = (Side, String, String)>,
) -> Result<(), Error> {
    let mut known: BTreeMap<(Side, String), String> = BTreeMap::new();
    for (side, function, params) in methods {
        let own = FUNCTIONS.contains(&function.as_str());
        let first = known.insert((side, function.clone()), params.clone());
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

struct Collision {
    /// On the wire.
    names: [String; 2],
    in_rust: String,
}

/// The first two names that are one name in Rust.
fn twice<'a>(
    names: impl Iterator<Item = &'a str>,
    in_rust: impl Fn(&str) -> String,
) -> Option<Collision> {
    let mut known: BTreeMap<String, &str> = BTreeMap::new();
    for name in names {
        let in_rust = in_rust(name);
        if let Some(first) = known.insert(in_rust.clone(), name) {
            let names = [first.to_owned(), name.to_owned()];
            return Some(Collision { names, in_rust });
        }
    }
    None
}

fn one_name(at: String, what: &str, collision: &Collision) -> Error {
    let [first, second] = &collision.names;
    let message = match first == second {
        true => format!("two {what} are called `{first}`"),
        false => format!(
            "the {what} `{first}` and `{second}` would both be `{}` in Rust",
            collision.in_rust
        ),
    };
    Error::unsupported(
        at,
        message,
        "give them names that differ in a letter or digit",
    )
}

/// Whether a name in Rust may have it.
fn is_part(c: char) -> bool {
    c == '_' || c.is_alphanumeric()
}

fn pascal(name: &str) -> String {
    match name.to_pascal_case() {
        name if name.is_empty() => "X".to_owned(),
        name if name.starts_with(|c: char| c.is_numeric()) => format!("X{name}"),
        name => name,
    }
}
