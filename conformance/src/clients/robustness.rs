//! How a client takes what it does not know or does not want: extensions, updates of
//! the future, noise, cancellation, the death of its agent.

use acp_sdk::ErrorCode;
use serde_json::json;

use super::assertions::{answer, equals, expect, first, result, survives};
use super::played::{ClientCheck, Played};
use super::scripted_agent::STILL_THERE;
use crate::harness::{Entry, Outcome, Stop, fail, inconclusive, skip};
use crate::wire::{Kind, Party};

pub(super) const CHECKS: &[ClientCheck] = &[
    ("client.answers-extensions", answers_extensions),
    ("client.method-not-found", method_not_found),
    ("client.ignores-notifications", ignores_the_unknown),
    ("client.survives-the-future", survives),
    ("client.survives-noise", survives),
    ("client.no-undeclared-answers", questions),
    ("client.ignores-completions", survives),
    (
        "client.cancels-pending-permission",
        cancels_pending_permission,
    ),
    ("client.cancelled-request", cancelled_request),
    ("client.hears-after-cancelling", hears_after_cancelling),
    ("client.reports-errors", reports_errors),
    ("client.notices-death", notices_death),
];

pub(super) fn answers_extensions(played: &Played) -> Outcome {
    answer(played, "_acp-conformance/unknown", 0).map(drop)
}

pub(super) fn method_not_found(played: &Played) -> Outcome {
    for method in ["_acp-conformance/unknown", "no/such/method"] {
        let (index, entry) = answer(played, method, 0)?;
        let code = entry.value.pointer("/error/code");
        equals(
            played,
            index,
            "the error",
            &json!(ErrorCode::METHOD_NOT_FOUND),
            code,
        )?;
    }
    Ok(())
}

/// The scenario has more that is unknown after the notification, and a client may end at that.
pub(super) fn ignores_the_unknown(played: &Played) -> Outcome {
    let outcome = ignores_notifications(played);
    let went_on = answer(played, "_acp-conformance/unknown", 0).is_ok();
    match outcome {
        Err(Stop::Fail(_)) if went_on && stray_answer(played).is_none() => inconclusive(
            "the client went on after the notification, and ended before the scenario did",
        ),
        outcome => outcome,
    }
}

pub(super) fn ignores_notifications(played: &Played) -> Outcome {
    first(played, "session/prompt")?;
    match stray_answer(played) {
        Some(index) => Err(Stop::at(
            &played.recording,
            index,
            "expected no answer to a notification, got one",
        )),
        None => survives(played),
    }
}

/// The place of an answer to no request.
fn stray_answer(played: &Played) -> Option<usize> {
    played.recording.entries.iter().position(|entry| {
        let answer = matches!(entry.kind, Kind::Result | Kind::Error);
        entry.from == Party::Client && answer && entry.request.is_none()
    })
}

fn questions(played: &Played) -> Outcome {
    refuses_forms(played, "clientCapabilities")
}

/// A form is answered by a client that declares forms in this member, and refused by another one.
pub(super) fn refuses_forms(played: &Played, member: &str) -> Outcome {
    let (_, handshake) = first(played, "initialize")?;
    let capabilities = handshake.params().get(member);
    let declares = |pointer: &str| {
        let value = capabilities.and_then(|all| all.pointer(pointer));
        value.is_some_and(|value| !value.is_null())
    };
    let (index, entry) = answer(played, "elicitation/create", 0)?;
    if declares("/elicitation/form") {
        let reason = "expected a result from a client that declares forms, got an error";
        return expect(played, index, entry.kind == Kind::Result, reason);
    }
    let code = entry.value.get("error").and_then(crate::wire::error_code);
    // One that declares no mode at all may not know the method.
    let is_unknown = code == Some(ErrorCode::METHOD_NOT_FOUND) && !declares("/elicitation");
    let reason = "expected the error -32602 for a mode that is not declared, got another answer";
    expect(
        played,
        index,
        code == Some(ErrorCode::INVALID_PARAMS) || is_unknown,
        reason,
    )
}

pub(super) fn cancels_permission(played: &Played) -> Outcome {
    let mut cancels = played.recording.calls(Party::Client, "session/cancel");
    if cancels.next().is_none() {
        return inconclusive("the client does not cancel when it is interrupted");
    }
    let (index, result) = result(played, "session/request_permission", 0)?;
    let outcome = result.pointer("/outcome/outcome");
    equals(played, index, "the outcome", &json!("cancelled"), outcome)
}

/// The question was asked before the client cancelled the turn.
pub(super) fn cancels_pending_permission(played: &Played) -> Outcome {
    let recording = &played.recording;
    let mut asked = recording.calls(Party::Agent, "session/request_permission");
    let Some((asked, _)) = asked.next() else {
        return inconclusive("the scenario did not get to session/request_permission");
    };
    let mut cancels = recording.calls(Party::Client, "session/cancel");
    let cancel = cancels.next().map(|(index, _)| index);
    let decided = |(_, answer): &(usize, &Entry)| {
        answer.value.pointer("/result/outcome/outcome") != Some(&json!("cancelled"))
    };
    // It may answer with `cancelled` before it cancels the turn.
    let early = recording.answer(asked).filter(decided);
    let early = early.filter(|(answer, _)| cancel.is_none_or(|cancel| *answer < cancel));
    match (early, cancel) {
        (Some(_), _) => skip("the client decides before its user can cancel the turn"),
        (None, Some(_)) => cancels_permission(played),
        (None, None) => inconclusive("the client does not cancel when it is interrupted"),
    }
}

/// A request that the agent cancels is answered by a result, or by the error for it.
fn cancelled_request(played: &Played) -> Outcome {
    let (index, answer) = answer_to_cancelled(played)?;
    let code = answer.value.pointer("/error/code");
    let good = code.is_none_or(|code| *code == json!(ErrorCode::REQUEST_CANCELLED));
    let code = code.cloned().unwrap_or_default();
    let reason = format!("expected a result or the error -32800, got the error {code}");
    expect(played, index, good, &reason)
}

/// The answer to the request for permission that the agent cancelled, which is optional.
pub(super) fn answer_to_cancelled(played: &Played) -> Outcome<(usize, &Entry)> {
    let recording = &played.recording;
    let mut cancels = recording.calls(Party::Agent, "$/cancel_request");
    if cancels.next().is_none() {
        return skip("the client decides before the agent can cancel its request");
    }
    let mut asked = recording.calls(Party::Agent, "session/request_permission");
    let answer = asked.next().and_then(|(asked, _)| recording.answer(asked));
    match answer {
        Some(answer) => Ok(answer),
        None => skip("the client does not cancel requests, which is optional"),
    }
}

pub(super) fn hears_after_cancelling(played: &Played) -> Outcome {
    answer(played, STILL_THERE, 0).map(drop)
}

/// The agent has refused the prompt.
pub(super) fn reports_errors(played: &Played) -> Outcome {
    first(played, "session/prompt")?;
    match played.exit {
        None => inconclusive("the client goes on, and may show the error to its user"),
        Some(Some(0)) => fail("expected another exit code than 0 after an error, got 0"),
        Some(None) => fail("expected an exit code after an error, got an end by a signal"),
        Some(Some(_)) => Ok(()),
    }
}

pub(super) fn notices_death(played: &Played) -> Outcome {
    first(played, "session/prompt")?;
    match played.exit {
        None => fail("expected the client to end after its agent, got one that goes on"),
        Some(Some(0)) => {
            fail("expected another exit code than 0 after the death of the agent, got 0")
        }
        Some(None) => {
            fail("expected an exit code after the death of the agent, got an end by a signal")
        }
        Some(Some(_)) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use serde_json::Value;

    use super::*;
    use crate::wire::Schema;

    #[test]
    fn a_client_that_ends_at_something_else_is_not_blamed_for_the_notification() {
        let outcome = |said: &[(&str, Value)]| {
            let prompt = json!({"id": 1, "method": "session/prompt", "params": {}});
            let note = json!({"method": "_acp-conformance/note"});
            let asked = json!({"id": "a", "method": "_acp-conformance/unknown"});
            let begin = [("client", prompt), ("agent", note), ("agent", asked)];
            let lines = begin.iter().chain(said).map(|(from, value)| {
                let mut value = value.clone();
                value["jsonrpc"] = json!("2.0");
                json!({"from": from, "at": 0, "value": value}).to_string() + "\n"
            });
            let schema = Schema::v1().unwrap();
            let played = Played::new(
                &schema,
                lines.collect(),
                Some(Some(1)),
                String::new(),
                PathBuf::new(),
            );
            ignores_the_unknown(&played)
        };
        let error = json!({"code": ErrorCode::METHOD_NOT_FOUND, "message": "unknown"});
        let answer = ("client", json!({"id": "a", "error": error}));
        let stray = ("client", json!({"id": null, "error": error}));
        assert!(matches!(outcome(&[]), Err(Stop::Fail(_))));
        let went_on = outcome(std::slice::from_ref(&answer));
        assert!(matches!(went_on, Err(Stop::Inconclusive(_))), "{went_on:?}");
        assert!(matches!(outcome(&[stray, answer]), Err(Stop::Fail(_))));
    }
}
