//! Tokens.

use serde::{Deserialize, Serialize};

/// The tokens that a turn took.
///
/// A proposal for the protocol, which several agents implement: the member `usage` of the answer to
/// `session/prompt`, in version 2 of the update that says that the session is idle.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct TokenUsage {
    /// Tokens that the model read.
    #[serde(default)]
    pub input_tokens: u64,
    /// Tokens that the model wrote.
    #[serde(default)]
    pub output_tokens: u64,
    /// All tokens.
    #[serde(default)]
    pub total_tokens: u64,
    /// Of those read, the ones that came from the provider's cache.
    #[serde(default)]
    pub cached_read_tokens: Option<u64>,
    /// Of those read, the ones that were stored in the provider's cache.
    #[serde(default)]
    pub cached_write_tokens: Option<u64>,
    /// Of those written, the ones of thoughts.
    #[serde(default)]
    pub thought_tokens: Option<u64>,
}
