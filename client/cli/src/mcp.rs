//! `acp mcp`: an agent as a tool of MCP hosts.

#[cfg(feature = "mcp")]
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::args::McpArgs;
use super::connect::guarded;
use super::exit::Code;
use super::launch::Launch;
#[cfg(feature = "mcp")]
use super::mcp_http::Http;
use super::opening::Failure;
use super::stop::Stop;
use super::{complain, open, sandbox};
use acp_client::AgentCommand;
use acp_client::Error;
use acp_client::ExternalAgent;
use acp_client::{McpError, McpServer};
use acp_client::{Policy, Rules};

/// Maximum length of a tool name that hosts accept, in bytes.
const LONGEST_NAME: usize = 64;

/// Serves a host until it disconnects.
pub(super) async fn mcp(args: McpArgs) -> Code {
    let rules = match args.rules.as_deref().map(Rules::read).transpose() {
        Ok(rules) => rules.unwrap_or_default(),
        Err(error) => return usage(&error),
    };
    let allows_all = args.approve_all && args.rules.is_none();
    let policy = match (args.approve_all, args.deny_all) {
        (true, _) => Policy::ApproveAll,
        (_, true) => Policy::DenyAll,
        _ => Policy::ApproveReads,
    };
    let directory = args.cwd.clone().unwrap_or_else(|| PathBuf::from("."));
    // Reports wrong usage immediately instead of in the first call.
    let directory = match directory.canonicalize() {
        Ok(directory) if directory.is_dir() => directory,
        Ok(_) => return usage(&format_args!("{} is not a directory", directory.display())),
        Err(error) => return usage(&format_args!("cannot use {}: {error}", directory.display())),
    };
    let stop = match Stop::listen(None) {
        Ok(stop) => stop,
        Err(error) => {
            complain(format_args!("acp: cannot listen to signals: {error}"));
            return Code::Failed;
        }
    };
    let rules = rules.fallback(policy);
    let name = match tool_name_of(&args) {
        Ok(name) => name,
        Err(error) => return usage(&error),
    };
    let sandbox = match sandbox::prepare(&args.sandbox, &args.agent, &directory) {
        Ok(sandbox) => sandbox,
        Err(error) => return usage(&error),
    };
    let setup = Arc::new((args.agent.clone(), directory.clone()));
    let (verbose, terminals) = (args.verbose, args.terminals);
    let start = move || {
        let builder = guarded(
            open::builder(),
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
                Failure::Error(error) => error,
                Failure::Session(reason) | Failure::Usage(reason) | Failure::Login(reason) => {
                    Error::Spawn {
                        command: agent.identity(),
                        reason,
                    }
                }
            })
        }
    };
    let mut agent = ExternalAgent::start_with(start)
        .name(name)
        .directory(&directory)
        .max_concurrent(args.max_concurrent);
    if let Some(description) = &args.description {
        agent = agent.description(description);
    }
    if let Some(timeout) = args.timeout {
        agent = agent.timeout(timeout);
    }
    #[cfg(feature = "mcp")]
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
        http.serve(agent.clone(), stop.cancelled()).await;
        return end(&agent, &stop, Ok(())).await;
    }
    let served = tokio::select! {
        served = McpServer::new(agent.clone()).serve_stdio() => served,
        () = stop.cancelled() => Ok(()),
    };
    end(&agent, &stop, served).await
}

async fn end(agent: &ExternalAgent, stop: &Stop, served: Result<(), McpError>) -> Code {
    // Shuts the agent down gracefully unless the user interrupts again.
    tokio::select! {
        () = agent.cleanup() => {}
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

/// Returns the name of the tool.
///
/// # Errors
///
/// Fails when the agent is not configured, or cannot be started.
fn tool_name_of(args: &McpArgs) -> Result<String, String> {
    // Reports wrong usage immediately instead of in the first call.
    let launch = match args.agent.remote.url {
        Some(_) => None,
        None => Some(Launch::of(&args.agent)?),
    };
    Ok(match (&args.name, &args.agent.name, launch) {
        (Some(name), ..) => name.clone(),
        (None, Some(agent), _) => tool_name(agent),
        (None, None, Some(launch)) => {
            let program = Path::new(&launch.program).file_stem();
            tool_name(&program.unwrap_or_default().to_string_lossy())
        }
        (None, None, None) => tool_name(""),
    })
}

fn usage(error: &dyn std::fmt::Display) -> Code {
    complain(format_args!("acp: {error}"));
    Code::Usage
}

/// Derives a tool name from an agent's name: hosts accept letters, digits, `_` and `-`.
fn tool_name(name: &str) -> String {
    let accepted = |c: char| match c {
        c if c.is_ascii_alphanumeric() || c == '-' => c,
        _ => '_',
    };
    let name: String = name.chars().map(accepted).take(LONGEST_NAME).collect();
    match name.is_empty() {
        true => "agent".to_owned(),
        false => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tool_is_named_after_the_agent() {
        for (agent, name) in [
            ("opencode", "opencode"),
            ("codex-acp", "codex-acp"),
            ("x y", "x_y"),
            ("", "agent"),
            ("é", "_"),
        ] {
            assert_eq!(tool_name(agent), name);
        }
        assert_eq!(tool_name(&"x".repeat(100)).len(), LONGEST_NAME);
    }
}
