//! The command `acp-server`: the reference agent on standard input and output.

use std::io::Write as _;
use std::process::ExitCode;
use std::time::Duration;

use acp_server::{HELP, Reference, Runtime};
use clap::Parser;

/// How to talk to it, after the words.
const TRY: &str = r#"Try it with a client:
  acp run "tool" -- acp-server
or by hand, one message a line; the answer to session/new has the id for session/prompt:
  {"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1}}
  {"jsonrpc":"2.0","id":1,"method":"session/new","params":{"cwd":"/tmp","mcpServers":[]}}
  {"jsonrpc":"2.0","id":2,"method":"session/prompt","params":PROMPT}
where PROMPT is {"sessionId":"ID","prompt":[{"type":"text","text":"plan"}]}
In Zed, settings.json:
  "agent_servers": { "Reference": { "type": "custom", "command": "acp-server", "args": [] } }

Exit codes: 0 when the client has closed its side, 1 when reading or writing failed or the
client did not read the last output, 2 for wrong usage. SIGTERM closes the connection: turns are
cancelled and answered. Messages for people go to standard error."#;

/// The reference agent of the Agent Client Protocol: serves one client on standard input and
/// output, deterministically, without a model or a network, until the client closes its side.
#[derive(Parser)]
#[command(version, after_help = format!("{HELP}\n\n{TRY}"))]
struct Args {
    /// Seconds that the client may leave output unread after it has closed its side; then the
    /// rest is lost, and the exit code is 1
    #[arg(long, value_name = "SECONDS", default_value_t = 30)]
    write_timeout: u64,
}

// One thread: there is nothing to compute, and no message has to change threads.
#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let args = Args::parse();
    let connection =
        acp_sdk::ConnectionBuilder::new().write_timeout(Duration::from_secs(args.write_timeout));
    match connection.serve_stdio(Runtime::new(Reference)).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // `eprintln!` would panic where nobody listens.
            let _ = writeln!(std::io::stderr(), "acp-server: {error}");
            ExitCode::FAILURE
        }
    }
}
