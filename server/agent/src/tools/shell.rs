//! Commands.

use std::time::Duration;

use acp_sdk::v1::{CreateTerminalRequest, ToolKind};
use schemars::JsonSchema;
use serde::Deserialize;

use super::text_of;
use crate::{Call, Output, Risk, Tool, ToolOutcome};

#[derive(Deserialize, JsonSchema)]
struct Shell {
    /// The command line.
    command: String,
    /// Seconds after which the command is killed (default: 120, most: 3600).
    timeout: Option<u64>,
}

const LONGEST: u64 = 3600;

/// Bytes of output that a command may have; the last ones are kept.
const MOST_OUTPUT: u64 = 256 << 10;

/// Returns the tool `shell`: a command line in the user's terminal, or on this machine.
#[must_use]
pub fn shell() -> Tool {
    let description = "Runs a command line with a shell in the working directory, and returns its output and exit \
        code. It has no input. A command that does not end by itself is killed after `timeout` seconds.";
    Tool::new("shell", description, run)
        .kind(ToolKind::Execute)
        .risk(Risk::Acts)
        // The function has a timeout of its own.
        .timeout(Duration::from_secs(LONGEST + 60))
        .shown(|shell| text_of(shell, "command"), |_| Vec::new())
}

async fn run(shell: Shell, call: Call) -> ToolOutcome {
    let seconds = shell.timeout.unwrap_or(120).min(LONGEST);
    let (program, flag) = if cfg!(windows) {
        ("cmd", "/C")
    } else {
        ("sh", "-c")
    };
    let session = call.session();
    let request = CreateTerminalRequest::new(session.id(), program)
        .with_args(vec![flag.to_owned(), shell.command])
        .with_cwd(session.cwd())
        .with_output_byte_limit(MOST_OUTPUT);
    let terminal = call.turn().terminal_with(request).await?;
    call.show_terminal(&terminal).await?;
    let ended = tokio::time::timeout(Duration::from_secs(seconds), terminal.wait()).await;
    let exit = match ended {
        Ok(exit) => Some(exit?),
        Err(_) => {
            terminal.kill().await?;
            None
        }
    };
    let response = terminal.output().await?;
    terminal.release().await?;
    let cut = if response.truncated {
        "[… the beginning is left out …]\n"
    } else {
        ""
    };
    let output = response.output;
    let how = match &exit {
        Some(exit) => exit.to_string(),
        None => format!("killed after {seconds} s"),
    };
    let text = format!("{cut}{output}\n[{how}]");
    Ok(match exit.is_some_and(|exit| exit.is_success()) {
        true => text.into(),
        false => Output::error(text),
    })
}
