//! Circumstances that are not the agent's fault: a model in trouble, a permission that the suite did not grant.
//!
//! The classification is narrow: an error counts as the model's only if it names a status or a
//! phrase that model services use, and no JSON-RPC code says that the request was at fault.

use acp_sdk::ErrorCode;
use serde_json::Value;

use super::report::Verdict;
use crate::harness::{Cx, Entry, Outcome, Recording, Stop};
use crate::wire::{Kind, Party, sets_up, shorten};

/// Phrases of model services, in lower case.
const PHRASES: [&str; 18] = [
    "rate limit",
    "rate_limit",
    "ratelimit",
    "too many requests",
    "overloaded",
    "overload_error",
    "over capacity",
    "quota",
    "credit balance",
    "billing",
    "insufficient_funds",
    "usage limit",
    "timed out",
    "timeout",
    "service unavailable",
    "bad gateway",
    "stream disconnected",
    "connection reset",
];

/// Statuses of HTTP that model services send when they are in trouble.
const STATUSES: [&str; 6] = ["429", "500", "502", "503", "504", "529"];

/// Words before a status.
const BEFORE_STATUS: [&str; 5] = ["http", "status", "code", "error", "statuscode"];

/// Returns whether an error object looks like trouble of the model.
pub(super) fn of_model(error: &Value) -> bool {
    // The protocol names another fault: a bad request, a missing login or session, a cancelled turn.
    let code = crate::wire::error_code(error);
    if code.is_some_and(|code| code != ErrorCode::INTERNAL_ERROR && code.name().is_some()) {
        return false;
    }
    let said = [error.get("message"), error.get("data")];
    said.into_iter().flatten().any(|value| {
        let text = match value {
            Value::String(text) => text.to_lowercase(),
            value => value.to_string().to_lowercase(),
        };
        PHRASES.iter().any(|phrase| text.contains(phrase)) || names_status(&text)
    })
}

/// The error of a prompt is not the model's.
///
/// # Errors
/// Inconclusive when it is.
#[cfg(all(unix, feature = "remote"))]
pub(crate) fn without_model_trouble(error: &Value) -> Outcome {
    match of_model(error) {
        true => crate::harness::inconclusive(format!("the model failed: {}", message(error))),
        false => Ok(()),
    }
}

/// Whether a text names a status, after a word that says that it is one.
fn names_status(text: &str) -> bool {
    let words = text.split(|c: char| !c.is_alphanumeric() && c != '_');
    let words: Vec<_> = words.filter(|word| !word.is_empty()).collect();
    words.windows(2).any(|pair| match pair {
        [before, status] => {
            let before = before.trim_end_matches(|c: char| c.is_ascii_digit() || c == '_');
            STATUSES.contains(status) && BEFORE_STATUS.contains(&before)
        }
        _ => false,
    })
}

/// Returns what an error object says.
pub(super) fn message(error: &Value) -> String {
    let message = error.get("message").and_then(Value::as_str);
    let message = message.filter(|text| !text.is_empty());
    let text = message.map_or_else(|| error.to_string(), str::to_owned);
    shorten(&text, 200)
}

/// Returns the verdict of a check, in the light of the circumstances: what it needs may be
/// impossible, the model may have failed, a permission may have been refused.
pub(super) fn verdict(cx: &Cx, outcome: Outcome) -> Verdict {
    let conditions = &cx.env().conditions;
    if let Some(reason) = &conditions.no_session
        && !matches!(outcome, Err(Stop::Skip(_)))
        && cx.has_sent(|method| method.starts_with("session/"))
    {
        // Not even a pass says anything: the agent refuses everything there.
        return Verdict::Blocked(reason.clone());
    }
    let Err(Stop::Fail(failure)) = outcome else {
        return outcome.into();
    };
    if let Some(reason) = &conditions.no_turn
        && cx.prompts() > 0
    {
        return Verdict::Blocked(reason.clone());
    }
    // What follows the end of the agent is the suite's doing.
    if let Some(reason) = cx.flood() {
        return Verdict::Inconclusive(reason);
    }
    let came = failure.came.as_deref();
    if let Some(reason) = cx.said().find_map(|(all, from)| in_turns(all, from, came)) {
        return Verdict::Inconclusive(reason);
    }
    if let Some(path) = cx.refused() {
        let reason = format!(
            "the agent asked for permission outside of the suite's directory, which was refused: {path}"
        );
        return Verdict::Inconclusive(reason);
    }
    Verdict::Fail(failure)
}

/// Returns the trouble that the model had in the messages from `from` on, if any: a prompt that was
/// not cancelled and ended in an error of the model, or in a refusal at the message `came`.
fn in_turns(recording: &Recording, from: usize, came: Option<&str>) -> Option<String> {
    let entries = recording.entries.iter().enumerate().skip(from);
    entries.into_iter().find_map(|(index, entry)| {
        if entry.from != Party::Agent {
            return None;
        }
        let answered = entry.request.filter(|request| {
            let method = recording.entries.get(*request);
            let method = method.and_then(|request| request.method.as_deref());
            method == Some("session/prompt")
        });
        let prompt = answered.or_else(|| last_prompt(recording, index, entry.session()));
        let error = match answered {
            Some(_) => entry.value.get("error"),
            None => reported_error(entry),
        };
        if let Some(prompt) = prompt
            && let Some(error) = error
        {
            let is_trouble = of_model(error)
                && is_in_session(recording, prompt)
                && !is_cancelled(recording, prompt, index);
            return is_trouble.then(|| format!("the model failed: {}", message(error)));
        }
        // No model runs in a session that does not exist.
        let prompt = prompt.filter(|prompt| is_in_session(recording, *prompt))?;
        let is_cut = is_cancelled(recording, prompt, index);
        let refuses =
            entry.ends_turn_by("refusal") && !is_cut && came == Some(entry.excerpt().as_str());
        refuses.then(|| "the model refused the prompt".to_owned())
    })
}

/// Whether the session of a prompt was opened before it.
fn is_in_session(recording: &Recording, prompt: usize) -> bool {
    let session = recording.entries.get(prompt).and_then(Entry::session);
    let before = recording.entries.iter().take(prompt);
    let mut results = before.filter(|entry| entry.kind == Kind::Result);
    results.any(|entry| {
        let named = entry
            .value
            .pointer("/result/sessionId")
            .and_then(Value::as_str);
        let request = entry
            .request
            .and_then(|request| recording.entries.get(request));
        let again = request.filter(|request| request.method.as_deref().is_some_and(sets_up));
        session.is_some() && (named == session || again.and_then(Entry::session) == session)
    })
}

/// The last prompt of a session before a place.
fn last_prompt(recording: &Recording, before: usize, session: Option<&str>) -> Option<usize> {
    let prompts = recording.calls(Party::Client, "session/prompt");
    let of_session = prompts.filter(|(_, prompt)| prompt.session() == session);
    let earlier = of_session
        .map(|(index, _)| index)
        .take_while(|index| *index < before);
    earlier.last()
}

/// The error in version 2 with which a message says that the work ended.
fn reported_error(entry: &Entry) -> Option<&Value> {
    let update = entry.params().get("update")?;
    let failed = update.get("stopReason").is_some_and(|it| it == "error");
    update.get("error").filter(|_| failed)
}

/// Whether the client has cancelled a turn between its prompt and its answer.
fn is_cancelled(recording: &Recording, prompt: usize, answer: usize) -> bool {
    let Some(request) = recording.entries.get(prompt) else {
        return false;
    };
    let id = request.value.get("id");
    let between = recording.entries.iter().take(answer).skip(prompt);
    let mut cancels =
        between.filter(|entry| entry.from == Party::Client && entry.kind == Kind::Notification);
    cancels.any(|entry| match entry.method.as_deref() {
        Some("session/cancel") => entry.session() == request.session(),
        Some("$/cancel_request") => entry.params().get("requestId") == id,
        _ => false,
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::json;

    use super::*;
    use crate::harness::Recorder;
    use crate::wire::Schema;

    #[test]
    fn only_what_model_services_say_is_their_trouble() {
        let error = |code: ErrorCode, message: &str, data: Value| {
            of_model(&json!({"code": code, "message": message, "data": data}))
        };
        assert!(error(
            ErrorCode::INTERNAL_ERROR,
            "Rate limit reached for gpt",
            Value::Null
        ));
        assert!(error(
            ErrorCode::INTERNAL_ERROR,
            "Internal error",
            json!("HTTP 503 from upstream")
        ));
        assert!(error(
            ErrorCode::INTERNAL_ERROR,
            "Internal error",
            json!({"statusCode": 529})
        ));
        assert!(error(
            ErrorCode::INTERNAL_ERROR,
            "x",
            json!({"details": "insufficient_quota"})
        ));
        assert!(error(ErrorCode::new(500), "error 500", Value::Null));
        for (code, message) in [
            // What the agent does wrong is no trouble of a model.
            (ErrorCode::INTERNAL_ERROR, "Internal error"),
            (
                ErrorCode::INTERNAL_ERROR,
                "cannot read property 500 of undefined",
            ),
            (ErrorCode::INTERNAL_ERROR, "line 429: unexpected token"),
            (ErrorCode::INVALID_PARAMS, "quota must be a number"),
            (ErrorCode::METHOD_NOT_FOUND, "timeout is no method"),
            (ErrorCode::REQUEST_CANCELLED, "the request timed out"),
            (ErrorCode::AUTHENTICATION_REQUIRED, "rate limit"),
        ] {
            assert!(!error(code, message, Value::Null), "{message}");
        }
    }

    /// The trouble in a turn; `cancelled` says whether it was cancelled before its end.
    fn turn(answer: Value, cancelled: bool, came: bool) -> Option<String> {
        turn_of("s", answer, cancelled, came)
    }

    /// The same of a prompt to this session; the connection has the session `s`.
    fn turn_of(session: &str, answer: Value, cancelled: bool, came: bool) -> Option<String> {
        let mut recorder = Recorder::new(Schema::v1().unwrap());
        let mut say = |from, value: Value| recorder.message(from, value, Duration::ZERO);
        let opens = json!({"cwd": "/", "mcpServers": []});
        say(
            Party::Client,
            json!({"jsonrpc": "2.0", "id": 0, "method": "session/new", "params": opens}),
        );
        say(
            Party::Agent,
            json!({"jsonrpc": "2.0", "id": 0, "result": {"sessionId": "s"}}),
        );
        say(
            Party::Client,
            json!({"jsonrpc": "2.0", "id": 1, "method": "session/prompt",
                "params": {"sessionId": session, "prompt": []}}),
        );
        if cancelled {
            say(
                Party::Client,
                json!({"jsonrpc": "2.0", "method": "session/cancel",
                    "params": {"sessionId": "s"}}),
            );
        }
        let index = say(Party::Agent, answer);
        let excerpt = recorder.recording.entries[index].excerpt();
        in_turns(&recorder.recording, 0, came.then_some(excerpt.as_str()))
    }

    #[test]
    fn an_error_of_a_cancelled_turn_is_the_agents() {
        let error = json!({"jsonrpc": "2.0", "id": 1,
            "error": {"code": ErrorCode::INTERNAL_ERROR, "message": "overloaded"}});
        assert!(turn(error.clone(), false, false).is_some());
        assert_eq!(turn(error, true, true), None);
    }

    #[test]
    fn work_of_version_2_that_fails_says_why() {
        let ends = |reason: &str, message: &str| {
            let error = json!({"code": ErrorCode::INTERNAL_ERROR, "message": message});
            let update = json!({"sessionUpdate": "state_update", "state": "idle",
                "stopReason": reason, "error": error});
            json!({"jsonrpc": "2.0", "method": "session/update",
                "params": {"sessionId": "s", "update": update}})
        };
        assert!(turn(ends("error", "overloaded"), false, false).is_some());
        assert_eq!(turn(ends("error", "overloaded"), true, true), None);
        assert_eq!(turn(ends("error", "Internal error"), false, true), None);
        assert_eq!(turn(ends("end_turn", "overloaded"), false, true), None);
    }

    #[test]
    fn a_refusal_excuses_the_message_that_it_is() {
        let refusal = json!({"jsonrpc": "2.0", "id": 1, "result": {"stopReason": "refusal"}});
        assert!(turn(refusal.clone(), false, true).is_some());
        assert_eq!(turn(refusal.clone(), false, false), None);
        assert_eq!(turn(refusal, true, true), None);
    }

    #[test]
    fn no_model_runs_in_a_session_that_does_not_exist() {
        let refusal = json!({"jsonrpc": "2.0", "id": 1, "result": {"stopReason": "refusal"}});
        assert_eq!(turn_of("none", refusal, false, true), None);
        let error = json!({"jsonrpc": "2.0", "id": 1,
            "error": {"code": ErrorCode::INTERNAL_ERROR, "message": "overloaded"}});
        assert_eq!(turn_of("none", error, false, true), None);
    }
}
