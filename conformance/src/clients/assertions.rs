//! What the checks of clients look for in a scenario that was played.

use serde_json::{Value, json};

use super::Played;
use super::scenarios::BARRIER_METHOD;
use crate::harness::{Entry, Outcome, Stop, fail, inconclusive, skip};
use crate::wire::{Kind, Party};

pub(super) fn first<'a>(played: &'a Played, method: &'a str) -> Outcome<(usize, &'a Entry)> {
    let mut calls = played.recording.calls(Party::Client, method);
    calls.next().ok_or_else(|| {
        Stop::failed(format!(
            "the client did not call {method}{}",
            played.stderr_tail()
        ))
    })
}

/// The answer to the n-th request of the agent with this method.
pub(super) fn answer<'a>(
    played: &'a Played,
    method: &'a str,
    n: usize,
) -> Outcome<(usize, &'a Entry)> {
    let recording = &played.recording;
    let Some((index, _)) = recording.calls(Party::Agent, method).nth(n) else {
        return inconclusive(format!(
            "the scenario did not get to {method}{}",
            played.stderr_tail()
        ));
    };
    let reason = format!("no answer to {method}");
    recording
        .answer(index)
        .ok_or_else(|| Stop::at(recording, index, reason))
}

pub(super) fn result<'a>(
    played: &'a Played,
    method: &'a str,
    n: usize,
) -> Outcome<(usize, &'a Value)> {
    let (index, entry) = answer(played, method, n)?;
    match entry.value.get("result") {
        Some(result) => Ok((index, result)),
        None => Err(Stop::at(
            &played.recording,
            index,
            format!("{method} was refused"),
        )),
    }
}

pub(super) fn refused(played: &Played, method: &str, n: usize) -> Outcome<usize> {
    let (index, entry) = answer(played, method, n)?;
    match entry.kind {
        Kind::Error => Ok(index),
        _ => Err(Stop::at(
            &played.recording,
            index,
            format!("{method} was not refused"),
        )),
    }
}

pub(super) fn needs(played: &Played, pointer: &str) -> Outcome {
    if played.recording.declared(pointer).is_some() {
        return Ok(());
    }
    let name = pointer.trim_start_matches('/').replace('/', ".");
    skip(format!("the client does not declare `{name}`"))
}

pub(super) fn expect(played: &Played, index: usize, good: bool, reason: &str) -> Outcome {
    if good {
        Ok(())
    } else {
        Err(Stop::at(&played.recording, index, reason))
    }
}

/// The client stays until the scenario is over, and does not end before the turn does.
pub(super) fn survives(played: &Played) -> Outcome {
    let (prompt, _) = first(played, "session/prompt")?;
    let said = played.recording.updates_of("agent_message_chunk");
    let curtain =
        said.filter(|update| update.body.pointer("/content/text") == Some(&json!(BARRIER_METHOD)));
    if curtain.last().is_none() || played.recording.answer(prompt).is_none() {
        return fail(format!(
            "the scenario did not come to its end{}",
            played.stderr_tail()
        ));
    }
    match played.exit {
        Some(Some(code)) if code != 0 => fail(format!(
            "the client ended with exit code {code}{}",
            played.stderr_tail()
        )),
        Some(None) => fail(format!(
            "the client was killed by a signal{}",
            played.stderr_tail()
        )),
        _ => Ok(()),
    }
}
