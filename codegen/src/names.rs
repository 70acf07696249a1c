//! Names that generated code uses, and that no definition may have.

use crate::Error;
use crate::ir::Type;

/// Names of the runtime that generated code calls by their last segment.
pub(crate) const RUNTIME: &[&str] = &[
    "Branch",
    "Cx",
    "DecodeError",
    "FromObject",
    "Json",
    "Map",
    "Meta",
    "Method",
    "Note",
    "Notification",
    "Object",
    "Params",
    "Patch",
    "Peer",
    "Request",
    "Service",
    "Tagged",
    "Task",
    "UnknownVariant",
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

/// Names of the traits, contexts, handles and services of the two sides.
const ROLES: &[&str] = &[
    "Agent",
    "AgentCx",
    "AgentHandle",
    "AgentService",
    "Client",
    "ClientCx",
    "ClientHandle",
    "ClientService",
];

/// Fails when a type has a name that generated code needs for something else.
pub(crate) fn check(types: &[Type]) -> Result<(), Error> {
    let users = [
        (RUNTIME, "the runtime"),
        (RUST, "Rust"),
        (ROLES, "a generated trait or handle"),
    ];
    for ty in types {
        for (names, user) in users {
            if names.contains(&ty.name.as_str()) {
                return Err(Error::NameTaken {
                    name: ty.name.clone(),
                    taken_by: user.into(),
                });
            }
        }
    }
    Ok(())
}
