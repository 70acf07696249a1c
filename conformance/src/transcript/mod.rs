//! Recorded traffic: its format, read and written.

mod direction;
mod lines;
mod record;
mod redact;
mod sources;
mod write;

pub use self::direction::infer;
pub use self::lines::{LINE_LIMIT, Line, Splitter};
pub use self::record::{Record, RecordError, parse};
pub use self::redact::{redact, redact_text};
pub use self::sources::files;
pub use self::write::Writer;
