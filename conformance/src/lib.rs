//! Conformance suite for the Agent Client Protocol.
//!
//! Each layer is usable without the next:
//!
//! - [`wire`]: what is wrong with a message, judged by the protocol's schema and
//!   by what was sent before it;
//! - [`passive`]: what is wrong with a sequence of them;
//! - [`transcript`]: recordings, and [`judge`]: all of it applied to them;
//! - [`target`]: an agent, started and spoken to in raw bytes;
//! - [`harness`]: the client that the suite plays towards it;
//! - [`requirements`]: what the protocol demands, as rows of data with checks;
//! - [`suite`]: a run of them, and [`report`]: its result;
//! - `remote`: the client that it plays towards a server's HTTP and WebSocket;
//! - [`clients`]: the same for clients, to which the suite plays the agent;
//! - [`testing`]: all of it in one call of a `#[test]`: [`assert_conformant`];
//! - [`mutants`]: agents that break the rules, which prove the checks.
//!
//! The suite speaks to its subjects in raw bytes. It uses the schema, never the
//! typed messages generated from it: a typed layer cannot send what is malformed,
//! and would hide what it repairs.

pub mod clients;
mod embedded;
mod error;
pub mod harness;
pub mod judge;
pub mod mutants;
#[cfg(unix)]
pub mod orphan_reaper;
pub mod passive;
pub mod pattern;
#[cfg(unix)]
pub mod process_group;
#[cfg(all(unix, feature = "remote"))]
mod remote;
pub mod report;
pub mod requirements;
pub mod specification;
pub mod suite;
pub mod target;
pub mod testing;
pub mod transcript;
#[cfg(all(unix, feature = "remote"))]
mod transport;
pub mod wire;
mod workdir;

/// For the program `acp-conformance`. It may change in any release.
#[doc(hidden)]
pub mod internal {
    pub use crate::target::v2::{Store, serve};
    pub use crate::workdir::Workdir;
}

#[cfg(unix)]
pub use self::clients::Launched;
pub use self::error::{Error, Result};
pub use self::testing::{AgentTest, ClientTest, assert_conformant};

/// Compiles the examples of the README.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
struct Readme;

/// Compiles the example of this crate's own.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct OwnReadme;
