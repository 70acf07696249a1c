//! Recorded traffic: its format, and the check of every message in it.

mod check;
mod direction;
mod lines;
mod record;
mod sources;

pub use self::check::{CheckOptions, Summary, Tally, check};
pub use self::direction::infer;
pub use self::lines::{LINE_LIMIT, Line, Splitter};
pub use self::record::{Record, RecordError, parse};
pub use self::sources::files;
