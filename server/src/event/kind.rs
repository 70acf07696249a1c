//! The kind of an event, from the beginning of its text.

/// What the server must know of an event without reading all of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EventKind {
    UserMessage,
    /// An update that every client is sent.
    Update,
    /// An update for clients with the capability, and not repeated by `session/load`.
    Notice,
    Compaction,
    Mode,
    ConfigOptions,
    /// An event that is no update.
    Turn,
}

impl EventKind {
    /// Returns the kind of an event. The tag comes first in what this crate writes.
    pub(crate) fn of(text: &str) -> Self {
        if let Some(rest) = text.strip_prefix(r#"{"sessionUpdate":""#) {
            // Nearly all events are these.
            if rest.starts_with("agent_") {
                return Self::Update;
            }
            return Self::of_update(rest.split('"').next().unwrap_or_default());
        }
        if text.starts_with(r#"{"event":""#) {
            return Self::Turn;
        }
        // An update of a kind that the protocol did not have when this crate was built keeps the
        // order of its members.
        Self::Update
    }

    fn of_update(tag: &str) -> Self {
        match tag {
            "user_message_chunk" => Self::UserMessage,
            "notice" => Self::Notice,
            "compaction_update" | "compaction_summary_chunk" => Self::Compaction,
            "current_mode_update" => Self::Mode,
            "config_option_update" => Self::ConfigOptions,
            _ => Self::Update,
        }
    }
}

#[cfg(test)]
mod tests {
    use acp_sdk::v1::SESSION_UPDATE_CONTENT;

    use super::*;

    /// The kinds that every client is sent.
    const PLAIN: [&str; 13] = [
        "agent_message_chunk",
        "agent_thought_chunk",
        "available_commands_update",
        "plan",
        "plan_removed",
        "plan_update",
        "session_info_update",
        "session_message",
        "session_message_chunk",
        "subagent_update",
        "tool_call",
        "tool_call_update",
        "usage_update",
    ];

    /// Whether a kind that is added to the documents needs a capability must be decided here.
    #[test]
    fn every_kind_of_update_is_decided() {
        let documented = SESSION_UPDATE_CONTENT.iter().map(|(kind, _)| kind);
        let is_plain = |kind: &&str| {
            let text = format!(r#"{{"sessionUpdate":"{kind}""#);
            EventKind::of(&text) == EventKind::Update
        };
        let plain: Vec<&str> = documented.filter(is_plain).collect();
        assert_eq!(plain, PLAIN);
    }
}
