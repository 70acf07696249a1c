//! The arguments of `serve`, `status` and `stop`.

use std::path::PathBuf;

use acp_server_remote::{Host, Origin};
use clap::{Args, ValueEnum as _};

use super::super::hosted::AgentArgs;
use super::super::keep::KeepArgs;
use super::super::log::LogArgs;
use super::super::questions::QuestionArgs;
use super::super::settings::SettingsArgs;
use super::super::stdio::Dialect;
use super::super::store::StoreArgs;
use super::super::tokens::TokensFile;
use super::hooks::NamedHook;
use super::node::NodeArgs;

/// What `acp-server serve --help` explains besides the options.
const ABOUT_SERVE: &str = r#"On loopback without a token, one is made. It is in a file beside the discovery
file, which only you can read:
  acp-server serve &
  FILE="${XDG_RUNTIME_DIR:-$HOME/.local/state}/acp-server/acp-server-5173.token"
  curl -H "Authorization: Bearer $(cat "$FILE")" http://127.0.0.1:5173/acp ...
For other machines, with a token of your own and TLS:
  (umask 077; openssl rand -hex 32 > token)
  acp-server serve --host 0.0.0.0 --token-file token --tls-cert cert.pem --tls-key key.pem \
      --allow-host agents.example
Behind a proxy that ends TLS, leave the host as it is and add --allow-host
with the public name.

Tokens with names, rights and an expiry are in a file that `acp-server tokens`
changes. With a token of your own, name the file:
  acp-server tokens add dashboard --read-only --expires 90d
  acp-server serve --token-file token --tokens ~/.local/share/acp-server/tokens.json

Another agent than the reference agent, with its sessions kept here and its
processes supervised:
  acp-server serve -- opencode acp
It does not get ACP_SERVER_TOKEN. What it writes to standard error is logged.

Several agents, each with a store of its own (sessions.NAME.db beside --store):
  acp-server serve --agents agents.toml
with a table for each. All but name and command may be left out:
  [[agents]]
  name = "coder"                   # /acp/coder; the first agent is /acp, too
  description = "Writes code"
  command = "opencode acp"         # split as by a shell, or a list
  directory = "/srv/project"       # where it works
  env = { KEY = "value" }          # for this agent only
  env_remove = ["HTTP_PROXY"]
  user = "agent"                   # as --agent-user
  sandbox = { mechanism = "landlock", write = [], network = true }
  agent_process = "shared"         # as --agent-process
  limits = { processes = 64, idle_timeout = 1800, max_memory = 2048 }   # and others
  model = "fast"                   # as --model, --mode and --option
  mode = "ask"
  options = { thought_level = "high" }
  store = "coder.db"               # beside --store
All are started before the server listens.

Several servers with one database, at each of which every session can be used
(docs/cluster.md):
  acp-server serve --store postgres://user@db/acp --node-address http://10.0.0.7:7410 \
      --node-secret-file secret ...

A webhook of a CI system, which signs its calls (X-Hub-Signature-256) or sends
the secret (X-Gitlab-Token, Authorization: Bearer):
  (umask 077; openssl rand -hex 32 > ci.secret)
  acp-server serve --hook ci=ci.secret --rules rules.toml -- opencode acp
  curl -H "Authorization: Bearer $(cat ci.secret)" --data '{"failed": "main"}' \
      http://127.0.0.1:5173/hooks/ci
The body is the prompt of a turn in the session `ci` of the agent (of the first
one with --agents), which attached clients see. Nobody may be there: --rules
decide what is permitted, and what they leave open is rejected after
--permission-timeout seconds.

A new certificate is loaded within seconds of its file's change, and at
SIGHUP. A browser gets a ticket for one request by POST /ticket, and sends it
as ?ticket=TICKET. GET /healthz and GET /readyz need no token. GET /openapi.json describes
the REST interface, GET /metrics has numbers for Prometheus.

SIGTERM and SIGINT stop the server: it accepts nothing more, lets running
turns go on for --drain seconds, cancels and answers the others, and ends
within --shutdown-timeout. A second signal ends it at once. Sessions stay in
the store.

Exit codes: 0 after a signal, 1 when the store or the socket failed, 2 for
wrong usage, when a server runs on the port already, and when COMMAND or an
agent of --agents cannot be started or does not answer."#;

/// Options that a file of agents has for each agent.
const REPLACED: &[&str] = &[
    "command",
    "url",
    "agent_process",
    #[cfg(unix)]
    "agent_user",
    "sandbox",
    "model",
    "mode",
    "option",
];

/// Serves the agent over HTTP, server-sent events and WebSocket, to any number of clients.
#[derive(Debug, Args)]
#[command(after_help = ABOUT_SERVE)]
// Its turns may be nobody's: they wait for a day.
#[command(mut_arg("permission_timeout", |timeout| timeout.default_value("86400")))]
// Nobody closes such a server at the end of the day.
#[command(mut_arg("agent_idle_timeout", |timeout| timeout.default_value("1800")))]
pub struct RemoteServe {
    /// The store.
    #[command(flatten)]
    pub store: StoreArgs,
    /// What is kept in it.
    #[command(flatten)]
    pub keep: KeepArgs,
    /// Address or name to listen on; others than loopback need a token and TLS
    #[arg(long, value_name = "HOST", default_value = "127.0.0.1")]
    pub host: String,
    /// Port to listen on; 0 picks a free one
    #[arg(long, value_name = "PORT", default_value_t = 5173)]
    pub port: u16,
    /// File with the token that permits everything; without it, ACP_SERVER_TOKEN of the environment
    #[arg(long, value_name = "FILE")]
    pub token_file: Option<PathBuf>,
    /// File with a token that permits reading
    #[arg(long, value_name = "FILE")]
    pub read_only_token_file: Option<PathBuf>,
    /// The named tokens.
    #[command(flatten)]
    pub tokens: TokensFile,
    /// Session tokens, which POST /session issues, stay valid after a restart: the file of named
    /// tokens keeps their hashes
    #[arg(long)]
    pub keep_session_tokens: bool,
    /// Certificate in PEM, followed by those of its issuers
    #[arg(long, value_name = "FILE")]
    pub tls_cert: Option<PathBuf>,
    /// Private key of the certificate in PEM
    #[arg(long, value_name = "FILE")]
    pub tls_key: Option<PathBuf>,
    /// Issuers of client certificates in PEM; clients then need a certificate
    #[arg(long, value_name = "FILE")]
    pub tls_client_ca: Option<PathBuf>,
    /// Origin whose pages may send requests, such as `https://app.example`; repeatable
    #[arg(long, value_name = "ORIGIN")]
    pub cors: Vec<Origin>,
    /// Host that requests may name besides loopback and --host, such as agents.example; repeatable
    #[arg(long, value_name = "NAME")]
    pub allow_host: Vec<Host>,
    /// Serves other machines without TLS: everybody on the way can read tokens and conversations
    #[arg(long)]
    pub insecure: bool,
    /// Requests a second for each token; 0: without limit
    #[arg(long, value_name = "COUNT", default_value_t = 1_000)]
    pub requests_per_second: u32,
    /// Logs each request: method, path, status, time
    #[arg(long)]
    pub log_requests: bool,
    /// Folder in which POST /sessions/ID/share writes transcripts; without it, it writes none
    #[arg(long, value_name = "DIR")]
    pub share_dir: Option<PathBuf>,
    /// Server to which it may send them, such as `https://collector.example`; repeatable
    #[arg(long, value_name = "ORIGIN")]
    pub share_origin: Vec<Origin>,
    /// Webhook: POST /hooks/NAME begins a turn of the session NAME, for callers that have the secret of this
    /// file. The session is created if there is none; repeatable
    #[arg(long, value_name = "NAME=FILE")]
    pub hook: Vec<NamedHook>,
    /// Protocol of another system to serve besides: `openoxide` at POST /openoxide/prompt, or `auto`, every
    /// protocol that has a route. The others are those of `acp-server` and `acp-server host`
    #[arg(long, value_name = "NAME", value_parser = with_route)]
    pub dialect: Option<Dialect>,
    /// Seconds that running turns may go on after SIGTERM before they are cancelled
    #[arg(long, value_name = "SECONDS", default_value_t = 0)]
    pub drain: u64,
    /// Seconds for cancelled turns and for connections to end
    #[arg(long, value_name = "SECONDS", default_value_t = 8)]
    pub shutdown_timeout: u64,
    /// Serves the agents of this file, tables `[[agents]]` in TOML, each with a store of its own: the
    /// first at /acp, each of them at /acp/NAME. The file replaces COMMAND and its options, except for
    /// limits, which are those of agents that have none in the file
    #[arg(long, value_name = "FILE", conflicts_with_all = REPLACED)]
    pub agents: Option<PathBuf>,
    /// The other servers with the same store.
    #[command(flatten)]
    pub node: NodeArgs,
    /// Who answers questions besides the clients.
    #[command(flatten)]
    pub questions: QuestionArgs,
    /// What new sessions begin with.
    #[command(flatten)]
    pub settings: SettingsArgs,
    /// The log.
    #[command(flatten)]
    pub log: LogArgs,
    /// The agent to serve instead of the reference agent.
    #[command(flatten)]
    pub agent: AgentArgs,
}

/// Returns the dialect with this name.
///
/// # Errors
///
/// For a name of none, and for a dialect without a route.
fn with_route(name: &str) -> Result<Dialect, String> {
    match Dialect::from_str(name, false) {
        Ok(dialect @ (Dialect::Auto | Dialect::OpenOxide)) => Ok(dialect),
        Ok(Dialect::OtterHttpAcp) => Err(
            "the routes of Otter's HTTP server are those of REST, which need no option".to_owned(),
        ),
        Ok(Dialect::Chimera | Dialect::OtterAcp) => Err(format!(
            "this protocol has no HTTP. Use `acp-server --dialect {name}`, or `acp-server host --dialect {name} -- \
             COMMAND`"
        )),
        Err(_) => Err("expected `openoxide` or `auto`".to_owned()),
    }
}

/// Stops servers: SIGTERM, and SIGKILL for one that does not end in its time.
#[derive(Debug, Args)]
#[command(
    after_help = "Exit codes: 0 when nothing runs any more, 1 when a server did not end, 2 \
    when several run and neither --port nor --all is given."
)]
pub struct Stop {
    /// The server of this port
    #[arg(long, value_name = "PORT", conflicts_with = "all")]
    pub port: Option<u16>,
    /// All servers of this user
    #[arg(long)]
    pub all: bool,
    /// Seconds between SIGTERM and SIGKILL [default: 10, or what the server's --drain and
    /// --shutdown-timeout need]
    #[arg(long, value_name = "SECONDS")]
    pub serve_timeout: Option<u64>,
}
