//! Asking the user through any attached client.

use std::sync::Arc;

use super::TurnCore;
use crate::session::{Ask, Reply};
use crate::{Error, Result};

/// Asks, and waits for the first answer.
pub(super) async fn ask(core: &Arc<TurnCore>, ask: Ask) -> Result<Reply> {
    if core.cancel.is_cancelled() {
        return Err(Error::Cancelled);
    }
    let decided = tokio::select! {
        biased;
        () = core.cancel.cancelled() => return Err(Error::Cancelled),
        decided = core.session.decided(&ask) => decided,
    };
    if let Some(decided) = decided {
        return core.append_decided(ask, decided).await;
    }
    let undecided = core.session.undecided(&ask);
    let (withdrawn, reply) = core.append_question(ask).await?;
    let reply = tokio::select! {
        biased;
        () = core.cancel.cancelled() => return Err(Error::Cancelled),
        reply = core.session.reply_in_time(&withdrawn, reply) => {
            let (reply, cancels) = reply?;
            if cancels {
                core.cancel.cancel();
            }
            reply
        }
    };
    core.session.tell_rules(undecided, &reply).await;
    Ok(reply)
}
