//! Everything that was said on one connection, in order, as checks ask for it.

use std::time::{Duration, SystemTime};

use serde_json::Value;

use super::adapter;
use crate::passive::Said;
use crate::transcript::{redact, redact_text};
use crate::wire::{Finding, FindingKind, Judged, Kind, Party, Version, excerpt_around, shorten};

/// One message.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Who wrote it.
    pub from: Party,
    /// When, since the connection began.
    pub at: Duration,
    /// The message; `null` when the line is not JSON.
    pub value: Value,
    /// The line as text, when it is not JSON.
    pub raw: Option<String>,
    /// What kind of message it is.
    pub kind: Kind,
    /// What the schema says.
    pub judged: Judged,
    /// Its method, or that of the request it answers.
    pub method: Option<String>,
    /// The request it answers, by its place in the recording.
    pub request: Option<usize>,
    /// What is wrong with it.
    pub findings: Vec<Finding>,
}

/// A connection's messages.
#[derive(Clone, Debug, Default)]
pub struct Recording {
    /// In the order in which they were seen.
    pub entries: Vec<Entry>,
    /// When the connection began, if that is known.
    pub began: Option<SystemTime>,
}

/// An update of a session, where it stands.
#[derive(Clone, Copy, Debug)]
pub struct Update<'a> {
    /// Its place in the recording.
    pub index: usize,
    /// The session.
    pub session: &'a str,
    /// The kind of update.
    pub kind: &'a str,
    /// The update itself.
    pub body: &'a Value,
}

impl Entry {
    /// The text of the message for a report: shortened, without secrets.
    #[must_use]
    pub fn excerpt(&self) -> String {
        self.excerpt_at("")
    }

    /// The same, with the place of this JSON Pointer.
    #[must_use]
    pub fn excerpt_at(&self, pointer: &str) -> String {
        const LIMIT: usize = 600;
        match &self.raw {
            Some(raw) => shorten(&redact_text(raw), LIMIT),
            None => {
                let mut value = self.value.clone();
                redact(&mut value);
                excerpt_around(&value, pointer, LIMIT)
            }
        }
    }

    /// Whether it is a message of the agent that could have such findings, or is followed by one
    /// that could: an update is late after a cancelled turn only.
    pub(crate) fn could_have(&self, kinds: &[FindingKind]) -> bool {
        let is_about_cancellation = kinds == [FindingKind::LateUpdate];
        self.from == Party::Agent && (!is_about_cancellation || self.ends_turn_by("cancelled"))
    }

    /// Whether it ends a turn with this stop reason, in any version.
    pub(crate) fn ends_turn_by(&self, reason: &str) -> bool {
        let places = ["/result/stopReason", "/params/update/stopReason"];
        let mut found = places.iter().filter_map(|place| self.value.pointer(place));
        found.any(|found| found == reason)
    }

    /// The message as rules inspect it, at its place in the recording.
    pub(crate) fn said(&self, index: usize) -> Said<'_> {
        Said {
            place: u64::try_from(index).unwrap_or(u64::MAX),
            from: self.from,
            kind: self.kind,
            value: &self.value,
        }
    }

    /// The findings of these kinds that are `by` this party and not excused.
    pub(crate) fn findings_by(
        &self,
        by: Party,
        kinds: &'static [FindingKind],
    ) -> impl Iterator<Item = &Finding> {
        self.findings.iter().filter(move |finding| {
            finding.by == Some(by) && finding.excuse.is_none() && kinds.contains(&finding.rule)
        })
    }

    /// Whether it is a request or notification by `from` with this method.
    #[must_use]
    pub fn calls(&self, from: Party, method: &str) -> bool {
        self.from == from && self.is_call() && self.method.as_deref() == Some(method)
    }

    /// Whether it is a request or a notification.
    #[must_use]
    pub fn is_call(&self) -> bool {
        matches!(self.kind, Kind::Request | Kind::Notification)
    }

    /// The params, or `null`.
    #[must_use]
    pub fn params(&self) -> &Value {
        self.value.get("params").unwrap_or(&Value::Null)
    }

    /// Returns the result or the error object of an answer.
    ///
    /// # Errors
    /// The error object, if it is an error.
    pub fn answer(&self) -> Result<Value, Value> {
        match (self.value.get("error"), self.value.get("result")) {
            (Some(error), _) => Err(error.clone()),
            (None, result) => Ok(result.cloned().unwrap_or_default()),
        }
    }

    /// The session that the params name.
    #[must_use]
    pub fn session(&self) -> Option<&str> {
        self.params().get("sessionId")?.as_str()
    }
}

impl Recording {
    /// The requests and notifications of one side with a method.
    pub fn calls<'a>(
        &'a self,
        from: Party,
        method: &'a str,
    ) -> impl Iterator<Item = (usize, &'a Entry)> {
        let entries = self.entries.iter().enumerate();
        entries.filter(move |(_, entry)| entry.calls(from, method))
    }

    /// The messages of one side.
    pub fn of(&self, from: Party) -> impl Iterator<Item = &Entry> {
        self.entries.iter().filter(move |entry| entry.from == from)
    }

    /// How many messages of the agent are invalid.
    #[must_use]
    pub fn invalid(&self) -> usize {
        let of_agent = self.of(Party::Agent);
        of_agent
            .filter(|entry| entry.judged == Judged::Invalid)
            .count()
    }

    /// The answer to the request at this place.
    #[must_use]
    pub fn answer(&self, request: usize) -> Option<(usize, &Entry)> {
        let later = self.entries.iter().enumerate().skip(request);
        later
            .into_iter()
            .find(|(_, entry)| entry.request == Some(request))
    }

    /// The result of the request at this place.
    #[must_use]
    pub fn result(&self, request: usize) -> Option<&Value> {
        self.answer(request)?.1.value.get("result")
    }

    /// Every session update.
    pub fn updates(&self) -> impl Iterator<Item = Update<'_>> {
        self.calls(Party::Agent, "session/update")
            .filter_map(|(index, entry)| {
                let body = entry.params().get("update")?;
                Some(Update {
                    index,
                    session: entry.session()?,
                    kind: body.get("sessionUpdate")?.as_str()?,
                    body,
                })
            })
    }

    /// Every session update of one kind.
    pub fn updates_of<'a>(&'a self, kind: &'a str) -> impl Iterator<Item = Update<'a>> {
        self.updates().filter(move |update| update.kind == kind)
    }

    /// How long each turn went on after its first `session/cancel`, of those that ended.
    pub(crate) fn cancel_times(&self, version: Version) -> impl Iterator<Item = Duration> {
        let adapter = adapter::of(version);
        let end = move |request: usize| {
            let mut later = request + 1..self.entries.len();
            later.find(|index| (adapter.turn_end)(self, request, *index).is_some())
        };
        let prompts = self.calls(Party::Client, "session/prompt");
        prompts.filter_map(move |(request, prompt)| {
            let end = end(request)?;
            let mut cancels = self.calls(Party::Client, "session/cancel");
            let (_, cancel) = cancels.find(|(index, cancel)| {
                (request..end).contains(index) && cancel.session() == prompt.session()
            })?;
            Some(self.entries.get(end)?.at.saturating_sub(cancel.at))
        })
    }

    /// What the client declared at this place of its capabilities, if it did.
    #[must_use]
    pub fn declared(&self, pointer: &str) -> Option<&Value> {
        let (_, first) = self.calls(Party::Client, "initialize").next()?;
        let capabilities = first.params().get("clientCapabilities")?;
        let value = capabilities.pointer(pointer)?;
        (!value.is_null() && value != &Value::Bool(false)).then_some(value)
    }
}
