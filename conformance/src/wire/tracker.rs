//! One connection's messages in order: each is validated, and joined with the request that
//! it answers.
//!
//! The tracker holds two tables of open requests and the state of the turns; all
//! are bounded. It reads nothing and writes nothing: whoever has the messages, a
//! file or a live connection, hands them over with their place.

use std::collections::HashSet;
use std::sync::Arc;

use acp_schema::Attachment;
use acp_sdk::ErrorCode;
use serde_json::{Map, Value};

use super::envelope::{self, Answer, Defect, Message};
use super::pending::{CAPACITY, Open, Pending};
use super::schema::{Schema, Verdict};
use super::turns::{Late, Turns};
use super::{Excuse, Finding, FindingKind, Party, Version, attachment, errata, error_code};

/// What kind of message was observed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A request.
    Request,
    /// A notification.
    Notification,
    /// An answer that carries a result.
    Result,
    /// An answer that carries an error.
    Error,
    /// None of these.
    Malformed,
}

/// Whether the schema had a say about a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Judged {
    /// The schema accepts it.
    Valid,
    /// The schema or the envelope forbids it.
    Invalid,
    /// The schema does not know it: an extension, or an answer without request.
    Open,
}

/// What the tracker made of one message.
#[derive(Clone, Debug)]
pub struct Observed {
    /// What it is.
    pub kind: Kind,
    /// Its method, or that of the request it answers.
    pub method: Option<String>,
    /// What the schema said.
    pub judged: Judged,
    /// What is wrong. Findings about a client's request come with its answer.
    pub findings: Vec<Finding>,
}

/// The state of a connection, seen from outside.
#[derive(Debug)]
pub struct Tracker {
    schema: Arc<Schema>,
    by_agent: Pending,
    by_client: Pending,
    turns: Turns,
    sequence: u64,
    /// Whether messages were lost, so that a request may have gone unseen.
    gaps: bool,
    /// Since then, the ids that were answered and not sent again: another answer is one too many.
    answered: HashSet<(Party, String)>,
    /// Whether both sides agreed on a version that has no schema here.
    unsupported: bool,
}

impl Tracker {
    /// A connection on which nothing was sent yet.
    #[must_use]
    pub fn new(schema: Arc<Schema>) -> Self {
        Self {
            schema,
            by_agent: Pending::default(),
            by_client: Pending::default(),
            turns: Turns::default(),
            sequence: 0,
            gaps: false,
            answered: HashSet::new(),
            unsupported: false,
        }
    }

    /// Takes the next message. `place` is where it stands, for the findings.
    pub fn observe(&mut self, from: Party, place: u64, value: &Value) -> Observed {
        self.sequence += 1;
        let (message, defects) = envelope::read(value);
        let mut found = Found {
            from,
            place,
            method: None,
            findings: Vec::new(),
        };
        let Some(message) = message else {
            found.defects(&defects);
            return found.observed(Kind::Malformed, Judged::Invalid);
        };
        match message {
            Message::Request { id, method, params } => {
                found.method = Some(method.to_owned());
                found.defects(&defects);
                let mut judged = self.call(&mut found, method, params, true);
                if id.is_null() && self.schema.version() == Version::V2 {
                    let message = "expected a string or an integer, got null";
                    found.add(FindingKind::Schema, "/id", message);
                    judged = Judged::Invalid;
                }
                let session = session_of(params).map(str::to_owned);
                self.opened(from, method, session.as_deref());
                // A malformed request of the client that the agent refuses was a
                // probe, one that it accepts is the client's mistake: wait.
                let held = match from {
                    Party::Client => std::mem::take(&mut found.findings),
                    Party::Agent => Vec::new(),
                };
                let open = Open {
                    method: method.to_owned(),
                    session,
                    held,
                    sequence: self.sequence,
                };
                self.answered.remove(&(from.peer(), id.to_string()));
                if let Some(given_up) = self.table(from).insert(id, open) {
                    found.findings.extend(given_up.held);
                }
                found.observed(Kind::Request, judged)
            }
            Message::Notification { method, params } => {
                found.method = Some(method.to_owned());
                found.defects(&defects);
                let judged = self.call(&mut found, method, params, false);
                if method == "session/update" && !self.is_dialect() {
                    self.update(&mut found, params);
                }
                found.observed(Kind::Notification, judged)
            }
            Message::Response { id, answer } => self.response(found, id, answer, &defects),
        }
    }

    /// Takes a line that a client wrote off the protocol on purpose: its answer
    /// is expected, itself is not judged. What cannot be read as a request may
    /// still be refused by its id, if it has one and is no answer itself.
    /// So may each entry of a batch.
    pub fn observe_probe(&mut self, from: Party, value: &Value) {
        for entry in value.as_array().into_iter().flatten() {
            if !entry.is_array() {
                self.observe_probe(from, entry);
            }
        }
        self.sequence += 1;
        let (id, method, params) = match envelope::read(value).0 {
            Some(Message::Request { id, method, params }) => (id, method, params),
            Some(_) => return,
            None => match value.get("id") {
                Some(id) => (id, "", None),
                None => return,
            },
        };
        let open = Open {
            method: method.to_owned(),
            session: session_of(params).map(str::to_owned),
            held: Vec::new(),
            sequence: self.sequence,
        };
        self.answered.remove(&(from.peer(), id.to_string()));
        self.table(from).insert(id, open);
    }

    fn was_answered(&self, by: Party, id: &Value) -> bool {
        self.answered.contains(&(by, id.to_string()))
    }

    /// Messages were lost here. From now on, nothing is held against anybody that
    /// they may explain: answers without a request, and updates out of place.
    pub fn lost(&mut self) {
        self.gaps = true;
        self.answered.clear();
        self.turns = Turns::default();
    }

    /// The method that an answer by `from` with this id belongs to, and when its
    /// request was sent.
    #[must_use]
    pub fn awaited(&self, from: Party, id: &Value) -> Option<(&str, u64)> {
        let table = match from.peer() {
            Party::Agent => &self.by_agent,
            Party::Client => &self.by_client,
        };
        let open = table.get(id)?;
        Some((&open.method, open.sequence))
    }

    /// Adds what else is wrong with a client's request that waits for its answer, which decides
    /// whether it was a probe. Returns it if no such request is open.
    pub(crate) fn hold(&mut self, id: Option<&Value>, found: Vec<Finding>) -> Vec<Finding> {
        match id.and_then(|id| self.by_client.get_mut(id)) {
            Some(open) => open.held.extend(found),
            None => return found,
        }
        Vec::new()
    }

    /// From the next message on, another version is spoken.
    pub(crate) fn speak(&mut self, schema: Arc<Schema>) {
        self.schema = schema;
    }

    /// The schema that messages are held against.
    #[must_use]
    pub fn schema(&self) -> &Schema {
        &self.schema
    }

    /// Ends the connection: what waited for an answer comes out now.
    pub fn finish(&mut self) -> Vec<Finding> {
        let left = self.by_client.drain().chain(self.by_agent.drain());
        left.flat_map(|open| open.held).collect()
    }

    fn response(
        &mut self,
        mut found: Found,
        id: Option<&Value>,
        answer: Answer<'_>,
        defects: &[Defect],
    ) -> Observed {
        let from = found.from;
        let open = id.and_then(|id| self.table(from.peer()).take(id));
        found.method = open.as_ref().map(|open| open.method.clone());
        found.defects(defects);
        let kind = match answer {
            Answer::Result(_) => Kind::Result,
            Answer::Error(_) => Kind::Error,
        };
        let mut judged = match answer {
            Answer::Error(error) => found.verdict(self.schema.error(error), "/error"),
            Answer::Result(_) if self.unsupported => Judged::Open,
            Answer::Result(result) => match &open {
                Some(open) if self.agrees_on_unknown(from, open, result) => {
                    self.unsupported = true;
                    let version = &result["protocolVersion"];
                    let message = format!("expected a version with a specification, got {version}");
                    let at = "/result/protocolVersion";
                    found.add(FindingKind::UnsupportedVersion, at, &message);
                    Judged::Open
                }
                Some(open) if result.is_null() && !self.is_dialect() => match self
                    .null_result(from, &open.method)
                {
                    Null::Documented => Judged::Valid,
                    Null::Tolerated => {
                        let message = "null; the schema requires an object here";
                        found.excused(Excuse::EmptyResult, FindingKind::Schema, "/result", message);
                        Judged::Valid
                    }
                    Null::Refused => {
                        let verdict = self.schema.result(from, &open.method, result);
                        found.verdict(verdict, "/result")
                    }
                },
                Some(open) => {
                    let verdict = self.schema.result(from, &open.method, result);
                    found.verdict(verdict, "/result")
                }
                None => Judged::Open,
            },
        };
        match (&open, id) {
            (Some(_), _) => {}
            (None, None) if kind == Kind::Result => {
                found.add(FindingKind::Envelope, "/id", "missing");
                judged = Judged::Invalid;
            }
            (None, Some(id)) if self.gaps && !self.was_answered(from, id) => {}
            (None, id) => found.stray(id, answer),
        }
        if let Some(id) = id.filter(|_| open.is_some() && self.gaps) {
            if self.answered.len() >= CAPACITY {
                self.answered.clear();
            }
            self.answered.insert((from, id.to_string()));
        }
        if let Some(open) = open {
            let refused = kind == Kind::Error;
            found.findings.extend(
                open.held
                    .into_iter()
                    .map(|held| if refused { as_probe(held) } else { held }),
            );
            if let (Some(session), "session/prompt") = (&open.session, open.method.as_str()) {
                let result = match answer {
                    Answer::Result(result) => Some(result),
                    Answer::Error(_) => None,
                };
                match (self.schema.version(), result) {
                    (Version::V2, Some(_)) => self.turns.accepted(session),
                    _ => self.turns.answered(session, result),
                }
            }
        }
        if !defects.is_empty() {
            judged = Judged::Invalid;
        }
        found.observed(kind, judged)
    }

    /// Judges the params of a request or notification.
    fn call(
        &self,
        found: &mut Found,
        method: &str,
        params: Option<&Value>,
        has_id: bool,
    ) -> Judged {
        // Absent params and `null` are one to the envelope's schema; a method
        // whose params are all optional may be called with either.
        let absent = Value::Object(Map::new());
        let params = match params {
            None | Some(Value::Null) => &absent,
            Some(params) => params,
        };
        let form = self.schema.is_request(found.from, method);
        let form = form.filter(|_| !self.unsupported);
        if form.is_some_and(|request| request != has_id) {
            let message = match form {
                Some(true) => "expected an id, because the method is a request, got none",
                _ => "expected no id, because the method is a notification, got one",
            };
            found.add(FindingKind::Envelope, "/id", message);
        }
        let broken = !found.findings.is_empty();
        if self.unsupported {
            return if broken {
                Judged::Invalid
            } else {
                Judged::Open
            };
        }
        let judged = match self.schema.params(found.from, method, params) {
            Verdict::Unknown if method.starts_with('_') || method.starts_with("$/") => Judged::Open,
            Verdict::Unknown => {
                let message =
                    "expected a method of the protocol or a name that starts with `_`, got neither";
                let kind = FindingKind::UnknownMethod;
                match self.schema.is_proposed(method) {
                    false => found.add(kind, "/method", message),
                    true => {
                        let message = "expected a method of the protocol, got one of a proposal";
                        found.excused(Excuse::Extension("proposal"), kind, "/method", message);
                    }
                }
                Judged::Open
            }
            verdict => found.verdict(verdict, "/params"),
        };
        if broken { Judged::Invalid } else { judged }
    }

    fn opened(&mut self, from: Party, method: &str, session: Option<&str>) {
        let (Party::Client, Some(session)) = (from, session) else {
            return;
        };
        match method {
            "session/prompt" => self.turns.prompt(session),
            _ if attachment(method) == Attachment::Joins => self.turns.reopened(session),
            _ => {}
        }
    }

    fn update(&mut self, found: &mut Found, params: Option<&Value>) {
        let kind = params.and_then(|params| params.get("update")?.get("sessionUpdate"));
        let (Some(session), Some(kind)) = (session_of(params), kind.and_then(Value::as_str)) else {
            return;
        };
        let at = "/params/update";
        let Some(update) = params.and_then(|params| params.get("update")) else {
            return;
        };
        if self.schema.version() == Version::V2 {
            if kind == "state_update" {
                self.turns.reported(session, update);
            } else if let Some(id) = self.turns.late(session, kind, update) {
                let message = format!(
                    "expected no `{kind}` of {id} after its work was reported as cancelled, got one"
                );
                found.add(FindingKind::LateUpdate, at, &message);
            }
            return;
        }
        match self.turns.update(session, kind, update) {
            Some(Late::Output) => {
                let message = format!(
                    "expected no `{kind}` after the answer of the cancelled turn it belongs to, got one"
                );
                found.add(FindingKind::LateUpdate, at, &message);
            }
            Some(Late::News) => {
                let message =
                    format!("expected no `{kind}` after the answer of a cancelled turn, got one");
                found.excused(Excuse::Background, FindingKind::LateUpdate, at, &message);
            }
            None => {}
        }
    }

    /// Whether this answer to `initialize` chooses a version that has no schema here.
    fn agrees_on_unknown(&self, from: Party, open: &Open, result: &Value) -> bool {
        let chosen = result.get("protocolVersion").and_then(Value::as_u64);
        !self.is_dialect()
            && from == Party::Agent
            && open.method == "initialize"
            && chosen.is_some_and(|chosen| Version::of_number(chosen).is_none())
    }

    /// Whether the protocol is that of another system, so that only its schema counts.
    fn is_dialect(&self) -> bool {
        self.schema.dialect_name().is_some()
    }

    fn null_result(&self, from: Party, method: &str) -> Null {
        if errata::null_result_is_documented(method) {
            Null::Documented
        } else if self.schema.result_may_be_empty(from, method) {
            Null::Tolerated
        } else {
            Null::Refused
        }
    }

    fn table(&mut self, of: Party) -> &mut Pending {
        match of {
            Party::Agent => &mut self.by_agent,
            Party::Client => &mut self.by_client,
        }
    }
}

enum Null {
    Documented,
    Tolerated,
    Refused,
}

/// Collects what is found in one message.
struct Found {
    from: Party,
    place: u64,
    method: Option<String>,
    findings: Vec<Finding>,
}

impl Found {
    fn add(&mut self, rule: FindingKind, pointer: &str, message: &str) {
        self.findings.push(Finding {
            place: self.place,
            rule,
            by: Some(self.from),
            method: self.method.clone(),
            pointer: pointer.to_owned(),
            message: message.to_owned(),
            excuse: None,
        });
    }

    fn excused(&mut self, excuse: Excuse, rule: FindingKind, pointer: &str, message: &str) {
        self.add(rule, pointer, message);
        if let Some(last) = self.findings.last_mut() {
            last.excuse = Some(excuse);
        }
    }

    fn defects(&mut self, defects: &[Defect]) {
        for defect in defects {
            self.add(FindingKind::Envelope, defect.pointer, &defect.message);
        }
    }

    fn verdict(&mut self, verdict: Verdict, member: &str) -> Judged {
        match verdict {
            Verdict::Valid => Judged::Valid,
            Verdict::Unknown => Judged::Open,
            Verdict::Invalid(violations) => {
                for violation in violations {
                    let pointer = format!("{member}{}", violation.path);
                    let message = envelope::abridge(&violation.message);
                    self.add(FindingKind::Schema, &pointer, &message);
                }
                Judged::Invalid
            }
        }
    }

    /// An answer that belongs to no open request.
    fn stray(&mut self, id: Option<&Value>, answer: Answer<'_>) {
        let code = match answer {
            Answer::Error(error) => error_code(error),
            Answer::Result(_) => None,
        };
        let unreadable = matches!(
            code,
            Some(ErrorCode::PARSE_ERROR | ErrorCode::INVALID_REQUEST)
        );
        if id.is_none() && matches!(answer, Answer::Error(_)) {
            let message = "expected `id: null` in an error whose request is unknown, got no id";
            self.add(FindingKind::MissingId, "/id", message);
        }
        match id {
            // The one case in which JSON-RPC wants an answer without a request:
            // the message could not be read, so its id is unknown.
            None | Some(Value::Null) if unreadable => {}
            None | Some(Value::Null) => {
                let message = "expected the id of a request, got none and no code of an unreadable \
                    message; an answer to a notification looks like this";
                self.add(FindingKind::NotificationAnswered, "/id", message);
            }
            Some(id) => {
                let message = format!(
                    "expected the id of an open request, got {}",
                    envelope::excerpt(id)
                );
                self.add(FindingKind::UnmatchedAnswer, "/id", &message);
            }
        }
    }

    fn observed(self, kind: Kind, judged: Judged) -> Observed {
        Observed {
            kind,
            method: self.method,
            judged,
            findings: self.findings,
        }
    }
}

/// What a finding about a request weighs once its receiver refused it.
fn as_probe(finding: Finding) -> Finding {
    Finding {
        message: format!("{} (refused by the agent)", finding.message),
        excuse: Some(Excuse::Refused),
        ..finding
    }
}

fn session_of(params: Option<&Value>) -> Option<&str> {
    params?.get("sessionId")?.as_str()
}

#[cfg(test)]
#[path = "tracker_tests.rs"]
mod tests;
