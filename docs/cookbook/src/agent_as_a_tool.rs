use std::path::Path;
use std::time::Duration;

use acp_client::{AgentCommand, Client, ExternalAgent, Policy, Result, Workspace};

/// A tool for your model: `tool_name`, `tool_description` and `input_schema` describe it.
pub fn reviewer(agent: AgentCommand, project: &Path) -> ExternalAgent {
    let connect = move || {
        let builder = Client::builder()
            .workspace(Workspace::new())
            .permissions(Policy::ApproveReads);
        builder.spawn(agent.clone())
    };
    ExternalAgent::start_with(connect)
        .name("reviewer")
        .description("Reviews changes of this project.")
        .directory(project)
        .timeout(Duration::from_secs(300))
}

/// Calls run side by side, each in a session of its own.
pub async fn review(tool: &ExternalAgent, commits: [&str; 2]) -> Result<[String; 2]> {
    let calls = commits.map(|commit| tool.call(format!("Review {commit}.")).into_future());
    let [first, second] = calls;
    let (first, second) = tokio::try_join!(first, second)?;
    Ok([first.text, second.text])
}
