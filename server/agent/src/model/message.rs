//! The messages of a conversation, as models know them.

use acp_sdk::v1::{ContentBlock, TextContent};
use serde::{Deserialize, Serialize};

/// A message of a conversation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "role", rename_all = "snake_case")]
#[allow(
    clippy::large_enum_variant,
    reason = "they are read, and few are moved"
)]
pub enum Message {
    /// What the user said.
    User {
        /// Text, images, resources.
        content: Vec<ContentBlock>,
    },
    /// What the model answered.
    Agent {
        /// The reasoning.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        thought: Option<Thought>,
        /// The text; empty if it only called tools.
        #[serde(default)]
        text: String,
        /// The tools that it called.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        tool_uses: Vec<ToolUse>,
    },
    /// What the tools that it called have returned, one for each.
    Tools {
        /// In the order of the calls.
        results: Vec<ToolResult>,
    },
}

impl Message {
    /// Creates a message of the user.
    pub fn user(text: impl Into<String>) -> Self {
        Self::User {
            content: vec![ContentBlock::Text(TextContent::new(text))],
        }
    }
}

/// The reasoning before an answer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Thought {
    /// What the model thought, as far as its provider shows it.
    pub text: String,
    /// As [`Delta::Signature`](super::Delta::Signature).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signature: Option<String>,
}

/// A tool that a model calls.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolUse {
    /// Unique in the conversation. That of an answer is the provider's; later requests have that of the
    /// tool call in the session.
    pub id: String,
    /// The tool.
    pub name: String,
    /// Its arguments: an object, if the model keeps to the schema.
    pub arguments: serde_json::Value,
}

/// What a tool has returned to the model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolResult {
    /// The id of the [`ToolUse`].
    pub id: String,
    /// The tool.
    pub name: String,
    /// What it returned.
    #[serde(flatten)]
    pub output: crate::tool::Output,
}
