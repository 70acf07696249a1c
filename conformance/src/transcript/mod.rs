//! Recorded traffic: its format, read and written.

mod direction;
mod record;
mod redact;
mod sources;
mod write;

pub use acp_sdk::text::{Line, Splitter};

pub use self::direction::infer;
pub use self::record::{Record, RecordError, parse};
pub use self::redact::{redact, redact_text};
pub use self::sources::files;
pub use self::write::Writer;

/// The longest line that is held, by default.
pub const LINE_LIMIT: usize = acp_sdk::limits::MAX_MESSAGE_BYTES;
