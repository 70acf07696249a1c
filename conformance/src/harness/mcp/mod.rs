//! MCP servers that the suite offers to an agent, and what they have seen of it.
//!
//! They have no tools. A server over stdio is a shell script, because the suite may be a library in
//! another program; it writes down how it was started.

mod http;
mod stdio;

use std::time::{Duration, Instant};

pub(crate) use self::http::HttpServer;
pub(crate) use self::stdio::{Started, StdioServer};
use super::{Conn, Outcome, inconclusive};

/// How often it is looked whether a server was connected to.
const STEP: Duration = Duration::from_millis(25);

/// How long a server that the agent has not connected to is waited for at most.
const LONGEST: Duration = Duration::from_secs(5);

impl Conn {
    /// Waits until the agent has connected to a server of this session. An agent may do so when the
    /// session is opened or when it needs the tools, so a prompt is sent in between. Returns
    /// whether it has connected.
    ///
    /// # Errors
    /// When the agent ends, or the turn fails.
    pub(crate) fn connects(
        &mut self,
        session: &str,
        is_connected: impl Fn() -> bool,
    ) -> Outcome<bool> {
        if is_connected() {
            return Ok(true);
        }
        if self.env.profile.prompts.contains_key("hello") {
            self.prompt(session, "hello")?;
        }
        let deadline = Instant::now() + self.env.timeout.min(LONGEST);
        while !is_connected() {
            if Instant::now() > deadline || self.has_ended() {
                return Ok(false);
            }
            self.listen(STEP);
        }
        Ok(true)
    }
}

/// Returns what the suite could not set up on this machine.
fn unavailable<T>(result: std::io::Result<T>) -> Outcome<T> {
    result.or_else(|error| inconclusive(format!("cannot offer an MCP server: {error}")))
}
