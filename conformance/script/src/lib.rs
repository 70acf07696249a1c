//! A scripted peer: says what a file tells it to, and insists on what it expects.
//!
//! A script is a TOML file of steps, played from the first to the last towards an
//! agent or, from within an agent's command, towards a client. It can send what no
//! SDK would, byte by byte, and die at any point, so that faults which were seen
//! once become cases without a line of Rust.
//!
//! ```
//! use acp_conformance_script::Script;
//!
//! let script = Script::parse("cancel.toml", r#"
//!     [[step]]
//!     send = { id = 0, method = "initialize", params = { protocolVersion = 1 } }
//!     [[step]]
//!     expect = { id = 0, result = { protocolVersion = "{version}" } }
//! "#)?;
//! assert_eq!(script.steps().len(), 2);
//! # Ok::<(), acp_conformance_script::ScriptError>(())
//! ```
//!
//! - [`Script`] is the file, read and checked as a whole before anything runs;
//! - [`matches`](acp_conformance::pattern::matches) decides whether a message is the one that is expected;
//! - [`Wire`] is the connection, on which nothing waits without a limit;
//! - [`play`] goes through the steps.
//!
//! Only for Unix: elsewhere the crate is empty.

#![cfg(unix)]

mod failure;
mod file;
mod play;
mod wire;

pub use self::failure::{Failure, Reason, ScriptError};
pub use self::file::{Action, Bytes, Manner, Script, Step};
pub use self::play::{Played, play};
pub use self::wire::{Event, Signal, Wire, WireError};
