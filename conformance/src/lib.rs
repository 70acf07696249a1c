//! Conformance suite for the Agent Client Protocol.
//!
//! Three layers, each usable without the next:
//!
//! - [`wire`]: what is wrong with a message, judged by the protocol's schema and
//!   by what was sent before it;
//! - [`transcript`]: recordings, checked message by message;
//!
//! The suite speaks to its subjects in raw bytes. It uses the schema, never the
//! typed messages generated from it: a typed layer cannot send what is malformed,
//! and would hide what it repairs.

pub mod cli;
mod error;
mod progress;
pub mod transcript;
pub mod wire;

pub use self::error::{Error, Result};
