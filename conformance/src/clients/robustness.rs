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
    ("client.survives-the-future", survives_the_unknown),
    ("client.survives-noise", survives),
    ("client.no-undeclared-answers", questions),
    ("client.ignores-completions", ignores_completions),
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
        Err(Stop::Fail(_)) if went_on && stray_answer(played, 0).is_none() => inconclusive(
            "the client went on after the notification, and ended before the scenario did",
        ),
        outcome => outcome,
    }
}

fn ignores_notifications(played: &Played) -> Outcome {
    first(played, "session/prompt")?;
    match stray_answer(played, 0) {
        Some(index) => Err(answers_notification(played, index)),
        None => survives(played),
    }
}

/// A client may end at the notification or at the requests that come before the updates.
pub(super) fn survives_the_unknown(played: &Played) -> Outcome {
    first(played, "session/prompt")?;
    match survives(played) {
        Err(Stop::Fail(_)) if answer(played, "no/such/method", 0).is_err() => inconclusive(
            "the client did not answer the request before the unknown updates, and ended before the scenario did",
        ),
        outcome => outcome,
    }
}

fn answers_notification(played: &Played, index: usize) -> Stop {
    let reason = "expected no answer to a notification, got one";
    Stop::at(&played.recording, index, reason)
}

/// The place of an answer to no request, from a place on.
pub(super) fn stray_answer(played: &Played, from: usize) -> Option<usize> {
    let mut entries = played.recording.entries.iter().enumerate().skip(from);
    let stray = entries.find(|(_, entry)| {
        let answer = matches!(entry.kind, Kind::Result | Kind::Error);
        entry.from == Party::Client && answer && entry.request.is_none()
    });
    stray.map(|(index, _)| index)
}

pub(super) fn ignores_completions(played: &Played) -> Outcome {
    ignores(played, "elicitation/complete")
}

pub(super) fn ignores_cancellations(played: &Played) -> Outcome {
    ignores(played, "$/cancel_request")
}

/// The client gives no answer to a notification, and goes on: a request after the last one of them is
/// answered. What it does at something else in the scenario is no concern of it.
fn ignores(played: &Played, method: &str) -> Outcome {
    let recording = &played.recording;
    let mut notes = recording
        .calls(Party::Agent, method)
        .map(|(index, _)| index);
    let Some(first) = notes.next() else {
        return inconclusive(format!("the scenario did not get to {method}"));
    };
    if let Some(index) = stray_answer(played, first) {
        return Err(answers_notification(played, index));
    }
    let last = notes.last().unwrap_or(first);
    let asked = recording.entries.iter().enumerate();
    let asked =
        asked.filter(|(_, entry)| entry.from == Party::Agent && entry.kind == Kind::Request);
    let answered = |(index, _): &(usize, &Entry)| recording.answer(*index).is_some();
    let (before, after): (Vec<_>, Vec<_>) = asked.partition(|(index, _)| *index < first);
    if after.iter().any(|it| it.0 > last && answered(it)) {
        return Ok(());
    }
    if !before.iter().any(answered) {
        return inconclusive(format!("the client answered no request before {method}"));
    }
    let reason = format!("expected an answer to a request after {method}, got none");
    Err(Stop::after(recording, first, reason))
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
    let has_forms = declares("/elicitation/form");
    let (index, entry) = match answer(played, "elicitation/create", 0) {
        Err(Stop::Fail(_)) if has_forms => {
            return inconclusive(
                "the client did not answer the form, which its user may have to do",
            );
        }
        answer => answer?,
    };
    if has_forms {
        let reason = "expected a result from a client that declares forms, got an error";
        return expect(played, index, entry.kind == Kind::Result, reason);
    }
    let code = entry.value.get("error").and_then(crate::wire::error_code);
    // One that declares nothing of it may not know the method.
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
    use serde_json::Value;

    use super::*;

    #[test]
    fn a_client_that_ends_at_something_else_is_not_blamed_for_the_notification() {
        let outcome = |said: &[(&'static str, Value)]| {
            let prompt = json!({"id": 1, "method": "session/prompt", "params": {}});
            let note = json!({"method": "_acp-conformance/note"});
            let asked = json!({"id": "a", "method": "_acp-conformance/unknown"});
            let begin = [("client", prompt), ("agent", note), ("agent", asked)];
            let said = said.iter().cloned();
            ignores_the_unknown(&Played::of(begin.into_iter().chain(said)))
        };
        let error = json!({"code": ErrorCode::METHOD_NOT_FOUND, "message": "unknown"});
        let answer = ("client", json!({"id": "a", "error": error}));
        let stray = ("client", json!({"id": null, "error": error}));
        assert!(matches!(outcome(&[]), Err(Stop::Fail(_))));
        let went_on = outcome(std::slice::from_ref(&answer));
        assert!(matches!(went_on, Err(Stop::Inconclusive(_))), "{went_on:?}");
        assert!(matches!(outcome(&[stray, answer]), Err(Stop::Fail(_))));
    }

    #[test]
    fn a_client_that_ends_before_the_unknown_updates_is_not_blamed_for_them() {
        let prompt = || {
            (
                "client",
                json!({"id": 1, "method": "session/prompt", "params": {}}),
            )
        };
        let asked = || ("agent", json!({"id": "a", "method": "no/such/method"}));
        let error = json!({"code": ErrorCode::METHOD_NOT_FOUND, "message": "unknown"});
        let outcome = |said: Vec<(&'static str, Value)>| survives_the_unknown(&Played::of(said));
        let before = outcome(vec![prompt(), asked()]);
        assert!(matches!(before, Err(Stop::Inconclusive(_))), "{before:?}");
        let answer = ("client", json!({"id": "a", "error": error}));
        let after = outcome(vec![prompt(), asked(), answer]);
        assert!(matches!(after, Err(Stop::Fail(_))), "{after:?}");
        assert!(matches!(outcome(Vec::new()), Err(Stop::Fail(_))));
    }

    #[test]
    fn a_form_may_wait_for_the_user_of_a_client_that_declares_forms() {
        let outcome = |elicitation: Value, answer: Option<Value>| {
            let params = json!({"clientCapabilities": {"elicitation": elicitation}});
            let begin = json!({"id": 0, "method": "initialize", "params": params});
            let form =
                json!({"id": "a", "method": "elicitation/create", "params": {"mode": "form"}});
            let said = [("client", begin), ("agent", form)].into_iter();
            let answer = answer.map(|answer| ("client", answer));
            refuses_forms(&Played::of(said.chain(answer)), "clientCapabilities")
        };
        let waits = outcome(json!({"form": {}}), None);
        assert!(matches!(waits, Err(Stop::Inconclusive(_))), "{waits:?}");
        let accepted = json!({"id": "a", "result": {"action": "accept"}});
        assert!(outcome(json!({"form": {}}), Some(accepted.clone())).is_ok());
        for other in [Value::Null, json!({}), json!({"url": {}})] {
            let refused = |code: ErrorCode| {
                let error = json!({"code": code, "message": "no"});
                outcome(other.clone(), Some(json!({"id": "a", "error": error}))).is_ok()
            };
            assert!(refused(ErrorCode::INVALID_PARAMS));
            assert_eq!(refused(ErrorCode::METHOD_NOT_FOUND), other.is_null());
            let answers = [None, Some(accepted.clone())];
            assert!(
                answers
                    .map(|it| outcome(other.clone(), it))
                    .iter()
                    .all(Result::is_err)
            );
        }
    }

    #[test]
    fn a_client_that_goes_on_after_a_cancellation_ignores_it() {
        let ask = |id: &str| ("agent", json!({"id": id, "method": "_x/ask", "params": {}}));
        let error = json!({"code": ErrorCode::METHOD_NOT_FOUND, "message": "unknown"});
        let answer = |id: &str| ("client", json!({"id": id, "error": error}));
        let cancel = |id: &str| {
            let params = json!({"requestId": id});
            (
                "agent",
                json!({"method": "$/cancel_request", "params": params}),
            )
        };
        let outcome = |said: Vec<(&'static str, Value)>| ignores_cancellations(&Played::of(said));
        let begin = || vec![ask("a"), answer("a"), cancel("none"), cancel("a"), ask("b")];
        let with = |more: &[(&'static str, Value)]| outcome([&begin(), more].concat());
        // It may end with an error at something else in the scenario.
        assert!(with(&[answer("b")]).is_ok());
        assert!(matches!(with(&[]), Err(Stop::Fail(_))));
        assert!(matches!(
            with(&[answer("a"), answer("b")]),
            Err(Stop::Fail(_))
        ));
        let gone_before = outcome(vec![ask("a"), cancel("none"), ask("b")]);
        assert!(
            matches!(gone_before, Err(Stop::Inconclusive(_))),
            "{gone_before:?}"
        );
        // What was answered before is another row's.
        let stray = vec![
            answer("x"),
            ask("a"),
            answer("a"),
            cancel("a"),
            ask("b"),
            answer("b"),
        ];
        assert!(outcome(stray).is_ok());
    }
}
