//! `acp mcp`: agents as tools of MCP hosts.

use std::io::Write as _;
use std::sync::Arc;

use super::answers::Answers;
use super::args::McpArgs;
use super::connect::guarded;
use super::exit::Code;
use super::mcp_agents::{self, Offered};
use super::mcp_http::Http;
use super::opening_failure::OpeningFailure;
use super::stop::Stop;
use super::{complain, open, sandbox};
use acp_client::{AgentCommand, Ask, Error, ExternalAgent, McpError, McpServer, Rules};

/// Serves a host until it disconnects.
pub(super) async fn mcp(args: McpArgs) -> Code {
    let stop = match Stop::listen(None) {
        Ok(stop) => stop,
        Err(error) => {
            complain(format_args!("acp: cannot listen to signals: {error}"));
            return Code::Failed;
        }
    };
    let agents = match agents(&args) {
        Ok(agents) => agents,
        Err(error) => return usage(&error),
    };
    let server = McpServer::new(agents.iter().cloned());
    if let Some(address) = args.http {
        let http = match Http::listen(address, &args).await {
            Ok(http) => http,
            Err(error) => return usage(&error),
        };
        if let Some(token) = http.made_token() {
            complain(format_args!(
                "acp: hosts must send `Authorization: Bearer {token}`. The token ends with this command; \
                 --http-token-file gives one that stays"
            ));
        }
        if let Err(error) = writeln!(std::io::stdout(), "{}", http.url()) {
            return Code::of_lost(error.kind());
        }
        http.serve(&server, stop.cancelled()).await;
        return end(&agents, &stop, Ok(())).await;
    }
    let served = tokio::select! {
        served = server.serve_stdio() => served,
        () = stop.cancelled() => Ok(()),
    };
    end(&agents, &stop, served).await
}

/// Returns the agents, which are started by their first calls.
///
/// # Errors
///
/// Fails when a file, an agent, a directory or the sandbox cannot be used.
fn agents(args: &McpArgs) -> Result<Vec<ExternalAgent>, String> {
    let rules = args.rules.as_deref().map(Rules::read).transpose();
    let rules = rules.map_err(|error| error.to_string())?;
    let answers: Answers<Ask> = match (args.approve_all, args.deny_all) {
        (true, _) => Answers::ApproveAll,
        (_, true) => Answers::DenyAll,
        _ => Answers::Ask {
            ask: None,
            approve_reads: true,
            refusal: "acp mcp allows reading only: use its --approve-all or --rules FILE",
        },
    };
    let rules = rules.unwrap_or_default().fallback(answers);
    let offered = mcp_agents::offered(args)?;
    let external = |offered| external(args, &rules, offered);
    offered.into_iter().map(external).collect()
}

/// Returns one agent.
///
/// # Errors
///
/// Fails when the sandbox cannot be used.
fn external(args: &McpArgs, rules: &Rules, offered: Offered) -> Result<ExternalAgent, String> {
    let allows_all = args.approve_all && args.rules.is_none();
    let Offered {
        agent,
        name,
        description,
        directory,
    } = offered;
    let sandbox = sandbox::prepare(&args.sandbox, &agent, &directory)?;
    let setup = Arc::new((agent, directory.clone()));
    let (verbose, terminals, rules) = (args.verbose, args.terminals, rules.clone());
    let late_updates = args.late_updates.unwrap_or_default();
    let start = move || {
        let builder = guarded(
            open::builder().late_updates(late_updates),
            &rules,
            terminals,
            allows_all,
            sandbox.as_ref(),
        );
        let (setup, sandbox) = (setup.clone(), sandbox.clone());
        async move {
            let (agent, directory) = &*setup;
            let prepare = |command: AgentCommand| {
                let command = command.current_dir(directory).sandbox(sandbox);
                match verbose {
                    true => command.on_stderr(|line| complain(format_args!("agent: {line}"))),
                    false => command,
                }
            };
            let opened = open::client(agent, builder, prepare).await;
            opened.map_err(|failure| match failure {
                OpeningFailure::Error(error) => error,
                OpeningFailure::Session(reason)
                | OpeningFailure::Usage(reason)
                | OpeningFailure::Login(reason) => Error::Spawn {
                    command: agent.identity(),
                    reason,
                },
            })
        }
    };
    let mut agent = ExternalAgent::start_with(start)
        .name(name)
        .directory(&directory)
        .max_concurrent(args.max_concurrent);
    if let Some(description) = description {
        agent = agent.description(description);
    }
    if let Some(timeout) = args.timeout {
        agent = agent.timeout(timeout);
    }
    Ok(agent)
}

async fn end(agents: &[ExternalAgent], stop: &Stop, served: Result<(), McpError>) -> Code {
    // Shuts the agent down gracefully unless the user interrupts again.
    tokio::select! {
        () = cleanup(agents) => {}
        () = stop.ended() => {}
    }
    match (served, stop.reason()) {
        (_, Some(reason)) => Code::of_reason(reason),
        (Ok(()), None) => Code::EndTurn,
        (Err(error), None) => {
            complain(format_args!("acp: {error}"));
            Code::Failed
        }
    }
}

/// Ends all agents at once.
async fn cleanup(agents: &[ExternalAgent]) {
    let mut ending = tokio::task::JoinSet::new();
    for agent in agents {
        let agent = agent.clone();
        ending.spawn(async move { agent.cleanup().await });
    }
    ending.join_all().await;
}

fn usage(error: &dyn std::fmt::Display) -> Code {
    complain(format_args!("acp: {error}"));
    Code::Usage
}
