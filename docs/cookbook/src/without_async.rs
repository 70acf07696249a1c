use std::path::Path;

use acp_client::blocking::Client;
use acp_client::{AgentCommand, Event, Policy, Result, Workspace};
use acp_sdk::v1::{SessionUpdate, StopReason};

/// Prompts an agent from a program without async.
pub fn ask(
    agent: AgentCommand,
    project: &Path,
    text: &str,
    mut show: impl FnMut(String),
) -> Result<StopReason> {
    let builder = acp_client::Client::builder()
        .workspace(Workspace::new())
        .permissions(Policy::ApproveReads);
    let client = Client::spawn(builder, agent)?;
    let session = client.new_session(project)?;
    let mut turn = session.prompt(text)?;
    for event in turn.by_ref() {
        match event.event {
            Event::Update(SessionUpdate::ToolCall(call)) => show(call.title),
            Event::Permission(answered) => show(format!("permission: {:?}", answered.outcome)),
            _ => {}
        }
    }
    let outcome = turn.outcome()?;
    show(outcome.text);
    client.shutdown();
    Ok(outcome.stop_reason)
}
