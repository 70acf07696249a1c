//! The command `acp`, run as a process against agents that are shell scripts.

#[path = "../../../../sdk/sandbox/tests/confine/mechanisms.rs"]
mod mechanisms;
pub mod pty;
pub mod script;

mod acp;
mod agents;
mod chat;
mod errors;
mod formats;
mod login;
mod named;
mod permissions;
mod record;
mod sandbox;
mod secrets;
mod sessions;
mod stopping;
mod v2;
