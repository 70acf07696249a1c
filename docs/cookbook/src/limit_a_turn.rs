use std::time::Duration;

use acp_client::{Event, Outcome, Result, Session};
use acp_sdk::v1::SessionUpdate;

/// Cancels the turn after a time, or once the session has cost more than `budget`.
pub async fn ask(session: &Session, text: &str, time: Duration, budget: f64) -> Result<Outcome> {
    let mut turn = session.prompt(text).await?;
    let limited = async {
        while let Some(event) = turn.next().await {
            let Event::Update(SessionUpdate::UsageUpdate(usage)) = &event.event else {
                continue;
            };
            if usage.cost.as_ref().is_some_and(|cost| cost.amount > budget) {
                return false;
            }
        }
        true
    };
    // Not in time, or too dear.
    if !tokio::time::timeout(time, limited).await.unwrap_or(false) {
        turn.cancel();
    }
    turn.outcome().await
}
