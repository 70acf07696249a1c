use std::path::Path;

use acp_client::{Client, Outcome, Result, Session};

/// Tries another question in a copy; the session itself does not know of it.
pub async fn what_if(
    client: &Client,
    session: &Session,
    project: &Path,
    text: &str,
) -> Result<Outcome> {
    let copy = client.fork_session(session.id().clone(), project).await?;
    let outcome = copy.prompt(text).await?.outcome().await?;
    copy.close().await?;
    Ok(outcome)
}
