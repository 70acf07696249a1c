//! Limits, timeouts, and the session information for servers.

use std::time::Duration;

use acp_client::Reconnect;

/// Options of [`Servers`](crate::Servers).
///
/// ```
/// let mut options = acp_server_mcp::Options::default();
/// options.role = Some("developer".to_owned());
/// options.withheld_env = vec!["MODEL_API_KEY".to_owned()];
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Options {
    /// Name and version of the agent, the `clientInfo` of `initialize` (default: those of this crate).
    pub client: (String, String),
    /// The agent's role, `capabilities.experimental.session.role` of `initialize` (default: none).
    pub role: Option<String>,
    /// The agent's specification, `capabilities.experimental.session.spec` (default: none).
    pub spec: Option<String>,
    /// Names of variables of this process that servers do not inherit, such as the key of the model
    /// (default: none). Variables that the client sets for a server are kept.
    pub withheld_env: Vec<String>,
    /// Time that opening a session waits for its servers (default 20 s). Slower ones connect while the
    /// session is in use.
    pub open_timeout: Duration,
    /// Time for a server to start and to answer `initialize` (default 60 s).
    pub start_timeout: Duration,
    /// Time for a server to list all of its tools (default 30 s).
    pub list_timeout: Duration,
    /// Time for a tool to return its result (default 5 min).
    pub call_timeout: Duration,
    /// Waits between restarts of a server, and the time limit of all attempts (default: from 500 ms to
    /// 30 s, for 5 min). `None`: a server that has ended has failed. `continue_timeout` has no meaning.
    pub restart: Option<Reconnect>,
    /// Time for a server to exit after its input is closed (default 2 s), and after `SIGTERM`
    /// (default 1 s); `SIGKILL` follows.
    pub shutdown_grace: (Duration, Duration),
    /// Maximum number of tools of a server (default 256). Further ones are left out.
    pub max_tools: usize,
    /// Maximum number of bytes of a result (default 1 MiB). What exceeds it is left out of the
    /// [`CallOutput`](crate::CallOutput).
    pub max_result_bytes: usize,
    /// Maximum number of bytes of a message (default 16 MiB). A server over stdio that exceeds it is
    /// restarted; over HTTP the call fails.
    pub max_message_bytes: usize,
    /// Maximum number of bytes of a server's standard error in a reason (default 2 KiB), its end.
    pub max_stderr_bytes: usize,
}

impl Default for Options {
    fn default() -> Self {
        let restart =
            Reconnect::default().with_waits(Duration::from_millis(500), Duration::from_secs(30));
        Self {
            client: (
                env!("CARGO_PKG_NAME").to_owned(),
                env!("CARGO_PKG_VERSION").to_owned(),
            ),
            role: None,
            spec: None,
            withheld_env: Vec::new(),
            open_timeout: Duration::from_secs(20),
            start_timeout: Duration::from_secs(60),
            list_timeout: Duration::from_secs(30),
            call_timeout: Duration::from_secs(300),
            restart: Some(restart),
            shutdown_grace: (Duration::from_secs(2), Duration::from_secs(1)),
            max_tools: 256,
            max_result_bytes: 1 << 20,
            max_message_bytes: 16 << 20,
            max_stderr_bytes: 2 << 10,
        }
    }
}
