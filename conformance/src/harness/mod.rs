//! The client that the suite plays: raw messages out, every message judged.
//!
//! A [`Conn`] is one connection to a running agent. It answers the agent's requests
//! by a [`Script`], records everything in a [`Recording`], and waits for nothing
//! without a limit. What the waiting comes to is an [`Outcome`], so that a check
//! reads as the few steps it consists of.

mod conn;
mod evidence;
mod expect;
mod files;
mod outcome;
mod profile;
mod recorder;
mod script;
mod silence;

pub use self::conn::{Caps, Conn, Env, Waiting};
pub use self::evidence::{Entry, Recording};
pub use self::expect::{Reply, Turn};
pub use self::outcome::{Failure, Outcome, Stop, fail, inconclusive, skip};
pub use self::profile::Profile;
pub use self::recorder::Recorder;
pub use self::script::{Consent, Script, Terminals, UserInput};
pub use self::silence::Silence;
