//! The kind of an event, from the beginning of its text.

/// What the server must know of an event without reading all of it.
///
/// This is the only place that reads the tag of an event. Whoever needs some kinds only matches on all
/// of them, so a kind that is added here does not compile before each of these places decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventKind {
    /// An event of our own, which is no update. Its kinds are those of
    /// [`TurnEvent`](super::TurnEvent).
    Turn,
    /// The start or end of a child session, or an update of it.
    Child,
    /// A piece of a message of the user.
    UserMessage,
    /// A piece of a message of the agent.
    AgentMessage,
    /// The announcement of a tool call.
    ToolCall,
    /// Tokens in the context, and what the session has cost.
    Usage,
    /// An update for clients with the capability, and not repeated by `session/load`.
    Notice,
    /// What a compaction of the conversation does.
    Compaction,
    /// The current mode.
    Mode,
    /// All config options.
    ConfigOptions,
    /// Any other update.
    Update,
}

impl EventKind {
    /// Returns the kind of an event. The tag comes first in what this crate writes.
    pub(crate) fn of(text: &str) -> Self {
        if let Some(rest) = text.strip_prefix(r#"{"sessionUpdate":""#) {
            return Self::of_update(rest.split('"').next().unwrap_or_default());
        }
        if let Some(rest) = text.strip_prefix(r#"{"event":""#) {
            return match rest.starts_with("child_") {
                true => Self::Child,
                false => Self::Turn,
            };
        }
        // An update of a kind that the protocol did not have when this crate was built keeps the
        // order of its members.
        Self::Update
    }

    fn of_update(tag: &str) -> Self {
        match tag {
            // Nearly all events are these.
            "agent_message_chunk" => Self::AgentMessage,
            "user_message_chunk" => Self::UserMessage,
            "tool_call" => Self::ToolCall,
            "usage_update" => Self::Usage,
            "notice" => Self::Notice,
            "compaction_update" | "compaction_summary_chunk" => Self::Compaction,
            "current_mode_update" => Self::Mode,
            "config_option_update" => Self::ConfigOptions,
            _ => Self::Update,
        }
    }

    /// Returns whether every client is sent the update as it is, whatever its capabilities, and
    /// whether it is live or replayed.
    pub(crate) fn is_plain_update(self) -> bool {
        match self {
            Self::AgentMessage | Self::ToolCall | Self::Usage | Self::Update => true,
            Self::Turn
            | Self::Child
            | Self::UserMessage
            | Self::Notice
            | Self::Compaction
            | Self::Mode
            | Self::ConfigOptions => false,
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
            EventKind::of(&text).is_plain_update()
        };
        let plain: Vec<&str> = documented.filter(is_plain).collect();
        assert_eq!(plain, PLAIN);
    }
}
