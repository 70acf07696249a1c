//! The requirements of the draft of protocol version 2.
//!
//! Rows, checks and reports are those of version 1, and so are rules over messages that both
//! versions have. What differs is how a connection is opened and how a turn ends, which `steps`
//! knows.

pub(super) mod authentication;
pub(super) mod cancellation;
pub(super) mod commands;
pub(super) mod config_options;
pub(super) mod content;
pub(super) mod elicitation;
pub(super) mod extensibility;
pub(super) mod initialization;
pub(super) mod pages;
pub(super) mod plan;
pub(super) mod prompt_lifecycle;
pub(super) mod session_setup;
mod steps;
pub(super) mod tool_calls;
pub(super) mod transports;

pub(crate) use self::steps::{initialize, tour, tour_of_nothing};
