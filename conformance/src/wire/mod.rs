//! The wire: what a message is, who wrote it, and what is wrong with it.
//!
//! [`Schema`] judges a value by its method and writer and knows nothing of a
//! connection; [`Tracker`] keeps a connection's state around it. Neither reads
//! nor writes.

mod agreement;
mod envelope;
mod errata;
mod finding;
mod party;
mod pending;
mod schema;
mod surplus;
mod tracker;
mod turns;

pub(crate) use self::agreement::Agreement;
pub use self::agreement::{Basis, Schemas};
pub use self::envelope::{
    Answer, Defect, Message, describe, excerpt, read as read_envelope, shorten,
};
pub use self::finding::{Finding, Level, Rule};
pub use self::party::Party;
pub use self::schema::{Schema, Verdict, Version};
pub(crate) use self::surplus::{fits, parts, target};
pub use self::tracker::{Judged, Kind, Observed, Tracker};
pub use self::turns::is_output;
