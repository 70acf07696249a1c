//! Token usage.

use serde::{Deserialize, Serialize};

/// The tokens used by a turn.
///
/// A proposal for the protocol that several agents implement: the member `usage` of the response to
/// `session/prompt`; in version 2, of the update that reports the idle session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct TokenUsage {
    /// The number of tokens that the model read.
    #[serde(default)]
    pub input_tokens: u64,
    /// The number of tokens that the model wrote.
    #[serde(default)]
    pub output_tokens: u64,
    /// The total number of tokens.
    #[serde(default)]
    pub total_tokens: u64,
    /// The number of read tokens that came from the provider's cache.
    #[serde(default)]
    pub cached_read_tokens: Option<u64>,
    /// The number of read tokens that were stored in the provider's cache.
    #[serde(default)]
    pub cached_write_tokens: Option<u64>,
    /// The number of written tokens of thoughts.
    #[serde(default)]
    pub thought_tokens: Option<u64>,
}
