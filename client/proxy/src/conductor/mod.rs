//! Chains of proxies in front of an agent.

mod program;
mod restart;

use std::fmt;
use std::pin::Pin;
use std::time::Duration;

use acp_client::{AgentCommand, Reconnect};
use acp_sdk::limits::MAX_MESSAGE_BYTES;
use acp_sdk::{MessageTransport, Transport, channel};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use self::program::{Cause, Program, start};
use crate::link::{Joined, Link};
use crate::mcp::{BridgeCommand, bridge};
use crate::proxy::{BETWEEN, Proxy};
use crate::relay::{End, Explain};
use crate::trace::Trace;

/// The maximum number of proxies in a chain.
const MOST_PROXIES: usize = 64;

/// How long a program may take to answer `proxy/initialize`.
const START_LIMIT: Duration = Duration::from_secs(120);

type Messages = Pin<Box<dyn MessageTransport>>;

/// Runs a chain of proxies in front of an agent, and is one agent for the client.
///
/// A proxy of the chain is a [`Proxy`] in this process, or a program that speaks `proxy/initialize` and
/// `proxy/successor`. The first one that is added is the nearest to the client.
#[derive(Clone, Debug, Default)]
#[must_use = "a conductor does nothing until it is run"]
pub struct Conductor {
    parts: Vec<Part>,
    bridge: Option<BridgeCommand>,
    start_limit: Option<Duration>,
    restart: Option<Reconnect>,
    trace: Option<Trace>,
    stop: CancellationToken,
}

#[derive(Clone, Debug)]
enum Part {
    Proxy(Proxy),
    Program(AgentCommand),
}

impl Part {
    fn name(&self) -> String {
        match self {
            Self::Proxy(proxy) => proxy.name().to_owned(),
            Self::Program(command) => command.to_string(),
        }
    }
}

/// Why a chain could not be started.
#[derive(Debug)]
#[non_exhaustive]
pub enum ConductorError {
    /// A program could not be started.
    Start(acp_client::Error),
    /// Standard input and output cannot be used.
    Stdio(acp_sdk::Error),
    /// The chain has more proxies than allowed.
    TooLong,
}

impl fmt::Display for ConductorError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Start(error) => error.fmt(f),
            Self::Stdio(error) => error.fmt(f),
            Self::TooLong => write!(f, "a chain has at most {MOST_PROXIES} proxies"),
        }
    }
}

impl std::error::Error for ConductorError {}

impl From<acp_client::Error> for ConductorError {
    fn from(error: acp_client::Error) -> Self {
        Self::Start(error)
    }
}

impl From<acp_sdk::Error> for ConductorError {
    fn from(error: acp_sdk::Error) -> Self {
        Self::Stdio(error)
    }
}

impl Conductor {
    /// Creates a chain without proxies.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a proxy that runs in this process.
    pub fn proxy(mut self, proxy: Proxy) -> Self {
        self.parts.push(Part::Proxy(proxy));
        self
    }

    /// Adds a program that is a proxy.
    pub fn program(mut self, command: AgentCommand) -> Self {
        self.parts.push(Part::Program(command));
        self
    }

    /// Offers servers of the Model Context Protocol (MCP) inside of the connection to agents that only know
    /// programs: `command` is what such an agent starts. See [`bridge()`].
    pub fn bridge(mut self, command: BridgeCommand) -> Self {
        self.bridge = Some(command);
        self
    }

    /// Sets how long a program may take to answer `proxy/initialize`, which includes those behind it
    /// (default: 120 s).
    pub fn start_limit(mut self, limit: Duration) -> Self {
        self.start_limit = Some(limit);
        self
    }

    /// Starts the whole chain again when a part of it has ended, and resumes the sessions of the client, which
    /// does not notice. Requests without an answer fail with an error that names the part. If the agent can
    /// neither load nor resume a session, the chain ends (default: it ends with its first part that does).
    pub fn restart(mut self, restart: Reconnect) -> Self {
        self.restart = Some(restart);
        self
    }

    /// Writes each message at each place of the chain to `trace`.
    pub fn trace(mut self, trace: Trace) -> Self {
        self.trace = Some(trace);
        self
    }

    /// Ends the chain when `stop` is cancelled, as if the client had ended.
    pub fn stop(mut self, stop: CancellationToken) -> Self {
        self.stop = stop;
        self
    }

    /// Runs the chain on standard input and output, until the client or a part of it has ended.
    ///
    /// # Errors
    ///
    /// Fails if a program cannot be started, or standard input and output cannot be used.
    pub async fn serve_stdio(self, agent: AgentCommand) -> Result<End, ConductorError> {
        let client = acp_sdk::stdio()?;
        self.run(client, agent).await
    }

    /// Runs the chain between `client` and a process of `agent`, until the client or a part of it has
    /// ended.
    ///
    /// Requests that nobody answers any more are answered with an error that names the part that has ended.
    ///
    /// # Errors
    ///
    /// Fails if a program cannot be started.
    pub async fn run(
        mut self,
        client: impl Into<Transport>,
        agent: AgentCommand,
    ) -> Result<End, ConductorError> {
        match self.restart.take() {
            Some(restart) => self.run_again(client.into(), agent, restart).await,
            None => self.run_once(client.into(), agent).await,
        }
    }

    async fn run_once(
        mut self,
        client: Transport,
        agent: AgentCommand,
    ) -> Result<End, ConductorError> {
        // Next to the agent, so that the proxies see the servers, and the requests to them.
        if let Some(command) = self.bridge.take() {
            self.parts.push(Part::Proxy(bridge(command)));
        }
        let name = agent.to_string();
        let (process, streams) = start(agent)?;
        let cause = Cause::default();
        let explain = cause.of_agent(&process);
        let client_ended = CancellationToken::new();
        let agent = Successor {
            name,
            transport: streams,
            explain: Some(explain),
        };
        let running = self.run_parts(client, agent, cause, client_ended.clone());
        let ending = async {
            client_ended.cancelled().await;
            process.await_end().await;
        };
        let (end, _) = tokio::join!(running, ending);
        end
    }

    /// Runs the chain as a proxy of another chain, on standard input and output.
    ///
    /// # Errors
    ///
    /// As [`serve_stdio`](Self::serve_stdio).
    pub async fn serve_as_proxy(self) -> Result<End, ConductorError> {
        let conductor = acp_sdk::stdio()?;
        self.run_as_proxy(conductor).await
    }

    /// Runs the chain as a proxy of another chain, whose conductor is at the other end of `conductor`.
    ///
    /// # Errors
    ///
    /// Fails if a program cannot be started.
    pub async fn run_as_proxy(
        self,
        conductor: impl Into<Transport>,
    ) -> Result<End, ConductorError> {
        let (near, client) = channel(BETWEEN);
        let (agent, far) = channel(BETWEEN);
        let joined = conductor.into().into_messages(MAX_MESSAGE_BYTES);
        let ends: [Messages; 3] = [Box::pin(near), Box::pin(far), joined];
        let mut link = Link::new(Joined::Conductor, ends);
        let link = tokio::spawn(async move {
            link.run().await;
            link.close().await;
        });
        let successor = Successor {
            name: "successor".to_owned(),
            transport: agent.into(),
            explain: None,
        };
        let client_ended = CancellationToken::new();
        let running = self.run_parts(client.into(), successor, Cause::default(), client_ended);
        let end = running.await;
        // The link has ended, or ends now that its sides have.
        let _ = link.await;
        end
    }

    /// Runs all parts, and returns how the one next to the client has ended. Cancels `client_ended` when the
    /// client has, or a part.
    async fn run_parts(
        self,
        client: Transport,
        agent: Successor,
        cause: Cause,
        client_ended: CancellationToken,
    ) -> Result<End, ConductorError> {
        // Whatever happens, nobody waits for the client any more.
        let _ended = client_ended.clone().drop_guard();
        if self.parts.len() > MOST_PROXIES {
            return Err(ConductorError::TooLong);
        }
        let limit = self.start_limit.unwrap_or(START_LIMIT);
        let trace = self.trace;
        let tap = |messages, this: &str, peer: &str| match &trace {
            Some(trace) => trace.tap(messages, this, peer),
            None => messages,
        };
        let mut parts = self.parts.into_iter().peekable();
        let client = client.into_messages(MAX_MESSAGE_BYTES);
        // The proxy next to the client answers what the others leave open.
        let edge = parts.next_if(|part| matches!(part, Part::Proxy(_)));
        let (edge, client, name) = match edge {
            Some(Part::Proxy(proxy)) => {
                let name = proxy.name().to_owned();
                (proxy, tap(client, &name, "client"), name)
            }
            _ => (Proxy::new("conductor"), client, "client".to_owned()),
        };
        let rest: Vec<_> = parts.collect();
        let mut names = vec![name];
        names.extend(rest.iter().map(Part::name));

        // From the agent on. The part next to it says how it has ended.
        let agent_end = agent.transport.into_messages(MAX_MESSAGE_BYTES);
        let mut far = tap(agent_end, &names[rest.len()], &agent.name);
        let mut explain = agent.explain.unwrap_or_else(|| cause.explain());
        let mut tasks = JoinSet::new();
        for (at, part) in rest.into_iter().enumerate().rev() {
            let (before, near) = channel(BETWEEN);
            let near = tap(Box::pin(near), &names[at + 1], &names[at]);
            let ends = [near, std::mem::replace(&mut far, Box::pin(before))];
            let explain = std::mem::replace(&mut explain, cause.explain());
            match part {
                Part::Proxy(proxy) => {
                    let relay = proxy.relay(ends).explain(explain);
                    tasks.spawn(async move { drop(relay.run().await) });
                }
                Part::Program(command) => {
                    let program = Program::start(command, limit)?;
                    tasks.spawn(program.run(ends, cause.clone(), explain));
                }
            }
        }
        let edge = edge.relay([client, far]).explain(explain);
        let end = edge.client_ended(client_ended).stop(self.stop).run().await;
        // The others end with it, for their sides have.
        while tasks.join_next().await.is_some() {}
        Ok(end)
    }
}

impl Proxy {
    /// Runs on standard input and output: before a process of `agent`, or without one as a component of a
    /// conductor, which sends `proxy/initialize`.
    ///
    /// # Errors
    ///
    /// Fails if the agent cannot be started, or standard input and output cannot be used.
    pub async fn serve_stdio(self, agent: Option<AgentCommand>) -> Result<End, ConductorError> {
        let conductor = Conductor::new().proxy(self);
        match agent {
            Some(agent) => conductor.serve_stdio(agent).await,
            None => conductor.serve_as_proxy().await,
        }
    }
}

/// What is behind the last proxy of a chain.
struct Successor {
    name: String,
    transport: Transport,
    /// Says how it has ended; otherwise another part does.
    explain: Option<Explain>,
}
