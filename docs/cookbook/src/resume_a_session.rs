use std::path::Path;

use acp_client::{Client, Event, LiveConversation, Result, Session};
use acp_server::store::{SqliteStore, StoreError};
use acp_server::{Handler, Server};

/// The agent's side: sessions that outlive its process.
pub fn keeping(handler: impl Handler, file: &Path) -> std::result::Result<Server, StoreError> {
    Ok(Server::builder(handler)
        .store(SqliteStore::open(file)?)
        .build())
}

/// The editor's side: opens the session of the last run, and rebuilds its panel.
pub async fn reopen(
    client: &Client,
    id: &str,
    project: &Path,
) -> Result<(Session, LiveConversation)> {
    let session = client.load_session(id, project).await?;
    let mut panel = session.conversation();
    while let Some(step) = panel.next().await {
        if matches!(step.event.event, Event::HistoryEnd) {
            break;
        }
    }
    Ok((session, panel))
}
