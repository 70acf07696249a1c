//! The wire: what a message is, who wrote it, and what is wrong with it.
//!
//! [`Schema`] judges a value by its method and writer and knows nothing of a
//! connection; [`Tracker`] keeps a connection's state around it. Neither reads
//! nor writes.

mod agreement;
mod envelope;
mod errata;
mod error_code;
mod excerpt;
pub mod extensions;
mod facts;
mod finding;
mod party;
mod pending;
mod releases;
mod schema;
mod tracker;
mod turns;
mod unknown_fields;

pub(crate) use self::agreement::Agreement;
pub use self::agreement::{Basis, Schemas};
pub use self::envelope::{
    Answer, Defect, Message, describe, excerpt, read as read_envelope, shorten,
};
pub(crate) use self::error_code::{UNSUPPORTED_PROTOCOL_VERSION, error_code, is_invalid_request};
pub use self::excerpt::excerpt_around;
pub(crate) use self::facts::{attachment, capability, login, sets_up};
pub use self::finding::{Excuse, Finding, FindingKind};
pub use self::party::Party;
pub use self::schema::{Schema, Verdict, Version};
pub use self::tracker::{Judged, Kind, Observed, Tracker};
pub(crate) use self::turns::is_conversation;
pub use self::turns::is_output;
pub(crate) use self::unknown_fields::{fits, parts, referent, referred};
