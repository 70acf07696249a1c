//! The agents that `acp mcp` offers: one of the command line, or those of a file.

use std::path::{Path, PathBuf};

use acp_client::agents_file::directory;
use acp_sdk::text::agent_name;

use super::agents::Agents;
use super::args::{AgentArgs, McpArgs};
use super::launch::Launch;

/// Members of a file of agents for which a call has no use.
const NOT_OF_CALLS: [&str; 3] = ["model", "mode", "options"];

/// An agent and the tool that it becomes.
#[derive(Debug)]
pub(super) struct Offered {
    pub(super) agent: AgentArgs,
    pub(super) name: String,
    pub(super) description: Option<String>,
    pub(super) directory: PathBuf,
}

/// Returns the agents that the arguments name.
///
/// # Errors
///
/// Fails when one is not configured, a directory is missing, or the file of agents is wrong. The
/// message names it.
pub(super) fn offered(args: &McpArgs) -> Result<Vec<Offered>, String> {
    // Reports wrong usage immediately instead of in the first call.
    let here = directory(args.cwd.as_deref().unwrap_or(Path::new(".")))?;
    let Some(file) = &args.agent.file else {
        return Ok(vec![one(args, &here)?]);
    };
    let wrong = |reason: String| format!("cannot use {}: {reason}", file.display());
    if let Some(found) = &args.agent.found {
        return Ok(vec![entry(args, (**found).clone(), &here).map_err(wrong)?]);
    }
    let agents = Agents::read(Some(file))?;
    let offered = agents
        .of_file()
        .map(|name| entry(args, agents.launch(name)?, &here).map_err(wrong));
    offered.collect()
}

fn one(args: &McpArgs, here: &Path) -> Result<Offered, String> {
    let launch = match args.agent.remote.url {
        Some(_) => None,
        None => Some(args.agent.launch()?),
    };
    let name = match (&args.name, &args.agent.name, launch) {
        (Some(name), ..) => name.clone(),
        (None, Some(agent), _) => tool_name(agent),
        (None, None, Some(launch)) => {
            let program = Path::new(&launch.program).file_stem();
            tool_name(&program.unwrap_or_default().to_string_lossy())
        }
        (None, None, None) => tool_name(""),
    };
    Ok(Offered {
        agent: args.agent.clone(),
        name,
        description: args.description.clone(),
        directory: here.to_owned(),
    })
}

/// Returns an agent of the file, or a configured one that was named beside it.
fn entry(args: &McpArgs, mut launch: Launch, here: &Path) -> Result<Offered, String> {
    let directory = launch.directory(here)?.unwrap_or_else(|| here.to_owned());
    let Some(entry) = &mut launch.entry else {
        return one(args, here);
    };
    if let Some(member) = entry.refuse(&NOT_OF_CALLS) {
        return Err(format!(
            "agent `{}`: member `{member}`: `acp mcp` cannot set it; `acp run` and `acp-server serve` can",
            entry.name
        ));
    }
    entry.directory = Some(directory.clone());
    let description = args.description.as_ref().or(entry.description.as_ref());
    Ok(Offered {
        name: args.name.as_ref().unwrap_or(&entry.name).clone(),
        description: description.cloned(),
        directory,
        agent: AgentArgs {
            name: Some(entry.name.clone()),
            found: Some(Box::new(launch.clone())),
            ..args.agent.clone()
        },
    })
}

/// Derives a tool name from an agent's name.
fn tool_name(name: &str) -> String {
    let accepted = |c| if agent_name::may_have(c) { c } else { '_' };
    let name: String = name
        .chars()
        .map(accepted)
        .take(agent_name::LONGEST)
        .collect();
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
        assert_eq!(tool_name(&"x".repeat(100)).len(), agent_name::LONGEST);
    }
}
