//! Facts of the protocol's methods and updates, as its documents state them.
//!
//! Those of both versions, from the documents: peers of version 2 are judged whether or not this
//! crate is built with types of it.

use std::collections::HashMap;
use std::sync::LazyLock;

use acp_schema::{Attachment, Content, Login, MethodFacts, Protocol, Side};

use super::Version;

#[derive(Default)]
struct Facts {
    /// The methods that agents handle.
    methods: HashMap<String, MethodFacts>,
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
        let handled = protocol
            .methods()
            .filter(|method| method.side.includes(Side::AGENT));
        let handled = handled.filter_map(|method| Some((method.name.clone(), method.facts?)));
        self.methods.extend(handled);
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
    }
}
