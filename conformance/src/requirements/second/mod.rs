//! The requirements of the draft of protocol version 2.
//!
//! Rows, checks and reports are those of version 1, and so are rules over messages that both
//! versions have. What differs is how a connection is opened and how a turn ends, which `steps`
//! knows.

mod authentication;
mod cancellation;
mod commands;
mod config_options;
mod content;
mod elicitation;
mod extensibility;
mod initialization;
pub(super) mod pages;
mod plan;
mod prompt_lifecycle;
mod session_setup;
mod steps;
mod tool_calls;
mod transports;

pub(crate) use self::steps::{initialize, tour, tour_of_nothing};

use super::{Area, area};

/// All areas, in the order of a report.
pub const AREAS: &[Area] = &[
    area("transports", transports::ROWS),
    area("initialization", initialization::ROWS),
    area("authentication", authentication::ROWS),
    area("session-setup", session_setup::ROWS),
    area("prompt-lifecycle", prompt_lifecycle::ROWS),
    area("cancellation", cancellation::ROWS),
    area("content", content::ROWS),
    area("tool-calls", tool_calls::ROWS),
    area("plan", plan::ROWS),
    area("config-options", config_options::ROWS),
    area("commands", commands::ROWS),
    area("elicitation", elicitation::ROWS),
    area("extensibility", extensibility::ROWS),
];
