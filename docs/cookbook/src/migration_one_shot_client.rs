use acp_client::{AgentCommand, Client, Event, Policy, Result};
use acp_sdk::v1::{SessionUpdate, StopReason};

/// Runs one prompt, shows each update, and allows everything, once if the agent offers that.
pub async fn one_shot(
    agent: AgentCommand,
    prompt: &str,
    mut show: impl FnMut(&SessionUpdate),
) -> Result<StopReason> {
    let builder = Client::builder().permissions(Policy::ApproveAll);
    let client = builder.spawn(agent).await?;
    let session = client.new_session(".").await?;
    let mut turn = session.prompt(prompt).await?;
    while let Some(event) = turn.next().await {
        if let Event::Update(update) = &event.event {
            show(update);
        }
    }
    let outcome = turn.outcome().await?;
    client.shutdown().await;
    Ok(outcome.stop_reason)
}
