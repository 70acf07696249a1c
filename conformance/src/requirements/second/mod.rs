//! The requirements of the draft of protocol version 2, as far as they are covered: the
//! transport, the handshake, sessions and the prompt lifecycle.
//!
//! Rows, checks and reports are those of version 1. What differs is how a connection is
//! opened and how a turn ends, which `steps` knows.

mod initialization;
pub(super) mod pages;
mod prompt_lifecycle;
mod session_setup;
mod steps;
mod transports;

pub(crate) use self::steps::{initialize, tour};

use super::{Area, area};

/// All areas, in the order of a report.
pub const AREAS: &[Area] = &[
    area("transports", transports::ROWS),
    area("initialization", initialization::ROWS),
    area("session-setup", session_setup::ROWS),
    area("prompt-lifecycle", prompt_lifecycle::ROWS),
];
