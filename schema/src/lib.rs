//! The Agent Client Protocol as data: the JSON Schema document, its method
//! table and, with the feature `validate`, a validator of messages.

mod cancellation;
mod coalescing;
mod content;
mod document;
mod error;
mod facts;
mod infinite_types;
mod protocol;
mod side;
mod strict_json;
mod transcript;
#[cfg(feature = "validate")]
mod validate;
mod version;
mod walk;

pub use self::cancellation::{CancellationInfo, SessionCancellationInfo};
pub use self::coalescing::{CoalescingInfo, TextPattern};
pub use self::content::{Content, ContentInfo};
pub use self::document::Document;
pub use self::error::Error;
pub use self::facts::{AccessRight, Attachment, Login, MethodFacts, Retry, Scope};
pub use self::protocol::{Kind, Method, Protocol};
pub use self::side::Side;
pub use self::transcript::TranscriptRules;
#[cfg(feature = "validate")]
pub use self::validate::{Checked, Validator, Violation};
pub use self::version::VersionInfo;

/// The document of protocol version 1.
pub const V1: &str = include_str!("../v1.json");

/// The document of the draft of protocol version 2.
pub const V2: &str = include_str!("../v2.json");

/// The overlay with members of version 2's Preview that the official documents do not have yet;
/// [`Document::v2`] has it applied.
pub const V2_PREVIEW: &str = include_str!("../v2.preview.json");

/// How the types of [`V1`] and [`V2`] convert to each other, where their names do not tell.
pub const V1_V2: &str = include_str!("../v1-v2.json");

/// The overlay of [`V1_V2`] for the documents with their proposals.
pub const V1_V2_UNSTABLE: &str = include_str!("../v1-v2.unstable.json");

/// The overlay with the proposals that the draft of version 2 does not contain yet;
/// see [`V1_UNSTABLE`].
pub const V2_UNSTABLE: &str = include_str!("../v2.unstable.json");

/// The overlay with the proposals that version 1 does not contain yet, all of them
/// subject to change: providers of models, MCP over the connection, several plans,
/// child sessions, proxies, and methods to fork, archive, name and query sessions.
pub const V1_UNSTABLE: &str = include_str!("../v1.unstable.json");

/// The overlay with the extension methods of this project (`_acp-sdk/...`), for every version.
pub const EXTENSIONS: &str = include_str!("../extensions.json");

/// The documents of other systems' protocols by name, from which `acp-dialects` is generated.
pub const DIALECTS: [(&str, &str); 4] = [
    ("chimera", include_str!("../dialects/chimera.json")),
    ("openoxide", include_str!("../dialects/openoxide.json")),
    ("otter-acp", include_str!("../dialects/otter-acp.json")),
    (
        "otter-http-acp",
        include_str!("../dialects/otter-http-acp.json"),
    ),
];

/// Compiles the example of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
