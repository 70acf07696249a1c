//! Names that generated code uses, and that no definition may have.

use std::collections::BTreeSet;

use heck::ToShoutySnakeCase as _;

use crate::Error;
use crate::ir::{Shape, Type};

/// Names of the runtime that types refer to by their last segment.
pub(crate) const OF_TYPES: &[&str] = &[
    "IntoOption",
    "Json",
    "Map",
    "Meta",
    "Patch",
    "StrictError",
    "TaggedUnion",
    "UnknownVariant",
    "VariantReader",
];

/// Names of the runtime that methods and their dispatch refer to by their last segment.
pub(crate) const OF_METHODS: &[&str] = &[
    "Context",
    "HandlerFuture",
    "IncomingNotification",
    "IncomingRequest",
    "Params",
    "Peer",
    "Service",
];

/// What Rust and the other imports have in scope.
const RUST: &[&str] = &[
    "Arc",
    "AsRef",
    "Box",
    "Clone",
    "Debug",
    "Default",
    "Eq",
    "Err",
    "From",
    "Future",
    "Into",
    "None",
    "Ok",
    "Option",
    "PartialEq",
    "Result",
    "Self",
    "Send",
    "Serialize",
    "Some",
    "String",
    "Sync",
    "Vec",
];

/// Fails when a type has a name that generated code needs for something else. `of_roles`: the
/// names of the types of all roles, none in a document without methods. `marker`: the type that
/// stands for the protocol version.
pub(crate) fn check(
    types: &[Type],
    of_roles: &[String],
    marker: Option<&str>,
) -> Result<(), Error> {
    types.iter().try_for_each(is_rust)?;
    let user = |name: &str| {
        let of_version = (marker == Some(name)).then_some("the type of the protocol version");
        user(name, !of_roles.is_empty()).or(of_version)
    };
    for ty in types {
        let of_role = of_roles
            .contains(&ty.name)
            .then_some("a generated trait or handle");
        if let Some(user) = user(&ty.name).or(of_role) {
            return Err(Error::NameTaken {
                file: String::new(),
                name: ty.name.clone(),
                taken_by: user.into(),
            });
        }
    }
    let mut seen = BTreeSet::new();
    for name in of_roles {
        let user = user(name).or((!seen.insert(name)).then_some("the other role"));
        if let Some(user) = user {
            return Err(Error::RoleTaken {
                name: name.clone(),
                taken_by: user.into(),
            });
        }
    }
    Ok(())
}

/// Who uses the name in every generated text, or in one with methods.
fn user(name: &str, methods: bool) -> Option<&'static str> {
    let of_methods = if methods { OF_METHODS } else { &[] };
    let users = [
        (OF_TYPES, "the runtime"),
        (of_methods, "the runtime"),
        (RUST, "Rust"),
    ];
    let found = users.iter().find(|(names, _)| names.contains(&name));
    found.map(|(_, user)| *user)
}

/// Fails when a name is not one that Rust could have.
fn is_rust(ty: &Type) -> Result<(), Error> {
    let upper = ty.name.starts_with(|c: char| c.is_ascii_uppercase());
    if !upper || syn::parse_str::<syn::Ident>(&ty.name).is_err() {
        return Err(Error::unsupported(
            ty.at.clone(),
            format!("`{}` is not a valid name of a Rust type", ty.name),
            "use letters and digits, a capital letter first",
        ));
    }
    let Shape::Integer(values) = &ty.shape else {
        return Ok(());
    };
    let is_bad = |name: &str| syn::parse_str::<syn::Ident>(&name.to_shouty_snake_case()).is_err();
    match values.iter().find(|value| is_bad(&value.name)) {
        Some(value) => Err(Error::unsupported(
            ty.at.clone(),
            format!("`{}` is not a valid name of a constant", value.name),
            "give the value a `title` of letters and digits, a letter first",
        )),
        None => Ok(()),
    }
}
