use acp_sdk::v1::StopReason;
use acp_server::{Handler, HandlerResult, Server, Turn};

pub struct Echo;

impl Handler for Echo {
    type State = ();

    async fn prompt(&self, _: &mut (), turn: Turn) -> HandlerResult<StopReason> {
        turn.set_title("Echo agent session").await?;
        for block in turn.prompt() {
            turn.send_content(block.clone()).await?;
        }
        Ok(StopReason::EndTurn)
    }
}

/// Versions 1 and 2.
pub async fn main() -> acp_sdk::Result<()> {
    Server::new(Echo).serve_stdio().await
}
