//! Facts of methods and updates that do not depend on an implementation: what a method belongs to,
//! who may call it, whether it may be sent again, whether it joins or leaves a session, and whether
//! it logs the user in or out, which capability it needs; what an update contributes to the
//! conversation.
//!
//! They are stated in the document of each protocol version, beside the method. A version has a
//! table for each side: [`v1::AGENT_METHODS`](crate::v1::AGENT_METHODS) has the methods that an
//! agent handles. Proposals and the extension methods of this project are included, whether or not
//! their types are.
//!
//! ```
//! use acp_sdk::facts::{Attachment, Retry};
//! use acp_sdk::v1;
//!
//! let new = v1::AGENT_METHODS.get("session/new").unwrap();
//! assert_eq!((new.retry, new.joins), (Retry::Never, Attachment::Creates));
//! assert!(v1::AGENT_METHODS.get("_example.com/anything").is_none());
//! ```

/// What a method belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scope {
    /// The connection, or a session that the params need not name.
    Connection,
    /// The session that its params name in the required member `sessionId`.
    Session,
}

/// The least right that a client needs to take part in a method: to call a method of the agent, and
/// to be sent a method of the client. In ascending order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AccessRight {
    /// Reading, in every session.
    Reader,
    /// Everything in one session. A method of [`Scope::Session`] must name that session.
    Session,
    /// Everything.
    Owner,
}

/// Whether a message may be sent again when its response is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Retry {
    /// As it is.
    Safe,
    /// With the same idempotency key.
    Keyed,
    /// Not at all: a second one has effects of its own.
    Never,
}

/// How a method changes the client's attachment to a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Attachment {
    /// It attaches the client to the new session that the result names.
    Creates,
    /// It attaches the client to the session that the params name.
    Joins,
    /// It detaches the client from the session that the params name.
    Leaves,
    /// It changes nothing.
    Keeps,
}

/// How a method that succeeds changes whether the user is logged in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Login {
    /// The user is logged in.
    In,
    /// The user is logged out.
    Out,
}

/// Facts of one method.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MethodFacts {
    /// The name on the wire.
    pub name: &'static str,
    /// What the method belongs to.
    pub scope: Scope,
    /// The least right that the client needs.
    pub access: AccessRight,
    /// Whether the message may be sent again.
    pub retry: Retry,
    /// How the method changes the client's attachment to a session.
    pub joins: Attachment,
    /// Whether the method logs the user in or out.
    pub login: Option<Login>,
    /// The capability of the handling side that the method needs: a JSON Pointer into its
    /// capabilities, such as `/sessionCapabilities/list`. `None` if all must handle the method.
    pub capability: Option<&'static str>,
}

/// The methods that one side handles, by name.
#[derive(Debug)]
pub struct MethodTable(&'static [MethodFacts]);

impl MethodTable {
    /// Creates the table of rows in ascending order of names.
    #[doc(hidden)]
    #[must_use]
    pub const fn new(rows: &'static [MethodFacts]) -> Self {
        Self(rows)
    }

    /// Returns the facts of a method; `None` if the documents do not name it.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&'static MethodFacts> {
        let index = self.0.binary_search_by(|row| row.name.cmp(name)).ok()?;
        self.0.get(index)
    }

    /// Returns all methods in ascending order of their names.
    pub fn iter(&self) -> impl Iterator<Item = &'static MethodFacts> + use<> {
        self.0.iter()
    }
}

/// What a variant of a union, such as an update of a session, contributes to a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Content {
    /// Words of the user.
    Input,
    /// What the agent produces in a turn.
    Output,
    /// State of the session, which may change at any time.
    State,
}

/// What the variants of a union contribute to a conversation, by their tags.
#[derive(Debug)]
pub struct ContentTable(&'static [(&'static str, Content)]);

impl ContentTable {
    /// Creates the table of rows in ascending order of tags.
    #[doc(hidden)]
    #[must_use]
    pub const fn new(rows: &'static [(&'static str, Content)]) -> Self {
        Self(rows)
    }

    /// Returns what the variant with a tag contributes; `None` if the documents do not name it.
    #[must_use]
    pub fn get(&self, tag: &str) -> Option<Content> {
        let index = self
            .0
            .binary_search_by(|(known, _)| (*known).cmp(tag))
            .ok()?;
        self.0.get(index).map(|(_, content)| *content)
    }

    /// Returns all tags in ascending order, with what their variants contribute.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, Content)> + use<> {
        self.0.iter().copied()
    }
}

/// Returns what an update of a session contributes to the conversation, by its member
/// `sessionUpdate`. `None` if no version has the kind. Versions agree on it.
#[must_use]
pub fn of_update(kind: &str) -> Option<Content> {
    let content = crate::v1::SESSION_UPDATE_CONTENT.get(kind);
    #[cfg(feature = "v2")]
    let content = content.or_else(|| crate::v2::SESSION_UPDATE_CONTENT.get(kind));
    content
}

/// A value that a document names, such as an error code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NamedValue<T> {
    /// The value.
    pub value: T,
    /// The name, such as `Parse error`.
    pub name: &'static str,
    /// The meaning, in sentences.
    pub description: &'static str,
}

/// Returns the facts of a method that agents handle, before the version of a connection is known.
/// `None` if no version has the method.
///
/// Versions agree on scope, access, attachment and login of a method; the retry class is that of the
/// lowest version that has the method.
#[must_use]
pub fn of_agent(name: &str) -> Option<&'static MethodFacts> {
    let facts = crate::v1::AGENT_METHODS.get(name);
    #[cfg(feature = "v2")]
    let facts = facts.or_else(|| crate::v2::AGENT_METHODS.get(name));
    facts
}
