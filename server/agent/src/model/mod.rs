//! What an agent asks a model, and what the model streams back.

mod error;
mod message;
mod price;
mod record;
mod retry;
mod scripted;

use std::pin::Pin;
use std::sync::Arc;

use acp_server::BoxFuture;
use futures_core::Stream;
use serde::{Deserialize, Serialize};

pub use error::{ErrorKind, ModelError};
pub use message::{Message, Thought, ToolResult, ToolUse};
pub use price::{Price, Prices};
pub use record::{Recorder, Replay};
pub use retry::Retry;
pub use scripted::Scripted;

/// A language model that streams its answers.
///
/// `acp-agent-models` implements it for providers over HTTP; [`Scripted`], [`Recorder`] and [`Replay`] are
/// for demonstrations and tests.
pub trait Model: Send + Sync + 'static {
    /// Returns the name that users select it by, such as `anthropic/claude-sonnet-4-5`.
    fn name(&self) -> &str;

    /// Returns how many tokens one request and its answer may have together (default: 128,000). A conversation
    /// with four fifths of it is compacted.
    fn context_window(&self) -> u64 {
        128_000
    }

    /// Begins an answer. Dropping the future or the answer ends the request at the provider.
    ///
    /// # Errors
    ///
    /// Why the provider did not begin an answer. An answer that breaks off yields an error as its last item.
    fn answer<'a>(&'a self, request: &'a Request) -> BoxFuture<'a, Result<Answer, ModelError>>;
}

impl<M: Model + ?Sized> Model for Arc<M> {
    fn name(&self) -> &str {
        (**self).name()
    }

    fn context_window(&self) -> u64 {
        (**self).context_window()
    }

    fn answer<'a>(&'a self, request: &'a Request) -> BoxFuture<'a, Result<Answer, ModelError>> {
        (**self).answer(request)
    }
}

/// The answer of a model, piece by piece.
pub type Answer = Pin<Box<dyn Stream<Item = Result<Delta, ModelError>> + Send>>;

/// What a model is asked.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Request {
    /// What holds for the whole conversation: the system prompt.
    pub instructions: String,
    /// The conversation, oldest message first.
    pub messages: Vec<Message>,
    /// The tools that the model may call.
    pub tools: Vec<Definition>,
}

/// A tool as models know it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Definition {
    /// Letters, digits, `_` and `-`; at most 64.
    pub name: String,
    /// When to use it and what it returns.
    pub description: String,
    /// The JSON Schema of its arguments, which are an object.
    pub input_schema: serde_json::Value,
}

/// A piece of an answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Delta {
    /// More text of the message.
    Text(String),
    /// More text of the reasoning.
    Thought(String),
    /// Proof of the provider that the reasoning so far is its own, which it wants back with the conversation.
    Signature(String),
    /// A tool that the model calls, with all arguments.
    ToolUse(ToolUse),
    /// Tokens of this answer and its request.
    Tokens(Tokens),
    /// Why the answer ends, unless it is complete.
    Stopped(Stopped),
}

/// Why an answer ends early.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Stopped {
    /// The answer has as many tokens as it may have.
    MaxTokens,
    /// The provider refuses to answer.
    Refusal,
}

/// Tokens of one request and its answer, as the provider counts them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Tokens {
    /// Of the request, those read from a cache included.
    pub input: u64,
    /// Of the answer, thoughts included.
    pub output: u64,
    /// Of the request, read from the provider's cache.
    pub cached: u64,
    /// Of the answer, reasoning.
    pub thought: u64,
}

impl std::ops::AddAssign for Tokens {
    fn add_assign(&mut self, other: Self) {
        self.input = self.input.saturating_add(other.input);
        self.output = self.output.saturating_add(other.output);
        self.cached = self.cached.saturating_add(other.cached);
        self.thought = self.thought.saturating_add(other.thought);
    }
}
