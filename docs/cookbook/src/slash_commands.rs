use acp_sdk::v1::{AvailableCommand, StopReason, UnstructuredCommandInput};
use acp_server::{Handler, HandlerResult, Opening, Settings, Turn};

pub struct Reviewer;

impl Handler for Reviewer {
    type State = ();

    async fn open(&self, _: &mut (), _: &Opening) -> HandlerResult<Settings> {
        let review = AvailableCommand::new("review", "Reviews a commit")
            .with_input(UnstructuredCommandInput::new("commit"));
        Ok(Settings::new().commands(vec![review]))
    }

    async fn prompt(&self, _: &mut (), turn: Turn) -> HandlerResult<StopReason> {
        let text = turn.prompt_text();
        let answer = match text.split_once(' ').unwrap_or((&text, "")) {
            ("/review", "") => "Which commit?".to_owned(),
            ("/review", commit) => format!("I review {}.", commit.trim()),
            _ => "Write /review and a commit.".to_owned(),
        };
        turn.send_text(answer).await?;
        Ok(StopReason::EndTurn)
    }
}
