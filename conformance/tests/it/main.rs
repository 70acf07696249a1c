//! The checks of agents, proven by mutants, and what the crate promises of itself.
#![allow(clippy::unwrap_used, reason = "tests")]

mod dialects;
mod field;
mod independence;
#[cfg(unix)]
mod lanes;
#[cfg(unix)]
mod matrix;
#[cfg(unix)]
mod v2;
