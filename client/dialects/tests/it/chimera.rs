//! What the client makes of an agent's messages. The agents do what those of the tests of Chimera's client do:
//! their notifications name no session, and their answer to a message is empty.

use std::time::Duration;

use acp_client::{Client, Error, Event, ExternalAgent, Outcome, Session};
use acp_client_dialects::Chimera;
use acp_sdk::v1::{
    ContentBlock, ErrorCode, ImageContent, McpServer, McpServerStdio, NewSessionRequest,
    SessionUpdate, StopReason, ToolCallStatus, ToolKind,
};
use serde_json::{Value, json};

use crate::fake::{self, notification, result, session, within};

fn chunk(text: &str) -> Value {
    notification("agent/messageChunk", json!({ "text": text }))
}

async fn outcome(session: &Session) -> Outcome {
    let turn = session.prompt("test").await.unwrap();
    within(turn.outcome()).await.unwrap()
}

#[tokio::test]
async fn a_message_has_the_text_of_its_chunks() {
    let answers = vec![vec![chunk("Hello "), chunk("world"), result(json!({}))]];
    let (_client, session, mut received) = session(answers).await;
    let outcome = outcome(&session).await;
    assert_eq!(outcome.text, "Hello world");
    assert_eq!(outcome.stop_reason, StopReason::EndTurn);
    let expected = json!({ "session_id": "s1", "message": "test" });
    assert_eq!(
        received.recv().await.unwrap(),
        ("session/sendMessage".to_owned(), expected)
    );
}

#[tokio::test]
async fn chunks_arrive_while_the_message_runs() {
    let (_client, session, _received) = session(vec![vec![chunk("hi")]]).await;
    let mut turn = session.prompt("test").await.unwrap();
    let event = within(turn.next()).await.unwrap().event;
    let Event::Update(SessionUpdate::AgentMessageChunk(chunk)) = event else {
        panic!("{event:?}");
    };
    assert_eq!(chunk.content, ContentBlock::from("hi"));
}

#[tokio::test]
async fn thoughts_are_no_text() {
    let thought = notification("agent/thoughtChunk", json!({ "text": "I need to think" }));
    let (_client, session, _received) = session(vec![vec![thought, result(json!({}))]]).await;
    let outcome = outcome(&session).await;
    assert_eq!(
        (outcome.thoughts.as_str(), outcome.text.as_str()),
        ("I need to think", "")
    );
}

#[tokio::test]
async fn a_tool_call_runs_and_completes_or_fails() {
    let start = |id: &str| {
        let params = json!({
            "tool_call_id": id, "title": "bash", "tool_kind": "shell", "raw_input": "{\"cmd\":\"ls\"}"
        });
        notification("agent/toolCallStart", params)
    };
    let complete = |params: Value| notification("agent/toolCallComplete", params);
    let bare = notification("agent/toolCallStart", json!({ "tool_call_id": "tc4" }));
    let answers = vec![vec![
        start("tc1"),
        complete(json!({ "tool_call_id": "tc1", "output": "done", "is_error": false })),
        start("tc2"),
        complete(json!({ "tool_call_id": "tc2", "output": "no such file", "is_error": true })),
        start("tc3"),
        bare,
        complete(json!({ "tool_call_id": "tc4" })),
        result(json!({})),
    ]];
    let (_client, session, _received) = session(answers).await;
    let calls = outcome(&session).await.tool_calls;
    let found: Vec<_> = calls
        .iter()
        .map(|call| {
            let output = call.raw_output.as_ref().map(|output| output.get());
            (
                call.tool_call_id.as_str(),
                call.title.as_str(),
                call.status.clone(),
                output,
            )
        })
        .collect();
    let completed = Some(ToolCallStatus::Completed);
    let expected = [
        ("tc1", "bash", completed.clone(), Some("\"done\"")),
        (
            "tc2",
            "bash",
            Some(ToolCallStatus::Failed),
            Some("\"no such file\""),
        ),
        ("tc3", "bash", Some(ToolCallStatus::InProgress), None),
        ("tc4", "tc4", completed, None),
    ];
    assert_eq!(found, expected);
    assert_eq!(calls[0].kind, Some(ToolKind::Unknown("shell".to_owned())));
    assert_eq!(
        calls[0].raw_input.as_ref().unwrap().get(),
        r#"{"cmd":"ls"}"#
    );
}

#[tokio::test]
async fn cost_and_tokens_are_those_of_the_message() {
    let usage = |params: Value| notification("agent/usageUpdate", params);
    let answers = vec![
        vec![
            usage(json!({ "total_cost": 0.01, "input_tokens": 1000 })),
            usage(json!({ "total_cost": 0.05, "output_tokens": 500 })),
            result(json!({})),
        ],
        vec![result(json!({}))],
        vec![usage(json!({ "total_cost": 0.25 })), result(json!({}))],
    ];
    let (_client, session, _received) = session(answers).await;
    let first = outcome(&session).await;
    let tokens = first.tokens.unwrap();
    assert_eq!((tokens.input_tokens, tokens.output_tokens), (1000, 500));
    let cost = first.turn_cost.clone().unwrap();
    assert_eq!((cost.amount, cost.currency.as_str()), (0.05, "USD"));
    let second = outcome(&session).await;
    assert_eq!((second.tokens, second.cost()), (None, None));
    let third = outcome(&session).await;
    assert_eq!(third.cost().unwrap().amount, 0.3, "that of the session");
    assert_eq!(third.turn_cost.unwrap().amount, 0.25);
}

#[tokio::test]
async fn a_fork_is_a_session_of_its_own() {
    let answers = vec![
        vec![result(json!({ "session_id": "s2" }))],
        vec![chunk("of the fork"), result(json!({}))],
    ];
    let (client, session, mut received) = session(answers).await;
    let fork = within(client.fork_session(session.id().clone(), "/"))
        .await
        .unwrap();
    assert_eq!(fork.id().as_str(), "s2");
    let (method, params) = received.recv().await.unwrap();
    assert_eq!(
        (method.as_str(), params),
        ("session/fork", json!({ "session_id": "s1" }))
    );
    assert_eq!(outcome(&fork).await.text, "of the fork");
    assert_eq!(received.recv().await.unwrap().1["session_id"], "s2");
}

#[tokio::test]
async fn an_error_of_the_agent_fails_the_turn_only() {
    let error = |code: i32| json!({ "error": { "code": code, "message": "bad", "data": [1] } });
    let answers = vec![
        vec![error(-1)],
        vec![error(-32000)],
        vec![chunk("well"), result(json!({}))],
    ];
    let (_client, session, _received) = session(answers).await;
    for expected in [ErrorCode::from(-1), ErrorCode::INTERNAL_ERROR] {
        let turn = session.prompt("test").await.unwrap();
        let error = within(turn.outcome()).await.unwrap_err();
        let Error::Sdk(acp_sdk::Error::Response { error, .. }) = &error else {
            panic!("{error}");
        };
        assert_eq!((error.code, error.message.as_str()), (expected, "bad"));
        assert_eq!(error.data.as_ref().unwrap().get(), "[1]");
    }
    assert_eq!(outcome(&session).await.text, "well");
}

#[tokio::test(start_paused = true)]
async fn notifications_after_the_answer_belong_to_the_message() {
    let late = [result(json!({})), chunk("late"), usage(7)];
    let (client, _received) = fake::client(Chimera::new(), vec![late.to_vec()]).await;
    let session = within(client.new_session("/")).await.unwrap();
    let outcome = outcome(&session).await;
    assert_eq!(outcome.text, "late");
    assert_eq!(outcome.tokens.unwrap().input_tokens, 7);
    assert!(outcome.elapsed >= Duration::from_millis(100));
}

fn usage(tokens: u64) -> Value {
    notification("agent/usageUpdate", json!({ "input_tokens": tokens }))
}

#[tokio::test]
async fn notifications_between_messages_are_events_of_the_session() {
    let answers = vec![
        vec![result(json!({}))],
        vec![chunk("later"), result(json!({ "session_id": "s2" }))],
    ];
    let (client, session, _received) = session(answers).await;
    let mut events = session.events();
    assert_eq!(outcome(&session).await.text, "");
    within(client.fork_session(session.id().clone(), "/"))
        .await
        .unwrap();
    loop {
        let event = within(events.next()).await.unwrap().event;
        if let Event::Update(SessionUpdate::AgentMessageChunk(chunk)) = event {
            assert_eq!(chunk.content, ContentBlock::from("later"));
            break;
        }
    }
}

#[tokio::test]
async fn a_notification_that_names_a_session_belongs_to_it() {
    let named = json!({ "session_id": "s1", "text": "of the first" });
    let answers = vec![
        vec![result(json!({ "session_id": "s2" }))],
        vec![
            notification("agent/messageChunk", named),
            chunk("of the second"),
            result(json!({})),
        ],
    ];
    let (client, first, _received) = session(answers).await;
    let mut events = first.events();
    let second = within(client.new_session("/")).await.unwrap();
    assert_eq!(outcome(&second).await.text, "of the second");
    let event = within(events.next()).await.unwrap().event;
    let Event::Update(SessionUpdate::AgentMessageChunk(chunk)) = event else {
        panic!("{event:?}");
    };
    assert_eq!(chunk.content, ContentBlock::from("of the first"));
}

#[tokio::test]
async fn the_agent_gets_one_message_at_a_time() {
    let answers = vec![
        vec![result(json!({ "session_id": "s2" }))],
        vec![chunk("one")],
    ];
    let (client, first, mut received) = session(answers).await;
    let second = within(client.new_session("/")).await.unwrap();
    received.recv().await.unwrap();
    let mut running = first.prompt("first").await.unwrap();
    within(running.next()).await.unwrap();
    // It waits for the other session's message, so cancelling it ends nothing.
    let waiting = second.prompt("second").await.unwrap();
    waiting.cancel();
    let cancelled = within(waiting.outcome()).await.unwrap();
    assert_eq!(cancelled.stop_reason, StopReason::Cancelled);
    assert_eq!(received.recv().await.unwrap().1["session_id"], "s1");
    assert!(received.try_recv().is_err());
    drop(running);
}

#[tokio::test]
async fn a_cancelled_turn_closes_the_connection() {
    let (client, session, mut received) = session(vec![vec![chunk("part")]]).await;
    let mut turn = session.prompt("test").await.unwrap();
    within(turn.next()).await.unwrap();
    turn.cancel();
    let outcome = within(turn.outcome()).await.unwrap();
    assert_eq!(
        (outcome.text.as_str(), outcome.stop_reason),
        ("part", StopReason::Cancelled)
    );
    received.recv().await.unwrap();
    assert_eq!(
        within(received.recv()).await,
        None,
        "the agent's input is closed"
    );
    let error = within(client.new_session("/")).await.unwrap_err();
    assert!(
        matches!(&error, Error::Sdk(error) if error.is_closed()),
        "{error}"
    );
}

#[tokio::test]
async fn a_task_of_an_external_agent_has_its_output_and_cost() {
    let usage = notification(
        "agent/usageUpdate",
        json!({ "total_cost": 0.01, "input_tokens": 100 }),
    );
    let answers = vec![vec![chunk("Done!"), usage, result(json!({}))]];
    let chimera = Chimera::new().drain_delay(Duration::ZERO);
    let (client, mut received) = fake::client(chimera, answers).await;
    let agent = ExternalAgent::new(client).directory("/");
    let result = within(agent.call("fix the bug")).await.unwrap();
    assert_eq!(result.text, "Done!");
    assert_eq!(result.metadata.cost.unwrap().amount, 0.01);
    assert_eq!(result.metadata.tokens.unwrap().input_tokens, 100);
    received.recv().await.unwrap();
    assert_eq!(received.recv().await.unwrap().1["message"], "fix the bug");
}

#[tokio::test]
async fn what_the_protocol_lacks_is_refused() {
    let (client, session, mut received) = session(Vec::new()).await;
    let image = ContentBlock::from(ImageContent::new("", "image/png"));
    let error = session.prompt(image).await.unwrap_err();
    assert!(matches!(error, Error::Unsupported { .. }), "{error}");
    let server = McpServer::from(McpServerStdio::new(
        "files",
        "/bin/files",
        Vec::new(),
        Vec::new(),
    ));
    let request = NewSessionRequest::new("/", vec![server]);
    let error = within(client.new_session_with(request)).await.unwrap_err();
    assert_eq!(error.code(), Some(ErrorCode::INVALID_PARAMS), "{error}");
    assert!(error.to_string().contains("/mcpServers"), "{error}");
    assert!(received.try_recv().is_err());
}

#[tokio::test]
async fn an_agent_without_a_usable_answer_fails_the_session() {
    let (agent, _received) = fake::agent(vec![vec![result(json!({ "id": "s1" }))]]);
    let client = Client::builder().connect(Chimera::new().connect(agent));
    let client = within(client).await.unwrap();
    let error = within(client.new_session("/"))
        .await
        .unwrap_err()
        .to_string();
    assert!(error.contains("session_id"), "{error}");
}
