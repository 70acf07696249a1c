use acp_sdk::v1::StopReason;
use acp_server::{Handler, HandlerResult, Turn};
use tokio::sync::oneshot;

pub struct Patient;

/// A model that answers when the sender of the channel does.
fn ask_model() -> (oneshot::Sender<String>, oneshot::Receiver<String>) {
    oneshot::channel()
}

impl Handler for Patient {
    type State = ();

    async fn prompt(&self, _: &mut (), turn: Turn) -> HandlerResult<StopReason> {
        let (_model, answer) = ask_model();
        turn.send_text("I think. ").await?;
        tokio::select! {
            text = answer => turn.send_text(text?).await?,
            () = turn.cancelled() => {
                // What was sent before stays in the session. Stop the model's request here.
                turn.send_text("Stopped.").await?;
                return Ok(StopReason::Cancelled);
            }
        }
        Ok(StopReason::EndTurn)
    }
}
