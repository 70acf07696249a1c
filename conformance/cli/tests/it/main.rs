//! The command as its users run it: arguments in, text and exit code out.
#![allow(clippy::unwrap_used, reason = "tests")]

mod agent;
mod check;
mod client;
mod command;
mod compare;
#[cfg(unix)]
mod fair;
#[cfg(unix)]
mod faulty;
#[cfg(unix)]
mod hostile;
#[cfg(unix)]
#[path = "../../../tests/it/lanes.rs"]
mod lanes;
#[cfg(unix)]
mod proxy;
#[cfg(unix)]
mod script;
#[cfg(unix)]
mod setup;
mod spoken;
#[cfg(unix)]
mod transcripts;
#[cfg(unix)]
mod v2;
#[cfg(unix)]
mod v2_client;
