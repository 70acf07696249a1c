//! What a client is told of a session right after it has learned that the session is open.

use acp_sdk::v1::{AgentContext, AvailableCommandsUpdate, SessionUpdate};

use crate::session::Session;

/// Tells the client of the session's slash commands once the request is answered: before the
/// answer it may not know the session, and would throw the update away.
pub(super) fn commands(cx: &AgentContext, session: &Session) {
    if session.set(|settings| settings.available_commands().is_empty()) {
        return;
    }
    let answered = cx.answered();
    let (session, client) = (session.clone(), cx.client().clone());
    tokio::spawn(async move {
        answered.await;
        // Read under the wire, for a turn may have replaced them since.
        let mut wire = session.wire().await;
        let commands = session.set(|settings| settings.available_commands().to_vec());
        let update = AvailableCommandsUpdate::new(commands);
        let update = SessionUpdate::AvailableCommandsUpdate(update);
        // If it fails, the connection has ended, and nobody wants to know.
        let _ = wire.mention(&session, &client, &update).await;
    });
}
