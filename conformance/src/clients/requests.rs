//! What a client sends once, and what it sends as a notification.

use super::Played;
use super::table::ClientCheck;
use crate::harness::{Outcome, Stop, inconclusive};
use crate::passive::{RuleResult, Said, State, View, violation};
use crate::wire::{Kind, Party};

pub(super) const CHECKS: &[ClientCheck] = &[
    ("client.initializes-once", |played| {
        obeys(played, initializes_once)
    }),
    ("client.cancel-is-notification", |played| {
        // Nothing obliges a client to cancel.
        match played
            .recording
            .calls(Party::Client, "session/cancel")
            .next()
        {
            Some(_) => obeys(played, cancel_is_notification),
            None => inconclusive("the client did not call session/cancel"),
        }
    }),
];

/// What the client did must obey a rule that its live traffic is held against, too.
fn obeys(played: &Played, rule: fn(&View<'_>) -> RuleResult) -> Outcome {
    let mut state = State::whole();
    for (index, entry) in played.recording.entries.iter().enumerate() {
        let said = Said {
            place: u64::try_from(index).unwrap_or(u64::MAX),
            from: entry.from,
            kind: entry.kind,
            value: &entry.value,
        };
        if let Err(violation) = rule(&View::new(&state, said)) {
            return Err(Stop::at(&played.recording, index, violation.reason));
        }
        state.take(said);
    }
    Ok(())
}

pub(super) fn initializes_once(view: &View<'_>) -> RuleResult {
    if !view.calls(Party::Client, "initialize") {
        return Ok(0);
    }
    match view.state.client {
        Some(_) => violation("expected one `initialize` on the connection, got a second one"),
        None => Ok(1),
    }
}

pub(super) fn cancel_is_notification(view: &View<'_>) -> RuleResult {
    if !view.calls(Party::Client, "session/cancel") {
        return Ok(0);
    }
    match view.said.kind {
        Kind::Request => {
            violation("expected the notification session/cancel, got a request with an id")
        }
        _ => Ok(1),
    }
}
