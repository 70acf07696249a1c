//! The command as its users run it: arguments in, text and exit code out.
#![allow(clippy::unwrap_used, reason = "tests")]

mod agent;
mod check;
mod client;
mod command;
mod compare;
#[cfg(unix)]
mod fair;
mod hostile;
mod matrix;
#[cfg(unix)]
mod proxy;
#[cfg(unix)]
mod script;
#[cfg(unix)]
mod second;
#[cfg(unix)]
mod second_client;
mod spoken;
