use acp_conformance::AgentTest;
use acp_sdk::v1::StopReason;
use acp_server::{Handler, HandlerResult, Link, Server, Turn};

pub struct Echo;

impl Handler for Echo {
    type State = ();

    async fn prompt(&self, _: &mut (), turn: Turn) -> HandlerResult<StopReason> {
        turn.send_text(turn.prompt_text()).await?;
        Ok(StopReason::EndTurn)
    }
}

/// In a `#[test]`: `assert_conformant(agent())`. Without `only` it is the whole suite.
pub fn agent() -> AgentTest {
    AgentTest::new(|| Server::new(Echo).connection(Link::Stdio)).only([
        "initialization",
        "prompt-turn",
        "jsonrpc",
    ])
}
