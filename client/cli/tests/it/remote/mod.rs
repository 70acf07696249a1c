//! Remote agents and the registry of agents, with servers whose responses the tests write.

mod command;
mod install;
mod registry;

use std::process::Stdio;

use tokio::process::Command;

/// Creates an `acp` without input, whose output is captured. Dropping its process kills it.
fn acp() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_acp"));
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    command
}
