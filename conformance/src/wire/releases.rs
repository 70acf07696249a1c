//! Members that types of version 1 have in other releases of the schema, as data.
//!
//! An agent of an earlier or later release sends them; they are not its own.

use std::collections::HashMap;
use std::sync::LazyLock;

use crate::embedded;

/// By the name of the type, then of the member: the releases.
static MEMBERS: LazyLock<HashMap<String, HashMap<String, String>>> = LazyLock::new(|| {
    let text = include_str!("../../releases.toml");
    embedded::read("releases.toml", text)
});

/// The releases in which one of these types has a member.
pub(crate) fn of_member(types: &[&str], member: &str) -> Option<&'static str> {
    let mut types = types.iter();
    types.find_map(|name| Some(MEMBERS.get(*name)?.get(member)?.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::Version;

    /// An entry that our documents have is never used.
    #[test]
    fn the_members_are_those_that_our_schema_does_not_have() {
        let document = Version::V1.with_proposals().unwrap();
        for (name, members) in MEMBERS.iter() {
            let of = document.def(name);
            let properties = of.and_then(|of| of.get("properties"));
            for member in members.keys() {
                let known = properties.is_some_and(|all| all.get(member).is_some());
                assert!(of.is_some() && !known, "{name}.{member}");
            }
        }
        assert!(of_member(&["x", "NewSessionResponse"], "models").is_some());
        assert_eq!(of_member(&["PromptResponse"], "models"), None);
    }
}
