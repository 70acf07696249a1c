//! Tests what is shown of each kind of update.

use acp_sdk::conversation::Conversation;
use acp_sdk::v1::{SESSION_UPDATE_CONTENT, SessionUpdate};

use super::markdown::Markdown;
use crate::text;

/// Each kind of update, its other members, and where it is shown: in a line of its own in `run` and
/// the chat, and in an exported conversation.
///
/// Messages and thoughts are printed as they are, and usage at the end of a turn.
const KINDS: [(&str, &str, &str); 19] = [
    ("agent_message_chunk", TEXT, "markdown"),
    ("agent_thought_chunk", TEXT, "markdown"),
    ("available_commands_update", r#""availableCommands":[]"#, ""),
    ("compaction_summary_chunk", SUMMARY, ""),
    (
        "compaction_update",
        r#""compactionId":"c","status":"completed""#,
        "line",
    ),
    ("config_option_update", r#""configOptions":[]"#, ""),
    ("current_mode_update", r#""currentModeId":"m""#, "line"),
    ("notice", r#""severity":"warning","title":"t""#, "line"),
    ("plan", r#""entries":[]"#, "line markdown"),
    ("plan_removed", PROPOSAL, ""),
    ("plan_update", PROPOSAL, ""),
    ("session_info_update", r#""title":"t""#, ""),
    ("session_message", PROPOSAL, ""),
    ("session_message_chunk", PROPOSAL, ""),
    ("subagent_update", PROPOSAL, ""),
    (
        "tool_call",
        r#""toolCallId":"1","title":"t""#,
        "line markdown",
    ),
    (
        "tool_call_update",
        r#""toolCallId":"1","status":"failed""#,
        "line markdown",
    ),
    ("usage_update", r#""used":1,"size":2"#, ""),
    ("user_message_chunk", TEXT, "markdown"),
];

const TEXT: &str = r#""content":{"type":"text","text":"t"}"#;
const SUMMARY: &str = r#""compactionId":"c","content":{"type":"text","text":"t"}"#;
/// Without a type in most builds, and never shown.
const PROPOSAL: &str = "";

/// A kind that is added to the documents must be added above.
#[test]
fn every_kind_of_update_is_shown_or_listed_as_hidden() {
    let known: Vec<&str> = KINDS.iter().map(|(kind, ..)| *kind).collect();
    let documented: Vec<&str> = SESSION_UPDATE_CONTENT
        .iter()
        .map(|(kind, _)| kind)
        .collect();
    assert_eq!(known, documented);
    for (kind, members, expected) in KINDS {
        if members == PROPOSAL {
            continue;
        }
        let update = format!(r#"{{"sessionUpdate":"{kind}",{members}}}"#);
        let update: SessionUpdate = serde_json::from_str(&update).unwrap();
        let mut shown = Vec::new();
        let call = text::tool_call(&mut Conversation::new(), &update);
        if call.or(text::line(&update)).is_some() {
            shown.push("line");
        }
        let mut markdown = Markdown::default();
        if !(markdown.update(&update) + &markdown.end()).is_empty() {
            shown.push("markdown");
        }
        assert_eq!(shown.join(" "), expected, "{kind}");
    }
}
