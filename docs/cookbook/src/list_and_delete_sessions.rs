use std::path::Path;

use acp_client::{Client, Result};

/// Deletes the sessions of a project, except the `keep` first ones in the agent's order.
pub async fn tidy(client: &Client, project: &Path, keep: usize) -> Result<Vec<String>> {
    let mut sessions = client.sessions(Some(project))?;
    let mut found = Vec::new();
    while let Some(session) = sessions.next().await? {
        found.push(session.session_id);
    }
    let mut deleted = Vec::new();
    for id in found.into_iter().skip(keep) {
        client.delete_session(id.clone()).await?;
        deleted.push(id.to_string());
    }
    Ok(deleted)
}
