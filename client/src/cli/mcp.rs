//! `acp mcp`: an agent as a tool of MCP hosts.

use std::path::{Path, PathBuf};

use super::args::{McpArgs, Offered};
use super::complain;
use super::exit::Code;
use super::stop::Stop;
use crate::client::Client;
use crate::external::ExternalAgent;
use crate::mcp::McpServer;
use crate::permission::{Policy, Rules};
use crate::process::AgentCommand;
use crate::workspace::Workspace;

/// The longest name of a tool that hosts accept, in bytes.
const LONGEST_NAME: usize = 64;

/// Serves a host until it leaves.
pub(super) async fn mcp(args: McpArgs) -> Code {
    let rules = match args.rules.as_deref().map(Rules::read).transpose() {
        Ok(rules) => rules.unwrap_or_default(),
        Err(error) => return usage(&error),
    };
    let policy = match (args.approve_all, args.deny_all) {
        (true, _) => Policy::ApproveAll,
        (_, true) => Policy::DenyAll,
        _ => Policy::ApproveReads,
    };
    let may_approve = args.approve_all || rules.may_approve();
    let directory = args.cwd.clone().unwrap_or_else(|| PathBuf::from("."));
    // An error of usage now, not in the first call.
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
    let mut words = args.agent.clone().into_iter();
    let program = words.next().unwrap_or_default();
    let name = args
        .name
        .clone()
        .unwrap_or_else(|| tool_name(Path::new(&program)));
    let (arguments, cwd) = (words.collect::<Vec<_>>(), directory.clone());
    let verbose = args.verbose;
    let start = move || {
        let mut command = AgentCommand::new(&program)
            .args(&arguments)
            .current_dir(&cwd);
        if verbose {
            command = command.on_stderr(|line| complain(format_args!("agent: {line}")));
        }
        let builder = Client::builder().permissions(rules.clone());
        let workspace = workspace(may_approve, args.terminals);
        async move { builder.workspace(workspace).spawn(command).await }
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
    let served = tokio::select! {
        served = McpServer::new(agent.clone()).serve_stdio() => served,
        () = stop.cancelled() => Ok(()),
    };
    // Ends the agent in steps, unless somebody insists.
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

fn workspace(may_approve: bool, terminals: Offered) -> Workspace {
    let mut workspace = Workspace::new();
    if !may_approve {
        workspace = workspace.read_only();
    }
    if terminals == Offered::No {
        workspace = workspace.without_terminals();
    }
    workspace
}

fn usage(error: &dyn std::fmt::Display) -> Code {
    complain(format_args!("acp: {error}"));
    Code::Usage
}

/// Makes the name of a tool of the name of a program: hosts accept letters, digits, `_` and `-`.
fn tool_name(program: &Path) -> String {
    let name = program.file_stem().unwrap_or_default().to_string_lossy();
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
    fn the_tool_is_named_after_the_program() {
        for (program, name) in [
            ("opencode", "opencode"),
            ("/usr/bin/codex-acp", "codex-acp"),
            ("C:/x y.exe", "x_y"),
            ("", "agent"),
            ("é", "_"),
        ] {
            assert_eq!(tool_name(Path::new(program)), name);
        }
        assert_eq!(tool_name(Path::new(&"x".repeat(100))).len(), LONGEST_NAME);
    }
}
