//! The roles of a document and the names made of them.

use acp_schema::{Protocol, Side};
use heck::{ToPascalCase as _, ToSnakeCase as _};
use quote::format_ident;
use syn::Ident;

use crate::Error;
use crate::identifiers::identifier;
use crate::lower::escape;

/// What follows the name of a role in the names of generated types.
const SUFFIXES: [&str; 4] = ["", "Context", "Handle", "Service"];

/// What follows it in those of an extension.
const EXTENSION: [&str; 6] = [
    "Context",
    "Handle",
    "Extension",
    "ExtensionLayer",
    "ExtensionService",
    "HandleExt",
];

/// One end of a connection.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Role {
    pub(super) side: Side,
    /// The other end, if the document names it.
    peer: Option<Side>,
}

/// The roles of a document, in the order of their names.
///
/// # Errors
/// Fails when both roles send a method, but the document does not name two.
pub(crate) fn roles(protocol: &Protocol) -> Result<Vec<Role>, Error> {
    let role = |side: &Side| Role {
        side: *side,
        peer: protocol.peer(*side),
    };
    let roles: Vec<Role> = protocol.roles().iter().map(role).collect();
    let mut methods = protocol.methods();
    match methods.find(|method| method.side == Side::BOTH) {
        Some(method) if roles.len() < 2 => Err(Error::unsupported(
            format!("/$defs/{}/x-side", escape(method.kind.params())),
            "`both` in a document that does not name two roles",
            "mark other methods with the names of the roles, or use one role for all",
        )),
        _ => Ok(roles),
    }
}

impl Role {
    /// The name of a generated type: the role's name and a suffix.
    pub(super) fn ident(self, suffix: &str) -> Ident {
        format_ident!("{}{suffix}", self.side.as_str().to_pascal_case())
    }

    /// The names of the types that an extension takes from the module that it extends.
    pub(crate) fn existing(self) -> [String; 2] {
        ["Context", "Handle"].map(|suffix| self.ident(suffix).to_string())
    }

    /// The names of all types that are generated for the role.
    pub(crate) fn names(self, extends: bool) -> impl Iterator<Item = String> {
        let suffixes = match extends {
            true => EXTENSION.as_slice(),
            false => SUFFIXES.as_slice(),
        };
        suffixes
            .iter()
            .map(move |suffix| self.ident(suffix).to_string())
    }

    /// The role in a sentence, with its article.
    pub(super) fn with_article(self) -> String {
        let words = self.words();
        let vowel = words.starts_with(['a', 'e', 'i', 'o']);
        format!("{} {words}", if vowel { "an" } else { "a" })
    }

    /// The role in a sentence.
    pub(super) fn words(self) -> String {
        self.side.as_str().replace(['-', '_'], " ")
    }

    /// The function that gives a handle to the role.
    pub(super) fn accessor(self) -> Ident {
        identifier(&self.side.as_str().to_snake_case())
    }

    /// The role at the other end, if the document names it.
    pub(super) fn peer(self) -> Option<Role> {
        let (side, peer) = (self.peer?, Some(self.side));
        Some(Role { side, peer })
    }
}
