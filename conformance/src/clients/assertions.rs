//! What the checks of clients look for in a scenario that was played.

use serde_json::{Value, json};

use super::played::Played;
use super::scripted_agent::{BARRIER_METHOD, STILL_THERE};
use crate::harness::{Entry, Outcome, Stop, fail, inconclusive, skip};
use crate::passive::{Rule, State, View};
use crate::wire::{Excuse, Finding, Kind, Party, shorten};

pub(super) fn first<'a>(played: &'a Played, method: &'a str) -> Outcome<(usize, &'a Entry)> {
    let mut calls = played.recording.calls(Party::Client, method);
    calls.next().ok_or_else(|| {
        Stop::failed(format!(
            "expected a call of {method}, got none{}",
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
    let reason = format!("expected an answer to {method}, got none");
    recording
        .answer(index)
        .ok_or_else(|| Stop::after(recording, index, reason))
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
            format!("expected a result of {method}, got an error"),
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
            format!("expected an error for {method}, got a result"),
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

/// The message at this place has this value where it is due.
pub(super) fn equals(
    played: &Played,
    index: usize,
    what: &str,
    expected: &Value,
    found: Option<&Value>,
) -> Outcome {
    let got = found.map_or_else(
        || "none".to_owned(),
        |found| shorten(&found.to_string(), LONGEST),
    );
    let reason = format!("expected {what} {expected}, got {got}");
    expect(played, index, found == Some(expected), &reason)
}

/// How much of a value stands in a reason.
const LONGEST: usize = 200;

/// The client stays until the scenario is over, and does not end before the turn does.
pub(super) fn survives(played: &Played) -> Outcome {
    let (prompt, _) = first(played, "session/prompt")?;
    let said = played.recording.updates_of("agent_message_chunk");
    let curtain =
        said.filter(|update| update.body.pointer("/content/text") == Some(&json!(BARRIER_METHOD)));
    if curtain.last().is_none() || played.recording.answer(prompt).is_none() {
        return fail(format!(
            "expected the client to stay until the end of the scenario, got its end before{}",
            played.stderr_tail()
        ));
    }
    match played.exit {
        Some(Some(code)) if code != 0 => fail(format!(
            "expected the exit code 0, got {code}{}",
            played.stderr_tail()
        )),
        Some(None) => fail(format!(
            "expected the exit code 0, got an end by a signal{}",
            played.stderr_tail()
        )),
        _ => still_there(played),
    }
}

/// The client answers what the scenario asks at its end, if it does: that the agent has sent everything says
/// nothing of who reads it.
fn still_there(played: &Played) -> Outcome {
    let recording = &played.recording;
    let Some((asked, _)) = recording.calls(Party::Agent, STILL_THERE).next() else {
        return Ok(());
    };
    if recording.answer(asked).is_some() {
        return Ok(());
    }
    let mut earlier = recording.entries.iter().enumerate().take(asked);
    let is_answered = |(index, entry): (usize, &Entry)| {
        entry.from == Party::Agent && recording.answer(index).is_some()
    };
    if !earlier.any(is_answered) {
        return inconclusive("the client answers no request whose method it does not know");
    }
    let reason = "expected an answer to a request at the end of the scenario, got none";
    Err(Stop::after(recording, asked, reason))
}

/// What the client sent in a scenario must obey a rule.
pub(super) fn obeys(played: &Played, rule: Rule) -> Outcome {
    let broken = |index, reason: String| Err(Stop::at(&played.recording, index, reason));
    let mut state = State::whole();
    state.speak(played.version);
    for (index, entry) in played.recording.entries.iter().enumerate() {
        if let Rule::Findings(kinds) = rule {
            let mut found = entry.findings.iter();
            let is_broken = |finding: &&Finding| {
                // The client is judged, so that a request which the agent has refused is no probe.
                let counts = matches!(finding.excuse, None | Some(Excuse::Refused));
                counts && finding.by == Some(Party::Client) && kinds.contains(&finding.rule)
            };
            if let Some(finding) = found.find(is_broken) {
                return broken(index, finding.to_string());
            }
            continue;
        }
        let said = entry.said(index);
        let view = View::new(&state, said);
        if let Some(look) = rule.at_message(&view)
            && let Err(violation) = look(&view)
        {
            return broken(index, violation.reason);
        }
        state.take(said);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::scripted_agent::BEFORE;
    use super::*;

    #[test]
    fn a_client_that_reads_no_more_does_not_stay() {
        let outcome = |before: bool, after: bool| {
            let ask = |id: &str, method: &str| ("agent", json!({"id": id, "method": method}));
            let error = json!({"code": -32601, "message": "unknown"});
            let answer = |id: &str| ("client", json!({"id": id, "error": error}));
            let content = json!({"type": "text", "text": BARRIER_METHOD});
            let update = json!({"sessionUpdate": "agent_message_chunk", "content": content});
            let params = json!({"sessionId": "s", "update": update});
            let end = (
                "agent",
                json!({"method": "session/update", "params": params}),
            );
            let mut said = vec![("client", json!({"id": 1, "method": "session/prompt"}))];
            said.push(ask("a", BEFORE));
            said.extend(before.then(|| answer("a")));
            said.push(ask("b", STILL_THERE));
            said.extend(after.then(|| answer("b")));
            said.extend([
                end,
                (
                    "agent",
                    json!({"id": 1, "result": {"stopReason": "end_turn"}}),
                ),
            ]);
            let mut played = Played::of(said);
            // The agent has sent everything, and the client is killed at the end of its time.
            played.exit = None;
            survives(&played)
        };
        assert!(outcome(true, true).is_ok());
        assert!(matches!(outcome(true, false), Err(Stop::Fail(_))));
        assert!(matches!(outcome(false, false), Err(Stop::Inconclusive(_))));
    }
}
