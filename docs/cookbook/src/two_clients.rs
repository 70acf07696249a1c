use acp_client::{Client, Event, Events, Result, Session};
use acp_sdk::v1::StopReason;

/// Opens a session that another client uses, from now on: its turns are events here.
pub async fn watch(second: &Client, session: &Session, project: &str) -> Result<(Session, Events)> {
    let shared = second.resume_session(session.id().clone(), project).await?;
    let events = shared.events();
    Ok((shared, events))
}

/// Prompts from both sides: the second prompt waits until the first turn has ended.
pub async fn talk(one: &Session, other: &Session) -> Result<[StopReason; 2]> {
    let (first, second) = (
        one.prompt("From the editor").await?,
        other.prompt("From the phone").await?,
    );
    let (first, second) = tokio::try_join!(first.outcome(), second.outcome())?;
    Ok([first.stop_reason, second.stop_reason])
}

/// Returns the next text that somebody else's prompt has led to.
pub async fn next_foreign(events: &mut Events) -> Option<Event> {
    while let Some(event) = events.next().await {
        if event.is_of_another_prompt() {
            return Some(event.event);
        }
    }
    None
}
