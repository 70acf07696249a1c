//! Formats a turn as lines of text.

mod permission;

use std::fmt::Write as _;

use acp_sdk::conversation::{Conversation, is_final};
use acp_sdk::json::UnknownVariant;
use acp_sdk::v1::{
    ContentBlock, Cost, Plan, PlanEntryStatus, SessionUpdate, ToolCallContent, UsageUpdate,
};

pub(super) use self::permission::{not_allowed, permission};
use acp_client::Error;
use acp_client::{ChildConversations, ChildUpdate, Gap};
use acp_sdk::text::one_line;

/// Maximum number of displayed characters of a title or line.
const MOST_SHOWN: usize = 200;

/// Maximum number of displayed characters of an explanation.
const MOST_EXPLAINED: usize = 1000;

/// Returns the line for an update that is neither text nor a tool call.
pub(super) fn line(update: &SessionUpdate) -> Option<String> {
    match update {
        SessionUpdate::Plan(entries) => Some(plan(entries)),
        SessionUpdate::CurrentModeUpdate(mode) => Some(format!(
            "mode: {}",
            one_line(mode.current_mode_id.as_str(), MOST_SHOWN)
        )),
        SessionUpdate::Notice(notice) => {
            let mut line = format!("notice ({}): ", notice.severity);
            line += &one_line(&notice.title, MOST_SHOWN);
            if let Some(description) = &notice.description {
                let _ = write!(line, "\n  {}", one_line(description, MOST_EXPLAINED));
            }
            Some(line)
        }
        SessionUpdate::CompactionUpdate(compaction) => {
            Some(format!("compaction: {}", compaction.status))
        }
        SessionUpdate::Unknown(update) => replaced(update),
        _ => None,
    }
}

/// Applies an update of a child session. Returns the lines of a tool call, as [`tool_call`] does.
pub(super) fn child_tool_call(
    children: &mut ChildConversations,
    child: &ChildUpdate,
) -> Option<String> {
    let lines = tool_call(children.of(&child.session), &child.update)?;
    Some(match &child.title {
        Some(title) => format!("subagent {title}: {lines}"),
        None => format!("subagent: {lines}"),
    })
}

/// Applies an update of a tool call. Returns its lines when it begins and when it ends.
pub(super) fn tool_call(conversation: &mut Conversation, update: &SessionUpdate) -> Option<String> {
    let (id, content) = match update {
        SessionUpdate::ToolCall(call) => (&call.tool_call_id, call.content.as_slice()),
        SessionUpdate::ToolCallUpdate(call) => {
            let content = call.content.as_deref().unwrap_or_default();
            (&call.tool_call_id, content)
        }
        _ => return None,
    };
    let before = conversation.tool_call(id);
    let before = before.map(|(_, call)| call.status.clone());
    let _ = conversation.apply(update);
    let (_, call) = conversation.tool_call(id)?;
    let is_done = is_final(call.status.as_ref());
    // Intermediate states are not shown.
    if before.is_some_and(|before| before == call.status || !is_done) {
        return None;
    }
    let mut line = match call.title.as_str() {
        "" => format!("tool: {}", one_line(id.as_str(), MOST_SHOWN)),
        title => format!("tool: {}", one_line(title, MOST_SHOWN)),
    };
    if let Some(kind) = &call.kind {
        let _ = write!(line, " ({kind})");
    }
    if is_done && let Some(status) = &call.status {
        let _ = write!(line, ": {status}");
    }
    for detail in content.iter().filter_map(detail) {
        let _ = write!(line, "\n  {detail}");
    }
    Some(line)
}

fn detail(content: &ToolCallContent) -> Option<String> {
    match content {
        ToolCallContent::Content(content) => match &content.content {
            ContentBlock::Text(text) => {
                // Fences around code are omitted.
                let lines = text.text.trim().lines();
                let mut lines = lines.filter(|line| !line.trim_start().starts_with("```"));
                let first = lines.find(|line| !line.trim().is_empty())?;
                let more = lines.count();
                let mut line = one_line(first, MOST_SHOWN);
                if more > 0 {
                    let lines = if more == 1 { "line" } else { "lines" };
                    let _ = write!(line, " (and {more} more {lines})");
                }
                Some(line)
            }
            _ => None,
        },
        ToolCallContent::Diff(diff) => {
            let old = diff.old_text.as_deref().unwrap_or_default().lines().count();
            let new = diff.new_text.lines().count();
            let path = one_line(&diff.path, MOST_SHOWN);
            let lines = if old == 1 {
                "line becomes"
            } else {
                "lines become"
            };
            Some(format!("{path}: {old} {lines} {new}"))
        }
        _ => None,
    }
}

fn plan(plan: &Plan) -> String {
    let mut text = "plan:".to_owned();
    for entry in &plan.entries {
        let mark = match entry.status {
            PlanEntryStatus::Completed => 'x',
            PlanEntryStatus::InProgress => '>',
            _ => ' ',
        };
        let _ = write!(
            text,
            "\n  [{mark}] {}",
            one_line(&entry.content, MOST_SHOWN)
        );
    }
    text
}

/// Returns a line about missing updates.
pub(super) fn gap(gap: Gap) -> &'static str {
    match gap {
        Gap::Loaded => "the connection was lost; the conversation is repeated from its beginning",
        Gap::Resumed => "the connection was lost; the session goes on, updates may be missing",
        Gap::Truncated => "the connection was lost, and so were some updates",
        Gap::Lost => "the connection was lost, and the agent cannot continue the session",
    }
}

/// Returns a line about tokens and cost.
pub(super) fn usage(usage: &UsageUpdate) -> String {
    let cost = cost(usage.cost.as_ref());
    // An agent may know the cost only.
    let has_context = usage.size > 0 || cost.is_none();
    let context = has_context.then(|| format!("{} of {} tokens", usage.used, usage.size));
    let parts: Vec<_> = [context, cost].into_iter().flatten().collect();
    format!("usage: {}", parts.join(", "))
}

/// Returns a cost with its currency, if there is one.
pub(super) fn cost(cost: Option<&Cost>) -> Option<String> {
    let cost = cost.filter(|cost| cost.amount != 0.0)?;
    let currency = one_line(&cost.currency, 10);
    Some(format!("{} {currency}", amount(cost.amount)))
}

/// Rounds an amount to six significant digits, because sums of binary fractions have up to
/// seventeen.
fn amount(amount: f64) -> f64 {
    // A formatted number can always be parsed.
    format!("{amount:.5e}").parse().unwrap_or(amount)
}

/// Returns the details of an agent's error, which often contain the reason.
pub(super) fn details(error: &Error) -> Option<String> {
    let Error::Sdk(error) = error else {
        return None;
    };
    let data = error.as_response()?.data.as_ref()?;
    let value = data.to_value()?;
    let told = ["message", "details", "error"];
    let told = told.iter().find_map(|name| value.get(name)?.as_str());
    let text = told.or(value.as_str()).unwrap_or(data.get());
    let known = error.to_string().contains(text);
    (!known && !data.is_null()).then(|| format!("details: {}", one_line(text, 500)))
}

/// Returns a line about a printed message that an agent of version 2 has replaced.
fn replaced(update: &UnknownVariant) -> Option<String> {
    let what = match update.tag() {
        "agent_message" => "message",
        "agent_thought" => "thought",
        _ => return None,
    };
    let content: Option<Vec<ContentBlock>> = update.get("content")?.parse().ok()?;
    let blocks = content.iter().flatten();
    let words = blocks.filter_map(|block| match block {
        ContentBlock::Text(text) => Some(text.text.as_str()),
        _ => None,
    });
    let words: String = words.collect();
    Some(match words.as_str() {
        "" => format!("{what} withdrawn"),
        words => format!("{what} replaced by: {}", one_line(words, MOST_SHOWN)),
    })
}

#[cfg(test)]
mod tests {
    use acp_sdk::v1::{
        Content, Cost, Diff, PlanEntry, PlanEntryPriority, ToolCall, ToolCallStatus,
        ToolCallUpdate, ToolKind,
    };

    use serde_json::json;

    use super::*;

    fn update(id: &str, status: ToolCallStatus) -> ToolCallUpdate {
        ToolCallUpdate::new(id).with_status(status)
    }

    #[test]
    fn a_tool_call_is_told_when_it_begins_and_when_it_is_done() {
        let mut conversation = Conversation::new();
        let mut lines = |update: &SessionUpdate| tool_call(&mut conversation, update);
        let call = ToolCall::new("1", "Read\nit").with_kind(ToolKind::Read);
        let begun = lines(&SessionUpdate::ToolCall(call));
        assert_eq!(begun.as_deref(), Some("tool: Read it (read)"));
        let running = update("1", ToolCallStatus::InProgress);
        assert_eq!(lines(&SessionUpdate::ToolCallUpdate(running)), None);
        let block = ContentBlock::from("one\ntwo\nthree\n");
        let done = update("1", ToolCallStatus::Completed).with_content(vec![
            ToolCallContent::Content(Content::new(block)),
            ToolCallContent::Diff(Diff::new("/a", "new\nnew\n").with_old_text("old\n")),
        ]);
        let done = SessionUpdate::ToolCallUpdate(done);
        assert_eq!(
            lines(&done).as_deref(),
            Some(
                "tool: Read it (read): completed\n  one (and 2 more lines)\n  /a: 1 line becomes 2"
            )
        );
        assert_eq!(lines(&done), None, "once is enough");
        let unknown = SessionUpdate::ToolCallUpdate(update("2", ToolCallStatus::Failed));
        assert_eq!(lines(&unknown).as_deref(), Some("tool: 2: failed"));
        // Of version 2.
        let paused = SessionUpdate::ToolCallUpdate(update("3", "paused".into()));
        assert_eq!(lines(&paused).as_deref(), Some("tool: 3"), "it begins");
        let cancelled = SessionUpdate::ToolCallUpdate(update("3", "cancelled".into()));
        assert_eq!(lines(&cancelled).as_deref(), Some("tool: 3: cancelled"));
    }

    #[test]
    fn fences_of_code_are_no_summary() {
        let shown = |text: &str| {
            let content = ToolCallContent::Content(Content::new(ContentBlock::from(text)));
            detail(&content)
        };
        assert_eq!(shown("```console\nok\n```").as_deref(), Some("ok"));
        let two = shown("```\n\none\ntwo\n```");
        assert_eq!(two.as_deref(), Some("one (and 1 more line)"));
        assert_eq!(shown("```\n```\n"), None);
    }

    #[test]
    fn a_message_that_is_replaced_is_named() {
        let told = |update: serde_json::Value| line(&serde_json::from_value(update).unwrap());
        let replaced = json!({"sessionUpdate": "agent_message", "messageId": "m",
            "content": [{"type": "text", "text": "No\nsecrets"}]});
        assert_eq!(
            told(replaced).as_deref(),
            Some("message replaced by: No secrets")
        );
        let withdrawn =
            json!({"sessionUpdate": "agent_thought", "messageId": "m", "content": null});
        assert_eq!(told(withdrawn).as_deref(), Some("thought withdrawn"));
        assert_eq!(
            told(json!({"sessionUpdate": "state_update", "state": "idle"})),
            None
        );
    }

    #[test]
    fn a_plan_is_a_list_with_marks() {
        let entry = |content, status| PlanEntry::new(content, PlanEntryPriority::Low, status);
        let plan = Plan::new(vec![
            entry("Read", PlanEntryStatus::Completed),
            entry("Change", PlanEntryStatus::InProgress),
            entry("Test", PlanEntryStatus::Pending),
        ]);
        let shown = line(&SessionUpdate::Plan(plan));
        let expected = "plan:\n  [x] Read\n  [>] Change\n  [ ] Test";
        assert_eq!(shown.as_deref(), Some(expected));
    }

    #[test]
    fn a_notice_is_shown_with_its_remedy() {
        let mut notice = acp_sdk::v1::Notice::new("warning", "The quota is low");
        let shown = |notice| line(&SessionUpdate::Notice(notice)).unwrap();
        assert_eq!(shown(notice.clone()), "notice (warning): The quota is low");
        notice.description = Some("Log in\nwith another account.".to_owned());
        let expected = "notice (warning): The quota is low\n  Log in with another account.";
        assert_eq!(shown(notice), expected);
    }

    #[test]
    fn usage_and_cost_are_one_line() {
        let plain = UsageUpdate::new(10_u64, 100_u64);
        assert_eq!(usage(&plain), "usage: 10 of 100 tokens");
        let free = plain.clone().with_cost(Cost::new(0.0, "EUR"));
        assert_eq!(usage(&free), "usage: 10 of 100 tokens");
        let priced = plain.with_cost(Cost::new(0.25, "EUR"));
        assert_eq!(usage(&priced), "usage: 10 of 100 tokens, 0.25 EUR");
        let only_priced = UsageUpdate::new(0, 0).with_cost(Cost::new(0.5, "USD"));
        assert_eq!(usage(&only_priced), "usage: 0.5 USD");
        for (exact, shown) in [
            (0.000_280_000_000_000_000_03, "0.00028"),
            (0.1 + 0.2, "0.3"),
            (12.345_678_9, "12.3457"),
            (1_234.5, "1234.5"),
        ] {
            let priced = UsageUpdate::new(1_u64, 2_u64).with_cost(Cost::new(exact, "USD"));
            let line = format!("usage: 1 of 2 tokens, {shown} USD");
            assert_eq!(usage(&priced), line);
        }
    }

    #[test]
    fn details_are_what_the_message_leaves_out() {
        use acp_sdk::v1::{ErrorCode, RpcError};
        let told = |data: serde_json::Value| {
            let error = RpcError::new(ErrorCode::INTERNAL_ERROR, "Internal error");
            let error = error.with_data(acp_sdk::Json::from(data));
            details(&Error::Sdk(acp_sdk::Error::Response {
                method: "session/prompt".to_owned(),
                error: Box::new(error),
            }))
        };
        let expected = Some("details: no\u{20}model".to_owned());
        assert_eq!(told(serde_json::json!("no\nmodel")), expected);
        assert_eq!(told(serde_json::json!({"message": "no model"})), expected);
        assert_eq!(told(serde_json::json!({"details": "no model"})), expected);
        let other = told(serde_json::json!({"status": 400}));
        assert_eq!(other.as_deref(), Some("details: {\"status\":400}"));
        assert_eq!(told(serde_json::json!("Internal error")), None);
        assert_eq!(told(serde_json::Value::Null), None);
    }
}
