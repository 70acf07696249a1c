//! Serving one client on standard input and output: the options, and how.

use std::path::PathBuf;
use std::time::Duration;

use acp_sdk::ConnectionBuilder;
use acp_server::{Handler, Limits, NextSession, Policies, Server};
use clap::{Args, ValueEnum};

use super::Failure;
use super::keep::KeepArgs;
use super::log::LogArgs;
use super::questions::QuestionArgs;
use super::settings::SettingsArgs;
use super::store::{StoreArgs, StoreUse};

/// How to serve.
#[derive(Debug, Args)]
pub struct Serve {
    /// The store.
    #[command(flatten)]
    pub store: StoreArgs,
    /// What is kept in it.
    #[command(flatten)]
    pub keep: KeepArgs,
    /// Protocol of the client, if it is not ACP: that of another system, or `auto`, which detects it by
    /// the first message
    #[arg(long, value_name = "NAME", value_enum, conflicts_with_all = ["name", "resume", "resume_recent"])]
    pub dialect: Option<Dialect>,
    /// Working directory of sessions whose client names none, and from which relative ones start [default:
    /// that of the process]. Clients of ACP name one, so it needs --dialect
    #[arg(long, value_name = "DIRECTORY", requires = "dialect")]
    pub cwd: Option<PathBuf>,
    /// Tools that may ask for permission, such as `Read,Grep,Bash`, in any case. A tool without a name has that
    /// of its kind, such as `execute`. What others ask for is rejected; tools that do not ask are not affected
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    pub allowed_tools: Option<Vec<String>>,
    /// Name of the session that the first session/new creates
    #[arg(long, short, value_name = "NAME", conflicts_with_all = ["resume", "resume_recent"])]
    pub name: Option<String>,
    /// Name of the session that the first session/new opens again
    #[arg(long, short, value_name = "NAME", conflicts_with = "resume_recent")]
    pub resume: Option<String>,
    /// The first session/new opens the most recent session of its directory again
    #[arg(long)]
    pub resume_recent: bool,
    /// Seconds that the client may leave output unread after it has closed its side; then the
    /// rest is lost, and the exit code is 1
    #[arg(long, value_name = "SECONDS", default_value_t = 30)]
    pub drain_timeout: u64,
    /// Seconds for the agent to end a cancelled turn by itself
    #[arg(long, value_name = "SECONDS", default_value_t = 5)]
    pub cancel_deadline: u64,
    /// Prompts that wait behind the running one; further ones are refused
    #[arg(long, value_name = "COUNT", default_value_t = 16)]
    pub queued_prompts: usize,
    /// Who reads and writes files and runs commands when the client offers none of it: nobody
    /// (`off`), or this machine (`fallback`), files inside the session's directories only
    #[arg(long, value_name = "WHO", value_enum, default_value_t = LocalTools::Off)]
    pub local_tools: LocalTools,
    /// Every event is on the disk before the client is sent it, not only at the end of a turn
    #[arg(long)]
    pub sync_every_event: bool,
    /// Who answers questions besides the client.
    #[command(flatten)]
    pub questions: QuestionArgs,
    /// What new sessions begin with.
    #[command(flatten)]
    pub settings: SettingsArgs,
    /// The log.
    #[command(flatten)]
    pub log: LogArgs,
}

/// The protocol of the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Dialect {
    /// That of the first message
    Auto,
    /// Chimera's ACP client
    Chimera,
    /// OpenOxide's ACP server, with `Content-Length` headers
    #[value(name = "openoxide")]
    OpenOxide,
    /// Otter's ACP server
    OtterAcp,
    /// The JSON-RPC methods of Otter's HTTP server
    OtterHttpAcp,
}

impl Dialect {
    /// Returns the protocol of another system; `None` for ACP. May wait for the first message.
    pub(super) async fn chosen(self) -> acp_sdk::Result<Option<acp_server_dialects::Dialect>> {
        Ok(Some(match self {
            Self::Auto => return acp_server_dialects::detect_stdio().await,
            Self::Chimera => acp_server_dialects::Dialect::Chimera,
            Self::OpenOxide => acp_server_dialects::Dialect::OpenOxide,
            Self::OtterAcp => acp_server_dialects::Dialect::OtterAcp,
            Self::OtterHttpAcp => acp_server_dialects::Dialect::OtterHttpAcp,
        }))
    }
}

/// Who serves files and terminals that the client does not offer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LocalTools {
    /// Nobody: the agent says in words what it cannot do
    Off,
    /// The machine of the agent
    Fallback,
}

impl From<LocalTools> for acp_server::LocalTools {
    fn from(tools: LocalTools) -> Self {
        match tools {
            LocalTools::Off => Self::Off,
            LocalTools::Fallback => Self::Fallback,
        }
    }
}

/// Serves one client on standard input and output.
pub(super) async fn serve(handler: impl Handler, args: Serve) -> Result<(), Failure> {
    let used = StoreUse {
        sync: args.sync_every_event,
        node: None,
    };
    let store = args.store.open(used).await?;
    let mut limits = Limits::default();
    limits.queued_prompts = args.queued_prompts;
    args.keep.apply(&mut limits);
    let mut policies = Policies::default();
    policies.cancel_deadline = Duration::from_secs(args.cancel_deadline);
    policies.local_tools = Some(args.local_tools.into());
    let server = Server::builder(handler).store(store).limits(limits);
    let server = args.questions.apply(server, policies, args.allowed_tools)?;
    let mut server = server.initial_settings(args.settings.settings());
    let next = match (args.name, args.resume) {
        (Some(name), _) => Some(NextSession::Named(name)),
        (_, Some(name)) => Some(NextSession::Resume(name)),
        _ => args.resume_recent.then_some(NextSession::ResumeRecent),
    };
    if let Some(next) = next {
        server = server.next_session(next);
    }
    let connection =
        ConnectionBuilder::new().drain_timeout(Duration::from_secs(args.drain_timeout));
    let server = server.build();
    let dialect = match args.dialect {
        Some(dialect) => dialect.chosen().await?,
        None => None,
    };
    let served = match dialect {
        None => server.serve_stdio_with(connection).await,
        Some(dialect) => {
            let cwd = args.cwd.unwrap_or_else(|| ".".into());
            acp_server_dialects::serve_stdio(dialect, &server, cwd, connection).await
        }
    };
    Ok(served?)
}
