//! The client that the suite plays: raw messages out, every message judged.
//!
//! A [`Conn`] is one connection to a running agent. It answers the agent's requests
//! by a [`Script`], records everything in a [`Recording`], and waits for nothing
//! without a limit. Its result is an [`Outcome`], so that a check
//! reads as the few steps it consists of.

mod adapter;
mod asking;
pub(crate) mod cleanup;
mod conditions;
mod confined;
mod conn;
mod cx;
mod evidence;
mod expect;
mod files;
mod interruption;
pub(crate) mod mcp;
mod names;
mod outcome;
mod privileged;
mod profile;
mod recorder;
mod script;
mod sessions;
mod transcripts;
mod turns;
mod unresponsive;

pub use self::adapter::{Capability, Caps};
pub(crate) use self::asking::option_set_to;
pub use self::conditions::Conditions;
pub use self::conn::{Conn, Env, Waiting};
pub use self::cx::Cx;
pub(crate) use self::cx::prompts;
pub use self::evidence::{Entry, Recording, Update};
pub use self::expect::Reply;
pub use self::interruption::Interruption;
pub(crate) use self::interruption::{INTERRUPTED, LOOK};
pub(crate) use self::outcome::serves;
pub use self::outcome::{Failure, Outcome, Stop, fail, inconclusive, skip};
pub(crate) use self::privileged::{chooses_model, is_privileged};
pub use self::profile::Profile;
pub use self::recorder::Recorder;
pub use self::script::{Consent, Script, Terminals, UserInput};
pub use self::transcripts::Transcripts;
pub use self::turns::Turn;
pub use self::unresponsive::Unresponsive;
