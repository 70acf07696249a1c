//! Facts of the protocol's methods and updates, as its documents state them.
//!
//! Those of both versions, from the documents: peers of version 2 are judged whether or not this
//! crate is built with types of it.

use std::collections::HashMap;
use std::sync::LazyLock;

use acp_schema::{Attachment, Content, Login, MethodFacts, Protocol, Side};

use super::{Party, Version};

#[derive(Default)]
struct Facts {
    /// The methods that agents handle.
    methods: HashMap<String, MethodFacts>,
    /// The capabilities that methods need of the party that handles them.
    capabilities: HashMap<(Version, Party), HashMap<String, String>>,
    /// What updates contribute to a conversation, by their tags.
    updates: HashMap<String, Content>,
}

static FACTS: LazyLock<Facts> = LazyLock::new(|| {
    let mut facts = Facts::default();
    for version in [Version::V2, Version::V1] {
        // The documents are valid as shipped, which tests show.
        facts.add(version).unwrap_or_default();
    }
    facts
});

impl Facts {
    fn add(&mut self, version: Version) -> crate::Result<()> {
        let document = version.with_proposals()?;
        let protocol = Protocol::from_document(&document)?;
        for method in protocol.methods() {
            let Some(facts) = &method.facts else {
                continue;
            };
            for (party, side) in [(Party::Agent, Side::AGENT), (Party::Client, Side::CLIENT)] {
                if let Some(pointer) = &facts.capability
                    && method.side.includes(side)
                {
                    let table = self.capabilities.entry((version, party)).or_default();
                    table.insert(method.name.clone(), pointer.clone());
                }
            }
            if method.side.includes(Side::AGENT) {
                self.methods.insert(method.name.clone(), facts.clone());
            }
        }
        let unions = document.contents()?.into_iter();
        let updates = unions.flat_map(|union| union.variants);
        let updates = updates.map(|(tag, content)| (tag.to_owned(), content));
        self.updates.extend(updates);
        Ok(())
    }
}

/// Returns how a method of the protocol changes the client's attachment to a session.
#[must_use]
pub(crate) fn attachment(method: &str) -> Attachment {
    let facts = FACTS.methods.get(method);
    facts.map_or(Attachment::Keeps, |facts| facts.joins)
}

/// Returns whether a method of the protocol logs the user in or out.
#[must_use]
pub(crate) fn login(method: &str) -> Option<Login> {
    FACTS.methods.get(method)?.login
}

/// Returns whether a method of the client sets a session up.
#[must_use]
pub(crate) fn sets_up(method: &str) -> bool {
    matches!(attachment(method), Attachment::Creates | Attachment::Joins)
}

/// Returns the capability that a method needs of the party that handles it, as a JSON Pointer into
/// what that party declares. `None` if it needs none.
#[must_use]
pub(crate) fn capability(version: Version, handler: Party, method: &str) -> Option<&'static str> {
    let table = FACTS.capabilities.get(&(version, handler))?;
    table.get(method).map(String::as_str)
}

/// Returns what an update of this kind contributes to the conversation; `None` for unknown kinds.
#[must_use]
pub(crate) fn content(kind: &str) -> Option<Content> {
    FACTS.updates.get(kind).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_versions_are_known_without_types_of_the_second() {
        assert_eq!(login("authenticate"), Some(Login::In));
        assert_eq!(login("auth/logout"), Some(Login::Out));
        assert_eq!(login("session/prompt"), None);
        assert_eq!(attachment("session/fork"), Attachment::Creates);
        assert_eq!(content("tool_call"), Some(Content::Output));
        assert_eq!(content("agent_message"), Some(Content::Output));
        assert_eq!(content("user_message"), Some(Content::Input));
        let delete = |version| capability(version, Party::Agent, "session/delete");
        assert_eq!(delete(Version::V1), Some("/sessionCapabilities/delete"));
        assert_eq!(delete(Version::V2), Some("/session/delete"));
        assert_eq!(
            capability(Version::V1, Party::Client, "session/delete"),
            None
        );
    }
}
