//! The client and the server of the dialect, with each other.

use std::time::Duration;

use acp_client::{Client, Outcome, Session};
use acp_client_dialects::Chimera;
use acp_sdk::v1::{Cost, StopReason, ToolCallStatus, ToolKind, UsageUpdate};
use acp_sdk::{ConnectionBuilder, HandlerResult, Json};
use acp_server::{Handler, Server, Turn};
use serde_json::json;

use crate::fake::within;

/// An agent that does all that the dialect can show.
struct Script;

impl Handler for Script {
    type State = u32;

    async fn prompt(&self, turns: &mut u32, turn: Turn) -> HandlerResult<StopReason> {
        *turns += 1;
        turn.send_thought("Hm.").await?;
        let call = turn.tool_call("List files", ToolKind::Execute);
        let call = call.raw_input(json!({ "cmd": "ls" })).await?;
        call.complete("a b").await?;
        turn.send_text(format!("{}: ", turn.prompt_text())).await?;
        turn.send_text("done").await?;
        let cost = Cost::new(0.5 * f64::from(*turns), "USD");
        turn.report_usage(UsageUpdate::new(9_u64, 100_u64).with_cost(cost))
            .await?;
        let usage = json!({ "usage": { "totalTokens": 3, "inputTokens": 2, "outputTokens": 1 } });
        turn.set_answer(Json::from(usage));
        Ok(StopReason::EndTurn)
    }
}

async fn outcome(session: &Session, text: &str) -> Outcome {
    let turn = session.prompt(text).await.unwrap();
    within(turn.outcome()).await.unwrap()
}

#[tokio::test]
async fn a_conversation_with_our_own_server_is_whole() {
    let (ours, theirs) = tokio::io::duplex(1 << 16);
    let agent = acp_server_dialects::chimera::Chimera::new(Server::new(Script));
    let serving = ConnectionBuilder::new();
    tokio::spawn(
        serving.agent::<acp_server_dialects::chimera::Chimera, _>(agent, tokio::io::split(theirs)),
    );
    let chimera = Chimera::new().drain_delay(Duration::ZERO);
    let connecting = Client::builder().connect(chimera.connect(tokio::io::split(ours)));
    let client = within(connecting).await.unwrap();
    let session = within(client.new_session("/")).await.unwrap();
    for text in ["one", "two"] {
        let outcome = outcome(&session, text).await;
        assert_eq!(outcome.text, format!("{text}: done"));
        assert_eq!(outcome.thoughts, "Hm.");
        let call = &outcome.tool_calls[0];
        assert_eq!(
            (call.title.as_str(), &call.kind),
            ("List files", &Some(ToolKind::Execute))
        );
        assert_eq!(call.status, Some(ToolCallStatus::Completed));
        assert_eq!(call.raw_input.as_ref().unwrap().get(), r#"{"cmd":"ls"}"#);
        assert_eq!(call.raw_output.as_ref().unwrap().get(), "\"a b\"");
        assert_eq!(outcome.turn_cost.unwrap().amount, 0.5);
        assert_eq!(outcome.tokens.unwrap().output_tokens, 1);
    }
    let fork = within(client.fork_session(session.id().clone(), "/"))
        .await
        .unwrap();
    assert_ne!(fork.id(), session.id());
    assert_eq!(outcome(&fork, "three").await.text, "three: done");
    assert_eq!(outcome(&session, "four").await.text, "four: done");
    within(client.shutdown()).await;
}
