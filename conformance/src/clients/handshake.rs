//! The handshake, what a client may say at all, and how it ends.

use serde_json::Value;

use super::assertions::{expect, first, needs, obeys};
use super::played::{ClientCheck, Played};
use crate::harness::{Entry, Outcome, Stop, fail, inconclusive};
use crate::passive::Rule;
use crate::wire::{FindingKind, Kind, Party};

/// Findings about what is no valid message of a client.
pub(super) const ONLY_MESSAGES: Rule = Rule::Findings(&[
    FindingKind::Schema,
    FindingKind::Envelope,
    FindingKind::NotJson,
    FindingKind::TooLong,
    FindingKind::MissingId,
    FindingKind::NotificationAnswered,
    FindingKind::UnmatchedAnswer,
]);

pub(super) const CHECKS: &[ClientCheck] = &[
    ("client.initialize-first", initialize_first),
    ("client.version", version),
    ("client.closes-on-other-version", closes_on_other_version),
    ("client.valid-files", |played| {
        only_messages_when_asked(played, "fs/read_text_file")
    }),
    ("client.valid-terminals", |played| {
        only_messages(played)?;
        needs(played, "/terminal")?;
        only_messages_when_asked(played, "terminal/create")
    }),
    ("client.comes-to-an-end", comes_to_an_end),
];

pub(super) fn initialize_first(played: &Played) -> Outcome {
    let (index, _) = first(played, "initialize")?;
    let mut ours = played.recording.entries.iter().enumerate();
    let first = ours.find(|(_, entry)| {
        // The sentence is about what the protocol has, so that extensions may come before.
        let method = entry.method.as_deref().unwrap_or_default();
        entry.from == Party::Client && !method.starts_with('_')
    });
    expect(
        played,
        index,
        first.is_some_and(|(first, _)| first == index),
        "expected `initialize` as the first message, got another one before it",
    )?;
    self::first(played, "session/new").map(drop)
}

fn version(played: &Played) -> Outcome {
    asks_for(
        played,
        1,
        "expected a protocol version of at least 1, got another one or none",
    )
}

/// Whether `initialize` asks for a version not below `least`.
pub(super) fn asks_for(played: &Played, least: u64, reason: &str) -> Outcome {
    let (index, entry) = first(played, "initialize")?;
    let version = entry.params().get("protocolVersion");
    let version = version.and_then(Value::as_u64);
    let good = version.is_some_and(|version| version >= least);
    expect(played, index, good, reason)
}

pub(super) fn closes_on_other_version(played: &Played) -> Outcome {
    first(played, "initialize")?;
    let mut said = played.recording.entries.iter().enumerate();
    let is_other = |entry: &Entry| {
        let is_request = entry.from == Party::Client && entry.kind == Kind::Request;
        is_request && entry.method.as_deref() != Some("initialize")
    };
    match said.find(|(_, entry)| is_other(entry)) {
        Some((index, entry)) => Err(Stop::at(
            &played.recording,
            index,
            format!(
                "expected no other request to an agent of version 65535, got {}",
                entry.method.as_deref().unwrap_or_default()
            ),
        )),
        None if played.closed || played.exit.is_some() => Ok(()),
        None => {
            fail("expected the connection to be closed, got one that stays open without a message")
        }
    }
}

pub(super) fn only_messages(played: &Played) -> Outcome {
    first(played, "initialize")?;
    obeys(played, ONLY_MESSAGES)
}

/// A client that the scenario did not get to ask has shown nothing of what the row is about.
fn only_messages_when_asked(played: &Played, method: &str) -> Outcome {
    only_messages(played)?;
    match played.recording.calls(Party::Agent, method).next() {
        Some(_) => Ok(()),
        None => inconclusive(format!("the scenario did not get to {method}")),
    }
}

pub(super) fn comes_to_an_end(played: &Played) -> Outcome {
    if played.exit.is_some() {
        return Ok(());
    }
    fail("expected the client to end after its only turn, got one that goes on")
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use serde_json::json;

    use super::*;
    use crate::wire::Schema;

    fn played(calls: &[(&str, Option<u64>)]) -> Played {
        let lines = calls.iter().map(|(method, id)| {
            let mut value = json!({"jsonrpc": "2.0", "method": method, "params": {}});
            if let Some(id) = id {
                value["id"] = json!(id);
            }
            json!({"from": "client", "at": 0, "value": value}).to_string() + "\n"
        });
        let schema = Schema::v1().unwrap();
        Played::new(
            &schema,
            lines.collect(),
            None,
            String::new(),
            PathBuf::new(),
        )
    }

    #[test]
    fn a_client_that_was_not_asked_for_files_has_shown_nothing_of_them() {
        let version = json!({"protocolVersion": 1});
        let begin = json!({"id": 0, "method": "initialize", "params": version});
        let read = json!({"sessionId": "s", "path": "/a"});
        let ask = json!({"id": 1, "method": "fs/read_text_file", "params": read});
        let said = [("client", begin), ("agent", ask)];
        let files = |said: &[_]| {
            let played = Played::of(said.iter().cloned());
            only_messages_when_asked(&played, "fs/read_text_file")
        };
        assert!(files(&said).is_ok());
        assert!(matches!(files(&said[..1]), Err(Stop::Inconclusive(_))));
        let noise = ("client", json!({"id": 1, "result": 7}));
        assert!(matches!(
            files(&[said[0].clone(), noise]),
            Err(Stop::Fail(_))
        ));
    }

    #[test]
    fn a_client_without_terminals_is_not_asked_for_them() {
        let outcome = |terminal: bool| {
            let params =
                json!({"protocolVersion": 1, "clientCapabilities": {"terminal": terminal}});
            let begin = json!({"id": 0, "method": "initialize", "params": params});
            let row = CHECKS
                .iter()
                .find(|(id, _)| *id == "client.valid-terminals");
            row.unwrap().1(&Played::of([("client", begin)]))
        };
        assert!(matches!(outcome(false), Err(Stop::Skip(_))));
        assert!(matches!(outcome(true), Err(Stop::Inconclusive(_))));
    }

    #[test]
    fn only_extensions_come_before_initialize() {
        let (begin, open) = (("initialize", Some(0)), ("session/new", Some(1)));
        let is_first = |calls: &[(&str, Option<u64>)]| initialize_first(&played(calls)).is_ok();
        assert!(is_first(&[begin, open]));
        assert!(is_first(&[("_editor/hello", None), begin, open]));
        assert!(is_first(&[("_editor/ask", Some(9)), begin, open]));
        assert!(!is_first(&[("session/list", Some(9)), begin, open]));
        assert!(!is_first(&[open, begin, open]));
        assert!(!is_first(&[begin]));
    }
}
