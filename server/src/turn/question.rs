//! Asking the user through any attached client.

use std::sync::Arc;

use super::TurnCore;
use crate::session::{Ask, Reply, answered};
use crate::{Error, Result};

/// Asks, and waits for the first answer.
pub(super) async fn ask(core: &Arc<TurnCore>, ask: Ask) -> Result<Reply> {
    if core.cancel.is_cancelled() {
        return Err(Error::Cancelled);
    }
    let (withdrawn, reply) = core.append_question(ask).await?;
    let _withdrawn = withdrawn;
    tokio::select! {
        biased;
        () = core.cancel.cancelled() => Err(Error::Cancelled),
        reply = reply => answered(reply),
    }
}
