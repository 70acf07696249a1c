//! Judges records one after the other: the rules of [`crate::wire`], applied to
//! what a recorder says that it saw.
//!
//! Both parties are judged, but a client that probes its agent is not at violation:
//! a request that the agent refused, and a line that the recorder kept
//! as `raw` without a reason, count for nothing. Nothing a client sent counts
//! against the agent.
//!
//! The version of the protocol is the one that was agreed on in `initialize`, unless one is
//! given. The protocol of another system, a dialect, is judged by its schema alone.
//!
//! What is held is the open requests and the state of the sessions, bounded.

mod check;
mod diagnostic;
mod live;
mod summary;

use serde_json::Value;

pub use self::check::{CheckOptions, check};
pub use self::diagnostic::{Diagnostic, Level};
use self::live::Live;
pub use self::summary::{Spoken, Summary, Tally};
use crate::passive::Said;
use crate::transcript::{self, Record};
use crate::wire::{
    Agreement, Basis, Excuse, Finding, FindingKind, Judged, Kind, Observed, Party, Schemas,
    Tracker, Version, describe, read_envelope,
};

/// The judge of one recording or one live connection.
#[derive(Debug)]
pub struct Judge {
    agreement: Agreement,
    tracker: Tracker,
    live: Live,
    from: Option<Party>,
    summary: Summary,
    place: u64,
    /// Whether a message was seen.
    begun: bool,
}

impl Judge {
    /// A judge who has seen nothing yet. `from` is the writer of every record
    /// without a direction; `None` to infer it.
    #[must_use]
    pub fn new(schemas: impl Into<Schemas>, from: Option<Party>) -> Self {
        let agreement = Agreement::new(schemas.into());
        Self {
            tracker: Tracker::new(agreement.schema().clone()),
            agreement,
            live: Live::default(),
            from,
            summary: Summary::default(),
            place: 0,
            begun: false,
        }
    }

    /// Judges the next record; `each` is given what is found. `place` is where the
    /// record stands.
    pub fn record(&mut self, place: u64, record: &Record, each: &mut dyn FnMut(Diagnostic)) {
        self.place = place;
        match record {
            Record::Message(from, value) => self.message(*from, value, each),
            Record::Raw { from, text, why } => self.raw(*from, text, why.as_deref(), each),
            Record::Lost {
                from,
                messages,
                why,
                on_purpose,
            } => {
                let excuse = on_purpose.then_some(Excuse::OnPurpose);
                self.lost(*from, *messages, why, excuse, each);
            }
            Record::Plain(value) => self.plain(value, each),
        }
    }

    /// Reports what is wrong with a whole line rather than with a message.
    pub(super) fn report(
        &mut self,
        place: u64,
        rule: FindingKind,
        by: Option<Party>,
        message: String,
        each: &mut dyn FnMut(Diagnostic),
    ) {
        let finding = Finding {
            place,
            rule,
            by,
            method: None,
            pointer: String::new(),
            message,
            excuse: None,
        };
        self.found(finding, each);
    }

    /// What was counted so far.
    pub fn summary(&mut self) -> &mut Summary {
        &mut self.summary
    }

    /// Ends the connection: what waited for an answer comes out now.
    pub fn finish(mut self, each: &mut dyn FnMut(Diagnostic)) -> Summary {
        let mut findings = self.tracker.finish();
        let live = std::mem::take(&mut self.live);
        live.finish(&mut |finding| findings.push(finding));
        for finding in findings {
            self.found(finding, each);
        }
        let dialect = self.dialect();
        self.summary.protocol = Some(Spoken {
            version: dialect.map_or(self.agreement.number(), |_| 0),
            dialect,
            basis: self.agreement.basis(),
        });
        self.summary
    }

    fn version(&self) -> Version {
        self.agreement.schema().version()
    }

    /// The protocol, if it is that of another system: its schema alone counts then.
    fn dialect(&self) -> Option<&'static str> {
        self.agreement.schema().dialect_name()
    }

    /// A connection whose beginning was not seen has requests that were not seen either.
    fn begin(&mut self, from: Party, value: &Value) {
        if std::mem::replace(&mut self.begun, true) {
            return;
        }
        let method = value.get("method").and_then(Value::as_str);
        let is_beginning = match self.dialect() {
            None => (from, method) == (Party::Client, Some("initialize")),
            // Not each has `initialize`.
            Some(_) => from == Party::Client && method.is_some(),
        };
        if !is_beginning {
            self.tracker.lost();
        }
    }

    fn message(&mut self, from: Party, value: &Value, each: &mut dyn FnMut(Diagnostic)) {
        self.begin(from, value);
        if self.agreement.hear(from, value) {
            self.tracker.speak(self.agreement.schema().clone());
        }
        let Observed {
            kind,
            judged,
            mut findings,
            method,
        } = self.tracker.observe(from, self.place, value);
        self.summary.tally(from).count(judged);
        let schema = self.tracker.schema();
        let supported = self.dialect().is_none() && self.agreement.basis() != Basis::Unsupported;
        if supported {
            findings.extend(schema.custom_names(from, self.place, method.as_deref(), value));
        }
        let said = Said {
            place: self.place,
            from,
            kind,
            value,
        };
        // What the schema forbids is said once, not again in the words of a rule.
        let sound = judged != Judged::Invalid;
        let version = self.version();
        if supported {
            self.live.see(version, said, &mut |finding| {
                if sound {
                    findings.push(finding);
                }
            });
        }
        if from == Party::Client && kind == Kind::Request && !findings.is_empty() {
            let (own, others) = findings.into_iter().partition(|it| it.place == self.place);
            findings = self.tracker.hold(value.get("id"), own);
            findings.extend::<Vec<_>>(others);
        }
        for finding in findings {
            self.found(finding, each);
        }
    }

    fn raw(
        &mut self,
        from: Party,
        text: &str,
        why: Option<&str>,
        each: &mut dyn FnMut(Diagnostic),
    ) {
        let value = serde_json::from_str::<Value>(text);
        let why = match (from, value, why) {
            (_, value, Some(why)) => {
                if let Ok(value) = value {
                    self.probe(from, &value);
                }
                why.to_owned()
            }
            (Party::Client, value, None) => {
                self.summary.client.raw += 1;
                if let Ok(value) = value {
                    self.probe(from, &value);
                }
                return;
            }
            (Party::Agent, Ok(value), None) => return self.message(from, &value, each),
            (Party::Agent, Err(error), None) => error.to_string(),
        };
        self.summary.tally(from).raw += 1;
        let message = format!("the {from}'s output holds what is no message: {why}");
        self.report(self.place, FindingKind::NotJson, Some(from), message, each);
    }

    /// Takes a line that was written off the protocol; what answers it is no mistake.
    fn probe(&mut self, from: Party, value: &Value) {
        self.tracker.observe_probe(from, value);
        let kind = match (value.get("method"), value.get("id")) {
            (Some(_), Some(_)) => Kind::Request,
            (Some(_), None) => Kind::Notification,
            _ => Kind::Malformed,
        };
        let said = Said {
            place: self.place,
            from,
            kind,
            value,
        };
        // What is found in it is on purpose.
        let version = self.version();
        self.live.see(version, said, &mut |_| {});
    }

    /// Messages were not read: nothing is held against anybody that they may explain.
    pub(super) fn skipped(&mut self) {
        self.tracker.lost();
        self.live.lose();
    }

    fn lost(
        &mut self,
        from: Party,
        messages: u64,
        why: &str,
        excuse: Option<Excuse>,
        each: &mut dyn FnMut(Diagnostic),
    ) {
        self.summary.tally(from).lost += messages;
        self.skipped();
        let messages = match messages {
            1 => "a message was".to_owned(),
            many => format!("{many} messages were"),
        };
        let finding = Finding {
            place: self.place,
            rule: FindingKind::Lost,
            by: Some(from),
            method: None,
            pointer: String::new(),
            message: format!("{messages} not judged: {why}"),
            excuse,
        };
        self.found(finding, each);
    }

    fn plain(&mut self, value: &Value, each: &mut dyn FnMut(Diagnostic)) {
        let inferred = self
            .from
            .or_else(|| transcript::infer(&self.tracker, value));
        if let Some(from) = inferred {
            self.message(from, value, each);
            return;
        }
        self.summary.unknown += 1;
        self.live.lose();
        let (message, defects) = read_envelope(value);
        for defect in defects {
            let mut text = defect.message;
            if message.is_none() && !value.is_object() {
                text = format!("{} is no message: {text}", describe(value));
            }
            let finding = Finding {
                place: self.place,
                rule: FindingKind::Envelope,
                by: None,
                method: None,
                pointer: defect.pointer.to_owned(),
                message: text,
                excuse: None,
            };
            self.found(finding, each);
        }
    }

    fn found(&mut self, finding: Finding, each: &mut dyn FnMut(Diagnostic)) {
        // With one party's messages alone, no answer can find its request.
        if self.from.is_some() && finding.rule == FindingKind::UnmatchedAnswer {
            return;
        }
        let diagnostic = match self.dialect() {
            None => Diagnostic::new(self.version(), finding),
            Some(_) => Diagnostic::of_schema(finding),
        };
        self.summary.found(&diagnostic);
        each(diagnostic);
    }
}

#[cfg(test)]
mod rows_tests;

#[cfg(test)]
mod tests {

    use serde_json::json;

    use super::*;
    use crate::wire::Schema;

    fn judged(records: &[Record]) -> (Summary, Vec<(Level, FindingKind)>) {
        let mut judge = Judge::new(Schema::v1().unwrap(), None);
        let mut found = Vec::new();
        let mut each = |all: Diagnostic| found.push((all.level, all.finding.rule));
        for (place, record) in (1..).zip(records) {
            judge.record(place, record, &mut each);
        }
        let summary = judge.finish(&mut each);
        (summary, found)
    }

    fn raw(from: Party, why: Option<&str>) -> Record {
        Record::Raw {
            from,
            text: "{oops".into(),
            why: why.map(str::to_owned),
        }
    }

    #[test]
    fn a_reason_makes_a_raw_line_an_error_of_either_party() {
        let (summary, found) = judged(&[raw(Party::Client, None)]);
        assert_eq!((summary.client.raw, found), (1, vec![]));
        for from in [Party::Client, Party::Agent] {
            let (mut summary, found) = judged(&[raw(from, Some("no"))]);
            assert_eq!(found, [(Level::Error, FindingKind::NotJson)]);
            assert_eq!(summary.tally(from).raw, 1);
        }
    }

    #[test]
    fn nothing_is_held_against_anybody_that_lost_messages_may_explain() {
        let initialize = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize",
            "params": {"protocolVersion": 1, "clientInfo": {"name": "c", "version": "1"}}});
        let initialize = Record::Message(Party::Client, initialize);
        let answer = json!({"jsonrpc": "2.0", "id": 1, "result": {"sessionId": "s"}});
        let answer = Record::Message(Party::Agent, answer);
        let (_, found) = judged(&[initialize.clone(), answer.clone()]);
        assert_eq!(found, [(Level::Error, FindingKind::UnmatchedAnswer)]);
        let (_, found) = judged(std::slice::from_ref(&answer));
        assert_eq!(found, []);
        let lost = Record::Lost {
            from: Party::Client,
            messages: 2,
            why: "the queue was full".into(),
            on_purpose: false,
        };
        let (summary, found) = judged(&[initialize.clone(), lost, answer.clone()]);
        assert_eq!(found, [(Level::Warning, FindingKind::Lost)]);
        assert_eq!(summary.client.lost, 2);
        let left_out = Record::Lost {
            from: Party::Client,
            messages: 1,
            why: "part of earlier checks".into(),
            on_purpose: true,
        };
        let (_, found) = judged(&[initialize, left_out, answer]);
        assert_eq!(found, [(Level::Note, FindingKind::Lost)]);
    }
}
