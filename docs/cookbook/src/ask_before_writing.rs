use acp_sdk::v1::{ErrorCode, StopReason};
use acp_server::{Handler, HandlerResult, Turn};

pub struct NoteTaker;

impl Handler for NoteTaker {
    type State = ();

    async fn prompt(&self, _: &mut (), turn: Turn) -> HandlerResult<StopReason> {
        let old = match turn.read_file("notes.txt").await {
            Ok(text) => Some(text),
            Err(error) if error.code() == Some(ErrorCode::RESOURCE_NOT_FOUND) => None,
            Err(error) => return Err(error.into()),
        };
        let new = format!(
            "{}{}\n",
            old.as_deref().unwrap_or_default(),
            turn.prompt_text()
        );
        // Shows the change, asks, writes, and ends the tool call.
        let is_written = turn.edit_file("notes.txt", old.as_deref(), &new).await?;
        let answer = match is_written {
            true => "Noted.",
            false => "I may not write the note.",
        };
        turn.send_text(answer).await?;
        Ok(StopReason::EndTurn)
    }
}
