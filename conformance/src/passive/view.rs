//! What a rule sees: a message, and the connection before it.

use acp_schema::Attachment;
use serde_json::Value;

use super::{Asked, Session, State};
use crate::wire::{Kind, Party, attachment};

/// A message, as rules look at it.
#[derive(Clone, Copy, Debug)]
pub struct Said<'a> {
    /// Where it stands.
    pub place: u64,
    /// Who wrote it.
    pub from: Party,
    /// What kind of message it is.
    pub kind: Kind,
    /// The message.
    pub value: &'a Value,
}

/// A message and the connection before it.
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    /// The connection before the message.
    pub state: &'a State,
    /// The message.
    pub said: Said<'a>,
    /// Its method, or that of the request it answers; empty if that is not known.
    pub method: &'a str,
    /// The request it answers.
    pub asked: Option<&'a Asked>,
    /// Read once, as `update` is: most messages are updates, and most rules ask.
    params: &'a Value,
    update: Option<Update<'a>>,
    /// What is known of the session of the update.
    updated: Option<&'a Session>,
    is_text: bool,
}

/// An update of a session.
#[derive(Clone, Copy, Debug)]
pub struct Update<'a> {
    /// The session.
    pub session: &'a str,
    /// The kind of update.
    pub kind: &'a str,
    /// The update itself.
    pub body: &'a Value,
}

impl Update<'_> {
    fn is_text(&self) -> bool {
        const CHUNKS: [&str; 3] = [
            "agent_message_chunk",
            "agent_thought_chunk",
            "user_message_chunk",
        ];
        let kind = || self.body.get("content")?.get("type")?.as_str();
        CHUNKS.contains(&self.kind) && kind() == Some("text")
    }
}

/// The value at a JSON Pointer that needs no escapes; sooner than `Value::pointer`, which
/// copies every name.
pub(crate) fn at<'a>(value: &'a Value, pointer: &str) -> Option<&'a Value> {
    let mut names = pointer.split('/');
    // What stands before the first slash is nothing.
    names.next();
    names.try_fold(value, |value, name| match value {
        Value::Array(all) => all.get(name.parse::<usize>().ok()?),
        _ => value.get(name),
    })
}

impl<'a> View<'a> {
    /// A message on this connection.
    #[must_use]
    pub fn new(state: &'a State, said: Said<'a>) -> Self {
        let asked = match said.kind {
            Kind::Result | Kind::Error => state.open(said.from.peer(), said.value),
            Kind::Request | Kind::Notification | Kind::Malformed => None,
        };
        let called = said.value.get("method").and_then(Value::as_str);
        let method = match asked {
            Some(asked) => asked.method.as_str(),
            None => called.unwrap_or_default(),
        };
        let mut view = Self {
            state,
            said,
            method,
            asked,
            params: said.value.get("params").unwrap_or(&Value::Null),
            update: None,
            updated: None,
            is_text: false,
        };
        view.update = view.read_update();
        view.updated = view.update.and_then(|it| state.sessions.get(it.session));
        view.is_text = view.update.is_some_and(|update| update.is_text());
        view
    }

    /// Whether it is a request or a notification of a side.
    #[must_use]
    pub fn is_call(&self, from: Party) -> bool {
        self.said.from == from && matches!(self.said.kind, Kind::Request | Kind::Notification)
    }

    /// Whether it is a request or notification of a side with this method.
    #[must_use]
    pub fn calls(&self, from: Party, method: &str) -> bool {
        self.method == method && self.is_call(from)
    }

    /// The params, or `null`.
    #[must_use]
    pub fn params(&self) -> &'a Value {
        self.params
    }

    /// The session that the params name.
    #[must_use]
    pub fn session(&self) -> Option<&'a str> {
        self.params().get("sessionId")?.as_str()
    }

    /// What is known of a session.
    #[must_use]
    pub fn known(&self, session: &str) -> Option<&'a Session> {
        match self.update {
            Some(update) if std::ptr::eq(update.session, session) => self.updated,
            _ => self.state.sessions.get(session),
        }
    }

    /// The result, if it is one of a request of a side with this method.
    #[must_use]
    pub fn result(&self, of: Party, method: &str) -> Option<&'a Value> {
        let answers = self.said.from == of.peer() && self.asked.is_some() && self.method == method;
        self.said.value.get("result").filter(|_| answers)
    }

    /// The session update that it is.
    #[must_use]
    pub fn update(&self) -> Option<Update<'a>> {
        self.update
    }

    fn read_update(&self) -> Option<Update<'a>> {
        if !self.calls(Party::Agent, "session/update") {
            return None;
        }
        let body = self.params().get("update")?;
        Some(Update {
            session: self.session()?,
            kind: body.get("sessionUpdate")?.as_str()?,
            body,
        })
    }

    /// Whether it is a piece of text: what agents send most, and what most rules are not about.
    #[must_use]
    pub(crate) fn is_text(&self) -> bool {
        self.is_text
    }

    /// Whether it is the first piece of text of its kind in a turn or a replay.
    pub(crate) fn is_news(&self) -> bool {
        let known = self.updated.zip(self.update);
        known.is_some_and(|(session, update)| session.is_news(update.kind))
    }

    /// The session update that it is, if it is of this kind.
    #[must_use]
    pub fn update_of(&self, kind: &str) -> Option<Update<'a>> {
        self.update().filter(|update| update.kind == kind)
    }

    /// The session that it sets up, and its state: the result of a request for that.
    #[must_use]
    pub fn setup(&self) -> Option<(&'a str, &'a Value)> {
        let asked = self.asked?;
        if self.said.from != Party::Agent {
            return None;
        }
        let result = self.said.value.get("result")?;
        let session = match attachment(self.method) {
            Attachment::Creates => result.get("sessionId").and_then(Value::as_str),
            Attachment::Joins => asked.session.as_deref(),
            Attachment::Leaves | Attachment::Keeps => None,
        };
        Some((session?, result))
    }
}
