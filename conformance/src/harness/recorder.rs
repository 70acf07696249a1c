//! Makes a recording out of messages: each is judged, and joined to the request
//! that it answers.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use super::{Entry, Recording};
use crate::wire::{Finding, FindingKind, Judged, Kind, Party, Schema, Tracker};

/// A recording in the making.
#[derive(Debug)]
pub struct Recorder {
    /// What was recorded so far.
    pub recording: Recording,
    tracker: Tracker,
    schema: Arc<Schema>,
    /// Whether the client has written an array on purpose.
    has_probed_arrays: bool,
}

impl Recorder {
    /// Nothing was said yet.
    #[must_use]
    pub fn new(schema: Arc<Schema>) -> Self {
        Self {
            recording: Recording::default(),
            tracker: Tracker::new(schema.clone()),
            schema,
            has_probed_arrays: false,
        }
    }

    /// Takes a message. Yields its place.
    pub fn message(&mut self, from: Party, value: Value, at: Duration) -> usize {
        let index = self.recording.entries.len();
        let mut observed = self.tracker.observe(from, index as u64, &value);
        let foreign = self.is_foreign(&value, observed.method.as_deref());
        if foreign {
            observed.judged = Judged::Open;
            let stays = |finding: &Finding| finding.rule == FindingKind::UnsupportedVersion;
            observed.findings.retain(stays);
        }
        if from == Party::Agent && self.has_probed_arrays && is_array_of_answers(&value) {
            // By JSON-RPC, an array is answered by one. The row that has sent it judges that.
            observed.judged = Judged::Open;
            observed.findings.clear();
        }
        let answers = matches!(observed.kind, Kind::Result | Kind::Error);
        let id = value.get("id").filter(|_| answers);
        let request = id.and_then(|id| self.open_request(from.peer(), id));
        self.recording.entries.push(Entry {
            from,
            at,
            value,
            raw: None,
            kind: observed.kind,
            judged: observed.judged,
            method: observed.method,
            request,
            findings: observed.findings,
        });
        if let Some(entry) = self.recording.entries.get_mut(index) {
            let (place, method) = (index as u64, entry.method.as_deref());
            if !foreign {
                let custom = self.schema.custom_names(from, place, method, &entry.value);
                entry.findings.extend(custom);
            }
        }
        // What waited for the answer to decide its weight belongs to the request.
        self.hand_back(index);
        index
    }

    /// Whether this is an answer to `initialize` that chooses another version, whose form is
    /// not for this schema to judge.
    fn is_foreign(&self, message: &Value, method: Option<&str>) -> bool {
        let chosen = message.pointer("/result/protocolVersion");
        let chosen = chosen.and_then(Value::as_u64);
        method == Some("initialize")
            && chosen.is_some_and(|chosen| chosen != self.schema.version().number())
    }

    /// Takes a line that is no message, for this reason. Yields its place.
    pub fn noise(
        &mut self,
        from: Party,
        line: String,
        rule: FindingKind,
        reason: &str,
        at: Duration,
    ) -> usize {
        let finding = Finding {
            place: self.recording.entries.len() as u64,
            rule,
            by: Some(from),
            method: None,
            pointer: String::new(),
            message: format!("expected a message, got other text: {reason}"),
            excuse: None,
        };
        self.push(from, Value::Null, line, Kind::Malformed, at, vec![finding])
    }

    /// Takes what the client wrote off the protocol on purpose. Yields its place.
    pub fn probe(&mut self, line: String, at: Duration) -> usize {
        let value = serde_json::from_str::<Value>(&line).unwrap_or_default();
        self.has_probed_arrays |= value.is_array();
        // The requests of an array may be answered one by one, which is a finding of its check.
        let parts = value
            .as_array()
            .map_or(std::slice::from_ref(&value), Vec::as_slice);
        for part in parts {
            self.tracker.observe_probe(Party::Client, part);
        }
        let kind = match (value.get("method"), value.get("id")) {
            (Some(_), Some(_)) => Kind::Request,
            (Some(_), None) => Kind::Notification,
            _ => Kind::Malformed,
        };
        self.push(Party::Client, value, line, kind, at, Vec::new())
    }

    fn push(
        &mut self,
        from: Party,
        value: Value,
        line: String,
        kind: Kind,
        at: Duration,
        findings: Vec<Finding>,
    ) -> usize {
        let method = value.get("method").and_then(Value::as_str);
        let method = method.map(str::to_owned);
        let judged = if findings.is_empty() {
            Judged::Open
        } else {
            Judged::Invalid
        };
        self.recording.entries.push(Entry {
            from,
            at,
            value,
            raw: Some(line),
            kind,
            judged,
            method,
            request: None,
            findings,
        });
        self.recording.entries.len() - 1
    }

    /// Moves findings to the messages that they are about.
    fn hand_back(&mut self, index: usize) {
        let Some(entry) = self.recording.entries.get_mut(index) else {
            return;
        };
        let findings = std::mem::take(&mut entry.findings);
        for finding in findings {
            let place = usize::try_from(finding.place).unwrap_or(index);
            if let Some(entry) = self.recording.entries.get_mut(place) {
                entry.findings.push(finding);
            }
        }
    }

    /// The youngest request of a side with this id that has no answer yet.
    pub(super) fn open_request(&self, of: Party, id: &Value) -> Option<usize> {
        let entries = self.recording.entries.iter().enumerate();
        let with_id = |(_, entry): &(usize, &Entry)| {
            entry.from == of && entry.kind == Kind::Request && entry.value.get("id") == Some(id)
        };
        let (index, _) = entries.rev().find(with_id)?;
        self.recording.answer(index).is_none().then_some(index)
    }
}

/// Whether this is an array of responses, and of at least one.
fn is_array_of_answers(value: &Value) -> bool {
    let is_answer = |part: &Value| {
        part.get("method").is_none()
            && (part.get("result").is_some() || part.get("error").is_some())
    };
    let parts = value.as_array().filter(|parts| !parts.is_empty());
    parts.is_some_and(|parts| parts.iter().all(is_answer))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::wire::Version;

    #[test]
    fn the_requests_of_an_array_may_be_answered_one_by_one() {
        let mut recorder = Recorder::new(Schema::of(Version::V2).unwrap());
        let request = |id: &str| json!({"jsonrpc": "2.0", "id": id, "method": "session/list"});
        recorder.probe(json!([request("a"), 7]).to_string(), Duration::ZERO);
        let answer = |id: &str| json!({"jsonrpc": "2.0", "id": id, "result": {"sessions": []}});
        let known = recorder.message(Party::Agent, answer("a"), Duration::ZERO);
        let unknown = recorder.message(Party::Agent, answer("b"), Duration::ZERO);
        let is_unmatched = |index: usize| {
            let findings = &recorder.recording.entries[index].findings;
            findings
                .iter()
                .any(|finding| finding.rule == FindingKind::UnmatchedAnswer)
        };
        assert!(!is_unmatched(known) && is_unmatched(unknown));
    }

    #[test]
    fn an_array_may_be_answered_by_an_array() {
        let mut recorder = Recorder::new(Schema::of(Version::V1).unwrap());
        let answers =
            json!([{"jsonrpc": "2.0", "id": "a", "error": {"code": -32601, "message": "m"}}]);
        let unasked = recorder.message(Party::Agent, answers.clone(), Duration::ZERO);
        let request = json!([{"jsonrpc": "2.0", "id": "a", "method": "_x/y"}]);
        recorder.probe(request.to_string(), Duration::ZERO);
        let asked = recorder.message(Party::Agent, answers, Duration::ZERO);
        let calls = json!([{"jsonrpc": "2.0", "method": "_x/y"}]);
        let calls = recorder.message(Party::Agent, calls, Duration::ZERO);
        let has_defect = |index: usize| !recorder.recording.entries[index].findings.is_empty();
        assert!(has_defect(unasked) && !has_defect(asked) && has_defect(calls));
    }
}
