use acp_client::{Result, Session, Steered};
use acp_sdk::v1::StopReason;
use acp_server::{AgentInfo, Handler, HandlerResult, Turn};

pub struct Steerable;

impl Handler for Steerable {
    type State = ();

    fn info(&self) -> AgentInfo {
        AgentInfo::new("steerable", "0.1.0").steering()
    }

    async fn prompt(&self, _: &mut (), turn: Turn) -> HandlerResult<StopReason> {
        turn.send_text("I use the first file. ").await?;
        // `steered_now` takes what waits between two steps; `steered` waits for it.
        let input = turn.steered().await?;
        turn.send_text(format!("Then: {}", input.text())).await?;
        Ok(StopReason::EndTurn)
    }
}

/// The client's side: to the running turn, and as a prompt of its own if no turn takes it.
pub async fn correct(session: &Session, text: &str) -> Result<bool> {
    let steered = session.steer_or_queue(text).await?;
    Ok(matches!(steered, Steered::Injected))
}
