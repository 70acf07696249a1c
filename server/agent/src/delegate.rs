//! Other agents as tools.

use std::path::PathBuf;

use acp_client::{AgentCommand, ClientBuilder};
use acp_sdk::v1::{StopReason, ToolKind};
use acp_server_host::Delegate as _;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::tool::{NAMES, is_name};
use crate::{Call, Output, Risk, Tool, ToolOutcome};

/// How deep this process is: how many agents have started one another.
const DEPTH: &str = "ACP_AGENT_DEPTH";

/// Agents that may start one another.
const DEEPEST: u32 = 3;

/// Time of a task; the user can cancel it.
const LONGEST: std::time::Duration = std::time::Duration::from_secs(24 * 3600);

/// An agent of the protocol that does tasks.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DelegateTo {
    /// The tool is `agent_NAME`: letters, digits, `_` and `-`.
    pub name: String,
    /// What the agent is good at, for the model.
    pub description: String,
    /// The command that starts it, and its arguments.
    pub command: Vec<String>,
    /// Where it is started (default: the directory of this process).
    #[serde(default)]
    pub workdir: Option<PathBuf>,
}

#[derive(Deserialize, JsonSchema)]
struct Task {
    /// The whole task. The other agent knows nothing of this conversation.
    task: String,
}

/// Returns the tool `agent_NAME`, which starts the agent for one task in the session's directory. What it does is
/// a child session; its questions are asked of the user; a cancelled turn cancels it. `None` if three agents have
/// started one another already.
///
/// # Errors
///
/// If the name is no name of a tool, or the command is empty.
pub fn delegate(to: DelegateTo) -> Result<Option<Tool>, String> {
    let name = format!("agent_{}", to.name);
    if !is_name(&name) {
        return Err(format!(
            "the tool of an agent is called {name:?}: a name has {NAMES}"
        ));
    }
    if to.command.is_empty() {
        return Err(format!("the agent {} has no command", to.name));
    }
    let depth = std::env::var(DEPTH)
        .ok()
        .and_then(|depth| depth.parse().ok());
    let depth: u32 = depth.unwrap_or(0);
    if depth >= DEEPEST {
        return Ok(None);
    }
    let title = format!("Delegate to {}", to.name);
    let description = format!(
        "Has another agent do a task, and returns what it says. {}",
        to.description
    );
    let tool = Tool::new(name, description, move |task: Task, call: Call| {
        let to = to.clone();
        async move { run(&to, depth, task.task, &call).await }
    });
    Ok(Some(
        tool.kind(ToolKind::Other)
            .risk(Risk::Acts)
            .timeout(LONGEST)
            .shown(move |_| title.clone(), |_| Vec::new()),
    ))
}

async fn run(to: &DelegateTo, depth: u32, task: String, call: &Call) -> ToolOutcome {
    let (program, arguments) = to
        .command
        .split_first()
        .ok_or_else(|| crate::ToolError::failed(format!("the agent {} has no command", to.name)))?;
    let mut command = AgentCommand::new(program)
        .args(arguments)
        .env(DEPTH, (depth + 1).to_string())
        .end_with_host();
    if let Some(directory) = &to.workdir {
        command = command.current_dir(directory);
    }
    let connect = |builder: ClientBuilder| builder.spawn(command);
    let done = call
        .turn()
        .delegate_to_child(to.name.as_str(), connect, task)
        .await?;
    Ok(match done.stop_reason {
        StopReason::EndTurn => done.text.into(),
        other => Output::error(format!(
            "{}\n[The agent stopped: {}]",
            done.text,
            other.as_str()
        )),
    })
}
