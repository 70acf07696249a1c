//! Names that generated code uses, and that no definition may have.

use std::collections::BTreeSet;

use heck::ToShoutySnakeCase as _;

use crate::Error;
use crate::dispatch::Role;
use crate::ir::{Shape, Type};

/// Names of the runtime that generated code calls by their last segment.
pub(crate) const RUNTIME: &[&str] = &[
    "BufferedFields",
    "Context",
    "HandlerFuture",
    "IncomingNotification",
    "IncomingRequest",
    "IntoOption",
    "Json",
    "Map",
    "Meta",
    "Method",
    "Notification",
    "Params",
    "Patch",
    "Peer",
    "Service",
    "TaggedUnion",
    "UnknownVariant",
    "VariantReader",
    "VariantWriter",
];

/// What Rust and the other imports have in scope.
const RUST: &[&str] = &[
    "Arc",
    "AsRef",
    "Box",
    "Clone",
    "Debug",
    "Default",
    "Deserialize",
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

/// Fails when a type has a name that generated code needs for something else.
pub(crate) fn check(types: &[Type], roles: &[Role], extends: bool) -> Result<(), Error> {
    types.iter().try_for_each(is_rust)?;
    let of_roles: Vec<String> = roles.iter().flat_map(|role| role.names(extends)).collect();
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
    for name in &of_roles {
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

/// Who uses the name in every generated text.
fn user(name: &str) -> Option<&'static str> {
    let users = [(RUNTIME, "the runtime"), (RUST, "Rust")];
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
