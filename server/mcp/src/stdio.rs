//! Servers that are processes of this machine.

use acp_client::{AgentCommand, AgentProcess};
use acp_sdk::text::single_line;
use acp_sdk::v1::McpServerStdio;

use crate::Options;
use crate::connection::{OpenError, Origin};

/// Starts the process of a server in the directory of the session.
pub(crate) fn start(
    server: &McpServerStdio,
    origin: &Origin,
    options: &Options,
) -> Result<AgentProcess, OpenError> {
    let (eof, terminate) = options.shutdown_grace;
    let mut command = AgentCommand::new(&server.command)
        .args(&server.args)
        .current_dir(&origin.cwd)
        .shutdown_grace(eof, terminate)
        .end_with_host();
    for name in &options.withheld_env {
        command = command.env_remove(name);
    }
    for variable in &server.env {
        command = command.env(&variable.name, &variable.value);
    }
    command.spawn().map_err(|error| {
        OpenError::is_final(match error {
            acp_client::Error::Spawn { reason, .. } => {
                format!("cannot be started: {reason}")
            }
            other => other.to_string(),
        })
    })
}

/// Adds the end of standard error to a reason, as one line.
pub(crate) fn with_stderr(mut reason: String, lines: &[String], max_bytes: usize) -> String {
    let mut stderr = single_line(&lines.join(" | "));
    if stderr.len() > max_bytes {
        let excess = stderr.len() - max_bytes;
        let cut = (excess..stderr.len()).find(|at| stderr.is_char_boundary(*at));
        stderr = format!("…{}", &stderr[cut.unwrap_or(stderr.len())..]);
    }
    if max_bytes > 0 && !stderr.is_empty() {
        reason.push_str("; standard error: ");
        reason.push_str(&stderr);
    }
    reason
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_standard_error_is_kept_as_one_line() {
        let lines = ["Lädt".to_owned(), "\u{1b}[31mno key".to_owned()];
        let reason = |max| with_stderr("exited".to_owned(), &lines, max);
        assert_eq!(reason(100), "exited; standard error: Lädt | no key");
        // A byte of `ä` does not fit.
        assert_eq!(reason(12), "exited; standard error: …dt | no key");
        assert_eq!(reason(0), "exited");
        assert_eq!(with_stderr("exited".to_owned(), &[], 100), "exited");
    }
}
