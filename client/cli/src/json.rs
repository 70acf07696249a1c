//! The lines of the format `json`. `acp run --help` documents them.

use std::fmt::Write as _;

use acp_sdk::v1::{
    Cost, InitializeResponse, PermissionOption, Plan, RequestPermissionOutcome, SessionId,
    SessionUpdate, StopReason, ToolCall, ToolCallUpdate, ToolKind, UsageUpdate,
};
use serde::Serialize;

use super::exit::{Code, kind};
use acp_client::{Answered, Asker, Error, Gap, Outcome, TokenUsage};

/// Returns JSON with [control characters](acp_sdk::text::is_control) as escapes, which JSON allows in strings
/// only. The value is the same, and a terminal obeys nothing of it.
pub(super) fn escaped(json: &str) -> String {
    let mut escaped = String::with_capacity(json.len());
    for c in json.chars() {
        match c {
            // Strings do not contain these.
            '\n' => escaped.push(c),
            '\t' | '\r' => escaped.push(' '),
            c if acp_sdk::text::is_control(c) => {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    // Writing to a string cannot fail.
                    let _ = write!(escaped, "\\u{unit:04x}");
                }
            }
            c => escaped.push(c),
        }
    }
    escaped
}

#[derive(Debug, Serialize)]
#[serde(
    tag = "type",
    rename_all = "snake_case",
    rename_all_fields = "camelCase"
)]
pub(super) enum Line<'a> {
    Session {
        session_id: &'a SessionId,
        cwd: &'a str,
        agent: &'a InitializeResponse,
    },
    Update {
        session_id: &'a SessionId,
        update: &'a SessionUpdate,
    },
    ChildUpdate {
        session_id: &'a SessionId,
        #[serde(skip_serializing_if = "Option::is_none")]
        title: Option<&'a str>,
        update: &'a SessionUpdate,
    },
    Permission {
        session_id: &'a SessionId,
        tool_call: &'a ToolCallUpdate,
        #[serde(skip_serializing_if = "Option::is_none")]
        kind: Option<&'a ToolKind>,
        options: &'a [PermissionOption],
        asker: &'static str,
        outcome: &'a RequestPermissionOutcome,
        #[serde(skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    Gap {
        gap: &'static str,
    },
    Result(Box<ResultLine<'a>>),
}

#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ResultLine<'a> {
    exit_code: u8,
    #[serde(skip_serializing_if = "Option::is_none")]
    session_id: Option<&'a SessionId>,
    #[serde(flatten)]
    outcome: Option<OutcomeFields<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<ErrorFields>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct OutcomeFields<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    stop_reason: Option<&'a StopReason>,
    text: &'a str,
    thoughts: &'a str,
    tool_calls: &'a [ToolCall],
    #[serde(skip_serializing_if = "Option::is_none")]
    plan: Option<&'a Plan>,
    #[serde(skip_serializing_if = "Option::is_none")]
    usage: Option<&'a UsageUpdate>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tokens: Option<&'a TokenUsage>,
    #[serde(skip_serializing_if = "Option::is_none")]
    turn_cost: Option<&'a Cost>,
    truncated: bool,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    not_allowed: &'a [String],
}

#[derive(Debug, Serialize)]
struct ErrorFields {
    kind: &'static str,
    message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<i32>,
}

impl<'a> OutcomeFields<'a> {
    /// Returns all members except the stop reason.
    fn of(outcome: &'a Outcome) -> Self {
        Self {
            stop_reason: None,
            text: &outcome.text,
            thoughts: &outcome.thoughts,
            tool_calls: &outcome.tool_calls,
            plan: outcome.plan.as_ref(),
            usage: outcome.usage.as_ref(),
            tokens: outcome.tokens.as_ref(),
            turn_cost: outcome.turn_cost.as_ref(),
            truncated: outcome.truncated,
            not_allowed: &outcome.not_allowed,
        }
    }
}

impl<'a> Line<'a> {
    pub(super) fn gap(gap: Gap) -> Self {
        let gap = match gap {
            Gap::Loaded => "loaded",
            Gap::Resumed => "resumed",
            Gap::Truncated => "truncated",
            Gap::Lost => "lost",
        };
        Self::Gap { gap }
    }

    pub(super) fn permission(answered: &'a Answered) -> Self {
        let request = &answered.question.request;
        Self::Permission {
            session_id: &request.session_id,
            tool_call: &request.tool_call,
            kind: answered.question.kind.as_ref(),
            options: &request.options,
            asker: match answered.question.asker {
                Asker::Agent => "agent",
                Asker::Client => "client",
                Asker::Afterwards => "afterwards",
            },
            outcome: &answered.outcome,
            reason: answered.reason.as_ref().map(ToString::to_string),
        }
    }

    pub(super) fn outcome(
        code: Code,
        session: Option<&'a SessionId>,
        outcome: &'a Outcome,
    ) -> Self {
        let mut fields = OutcomeFields::of(outcome);
        fields.stop_reason = Some(&outcome.stop_reason);
        Self::Result(Box::new(ResultLine {
            exit_code: code as u8,
            session_id: session,
            outcome: Some(fields),
            error: None,
        }))
    }

    pub(super) fn error(
        code: Code,
        session: Option<&'a SessionId>,
        partial: Option<&'a Outcome>,
        error: &Error,
    ) -> Self {
        Self::failure(
            code,
            session,
            partial,
            kind(error),
            error.to_string(),
            error.code().map(i32::from),
        )
    }

    /// Returns the last line of a failed run. `partial` is the outcome so far if the turn had
    /// started.
    pub(super) fn failure(
        code: Code,
        session: Option<&'a SessionId>,
        partial: Option<&'a Outcome>,
        kind: &'static str,
        message: String,
        error_code: Option<i32>,
    ) -> Self {
        let error = ErrorFields {
            kind,
            message,
            code: error_code,
        };
        Self::Result(Box::new(ResultLine {
            exit_code: code as u8,
            session_id: session,
            outcome: partial.map(OutcomeFields::of),
            error: Some(error),
        }))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn escaped_json_has_the_same_value_and_controls_nothing() {
        let value = json!({"a\u{9b}": "\u{1b}[31m\u{7f}\u{85}\u{202e}\u{e0041}\u{200b} \"\\ \t\n\r ü 👩\u{200d}💻"});
        let raw = format!("{{\t\"b\" :\r{value}}}");
        let escaped = escaped(&raw);
        assert!(!escaped.contains(acp_sdk::text::is_control), "{escaped:?}");
        let read: Value = serde_json::from_str(&escaped).unwrap();
        assert_eq!(read, json!({ "b": value }));
        assert!(escaped.contains("ü 👩\u{200d}💻"), "{escaped:?}");
    }
}
