//! Recorded traffic: its format, and the check of every message in it.

mod check;
mod direction;
mod judge;
mod lines;
mod record;
mod redact;
mod sources;
mod summary;
mod write;

pub use self::check::{CheckOptions, check};
pub use self::direction::infer;
pub use self::judge::Judge;
pub use self::lines::{LINE_LIMIT, Line, Splitter};
pub use self::record::{Record, RecordError, parse};
pub use self::redact::{redact, redact_text};
pub use self::sources::files;
pub use self::summary::{Spoken, Summary, Tally};
pub use self::write::Writer;
