//! A turn ends when the session becomes idle, regardless of the position of the response.

use std::time::Duration;

use acp_client::{Client, Error, Event};
use acp_sdk::v1::{SessionUpdate, StopReason, ToolCallContent, ToolCallStatus};
use serde_json::json;

use super::{ends, ready, session};
use crate::agent::{Raw, within};

#[tokio::test]
async fn a_turn_goes_on_after_the_response_until_the_session_is_idle() {
    let (session, mut agent) = session().await;
    let mut events = session.events();
    let turn = session.prompt("hi").await.unwrap();
    let mut params = agent.called("session/prompt").await;
    let key = params["idempotencyKey"].take();
    assert!(key.is_string(), "{key}");
    assert_eq!(
        params,
        json!({"sessionId": "s", "prompt": [{"type": "text", "text": "hi"}], "idempotencyKey": null})
    );
    agent.accept().await;
    agent.user("user-1").await;
    agent.state("running").await;
    agent.say("One").await;
    agent.state("requires_action").await;
    agent.say(".").await;
    agent.idle("end_turn").await;
    agent.say("after").await;
    ends(turn, StopReason::EndTurn, "One.").await;
    agent.handled().await;
    let of_turn = [
        "started",
        "user",
        "running",
        "One",
        "requires_action",
        ".",
        "idle",
    ];
    let mut expected: Vec<_> = of_turn.map(|word| (Some(1), word.to_owned())).into();
    expected.push((Some(1), "ended end_turn".to_owned()));
    expected.push((None, "after".to_owned()));
    assert_eq!(ready(&mut events), expected);
}

/// The same on several threads, where the tasks of the turn and of the connection run in parallel.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_event_of_one_turn_is_seen_by_the_next() {
    let (session, mut agent) = session().await;
    for number in 0..200 {
        let turn = session.prompt("hi").await.unwrap();
        agent.called("session/prompt").await;
        let message = format!("user-{number}");
        let text = format!("text {number}");
        let accepted = json!({"messageId": message});
        if number % 3 == 0 {
            agent.answer(accepted.clone()).await;
        }
        agent.user(&message).await;
        agent.state("running").await;
        if number % 3 == 1 {
            agent.answer(accepted.clone()).await;
        }
        agent.say(&text).await;
        agent.idle("end_turn").await;
        if number % 3 == 2 {
            agent.answer(accepted).await;
        }
        agent.say("between").await;
        ends(turn, StopReason::EndTurn, &text).await;
        // Messages that are handled after the next prompt belong to its turn.
        agent.handled().await;
    }
}

#[tokio::test]
async fn an_idle_before_the_response_ends_the_turn_with_it() {
    let (session, mut agent) = session().await;
    let mut events = session.events();
    let turn = session.prompt("hi").await.unwrap();
    agent.called("session/prompt").await;
    agent.user("user-1").await;
    agent.state("running").await;
    agent.say("quick").await;
    agent.idle("max_tokens").await;
    agent.handled().await;
    assert!(
        session.prompt("more").await.is_err(),
        "it is not accepted yet"
    );
    agent.accept().await;
    ends(turn, StopReason::MaxTokens, "quick").await;
    assert_eq!(ready(&mut events).last().unwrap().1, "ended max_tokens");
}

#[tokio::test]
async fn a_repeated_idle_ends_nothing() {
    let (session, mut agent) = session().await;
    let turn = session.prompt("one").await.unwrap();
    agent.start_work().await;
    agent.idle("end_turn").await;
    ends(turn, StopReason::EndTurn, "").await;
    agent.idle("end_turn").await;
    let turn = session.prompt("two").await.unwrap();
    agent.called("session/prompt").await;
    agent.idle("end_turn").await;
    agent.answer(json!({"messageId": "user-2"})).await;
    agent.idle("end_turn").await;
    agent.user("user-2").await;
    agent.state("running").await;
    agent.say("two").await;
    agent.idle("end_turn").await;
    ends(turn, StopReason::EndTurn, "two").await;
}

#[tokio::test]
async fn work_without_a_prompt_is_no_turn_and_its_end_is_not_that_of_a_prompt() {
    let (session, mut agent) = session().await;
    let mut events = session.events();
    agent.state("running").await;
    agent.say("own").await;
    agent.handled().await;
    let own: Vec<_> = ["running", "own"]
        .map(|word| (None, word.to_owned()))
        .into();
    assert_eq!(ready(&mut events), own);
    // The session is running and accepts a prompt nevertheless.
    let turn = session.prompt("hi").await.unwrap();
    agent.called("session/prompt").await;
    agent.accept().await;
    agent.idle("end_turn").await;
    agent.user("user-1").await;
    agent.state("running").await;
    agent.say("yours").await;
    agent.idle("refusal").await;
    ends(turn, StopReason::Refusal, "yours").await;
    agent.state("running").await;
    agent.idle("end_turn").await;
    agent.handled().await;
    let after: Vec<_> = ready(&mut events)
        .into_iter()
        .filter(|event| event.0.is_none())
        .collect();
    assert_eq!(
        after,
        [(None, "running".to_owned()), (None, "idle".to_owned())]
    );
}

#[tokio::test]
async fn a_prompt_that_is_refused_is_no_turn() {
    let (session, mut agent) = session().await;
    let mut events = session.events();
    let turn = session.prompt("hi").await.unwrap();
    agent.called("session/prompt").await;
    agent.refuse(-32000, "who are you").await;
    let error = within(turn.outcome()).await.unwrap_err();
    let words = "the agent requires authentication before session/prompt; its methods:\n  \
        key: A key";
    assert_eq!(error.to_string(), words);
    assert_eq!(ready(&mut events).last().unwrap().1, "failed");
    let turn = session.prompt("hi").await.unwrap();
    agent.called("session/prompt").await;
    agent.accept().await;
    agent.idle("end_turn").await;
    ends(turn, StopReason::EndTurn, "").await;
}

#[tokio::test]
async fn work_that_fails_is_an_error() {
    let (session, mut agent) = session().await;
    let turn = session.prompt("hi").await.unwrap();
    agent.called("session/prompt").await;
    agent.accept().await;
    agent
        .update(
            json!({"sessionUpdate": "state_update", "state": "idle", "stopReason": "error",
            "error": {"code": -32603, "message": "no model"}}),
        )
        .await;
    let error = within(turn.outcome()).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "`session/prompt` failed: no model (code -32603)"
    );
}

#[tokio::test]
async fn an_agent_of_an_older_draft_does_not_name_the_message() {
    let (session, mut agent) = session().await;
    let turn = session.prompt("hi").await.unwrap();
    agent.called("session/prompt").await;
    agent.answer(json!({})).await;
    agent.user("any").await;
    agent.state("running").await;
    agent.say("old").await;
    agent.idle("end_turn").await;
    ends(turn, StopReason::EndTurn, "old").await;
}

#[tokio::test]
async fn an_outcome_has_what_was_said_at_last() {
    let (session, mut agent) = session().await;
    let mut turn = session.prompt("hi").await.unwrap();
    agent.start_work().await;
    agent.say("Hel").await;
    let whole = |text: &str| {
        json!({"sessionUpdate": "agent_message", "messageId": "agent-1",
            "content": [{"type": "text", "text": text}]})
    };
    agent.update(whole("Hello")).await;
    let call = |members: serde_json::Value| {
        let mut call = json!({"sessionUpdate": "tool_call_update", "toolCallId": "c"});
        call.as_object_mut()
            .unwrap()
            .extend(members.as_object().unwrap().clone());
        call
    };
    agent
        .update(call(json!({"title": "Read", "kind": "read"})))
        .await;
    for word in ["one", "two"] {
        agent
            .update(
                json!({"sessionUpdate": "tool_call_content_chunk", "toolCallId": "c",
                "content": {"type": "content", "content": {"type": "text", "text": word}}}),
            )
            .await;
    }
    agent.update(call(json!({"status": "completed"}))).await;
    agent
        .update(
            json!({"sessionUpdate": "usage_update", "used": 7, "size": 10,
            "cost": {"amount": 0.5, "currency": "EUR"}}),
        )
        .await;
    agent.update(whole("Bye")).await;
    agent
        .update(json!({"sessionUpdate": "state_update", "state": "idle",
            "stopReason": "end_turn", "usage": {"totalTokens": 9, "inputTokens": 7,
            "outputTokens": 2, "cachedReadTokens": 5}}))
        .await;
    let mut said = Vec::new();
    while let Some(event) = within(turn.next()).await {
        if let Event::Update(SessionUpdate::AgentMessageChunk(_)) = event.event {
            said.push(super::word(&event.event));
        }
    }
    assert_eq!(said, ["Hel", "lo"], "each piece once");
    let outcome = within(turn.outcome()).await.unwrap();
    assert_eq!(outcome.text, "Bye");
    let [call] = outcome.tool_calls.as_slice() else {
        panic!("{:?}", outcome.tool_calls)
    };
    assert_eq!(
        (call.title.as_str(), &call.status),
        ("Read", &Some(ToolCallStatus::Completed))
    );
    assert_eq!(call.content.len(), 2);
    assert!(matches!(call.content[1], ToolCallContent::Content(_)));
    assert_eq!(outcome.cost().unwrap().amount, 0.5);
    let tokens = outcome.tokens.unwrap();
    assert_eq!(
        (tokens.input_tokens, tokens.cached_read_tokens),
        (7, Some(5))
    );
}

#[tokio::test]
async fn a_version_that_is_not_offered_is_none() {
    let (client, _raw) = crate::agent::Raw::connect(Client::builder().offer_v2()).await;
    assert_eq!(client.protocol_version(), acp_sdk::v1::ProtocolVersion::V1);
    assert!(client.agent_v2().is_none());
    let (client, _agent) = super::connect(Client::builder()).await;
    assert_eq!(
        client.protocol_version(),
        acp_sdk::v1::ProtocolVersion::from(2)
    );
    assert!(client.agent_v2().is_some());
    let (ours, mut theirs) = tokio::io::duplex(1 << 16);
    let (reader, writer) = tokio::io::split(ours);
    let connecting = Client::builder()
        .offer_v2()
        .answer_within(Duration::from_secs(30));
    let connecting = connecting.connect((reader, writer));
    let answering = async {
        use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _};
        let mut line = String::new();
        tokio::io::BufReader::new(&mut theirs)
            .read_line(&mut line)
            .await
            .unwrap();
        let request: serde_json::Value = serde_json::from_str(&line).unwrap();
        assert_eq!(request["params"]["protocolVersion"], 2);
        let answer = json!({"jsonrpc": "2.0", "id": request["id"],
            "result": {"protocolVersion": 7}});
        theirs
            .write_all(format!("{answer}\n").as_bytes())
            .await
            .unwrap();
        theirs
    };
    let (connected, _theirs) = within(async { tokio::join!(connecting, answering) }).await;
    let error = connected.unwrap_err();
    assert!(matches!(error, Error::Version { .. }), "{error}");
    assert_eq!(
        error.to_string(),
        "unsupported protocol version: expected 2, the agent answered 7"
    );
}

/// The prompt waits behind the turn of another client, whose updates name their prompt.
#[tokio::test]
async fn the_turn_of_another_client_is_not_part_of_the_turn_that_waits_for_it() {
    let mut hello = super::hello();
    hello["capabilities"]["_meta"] = json!({"acp-sdk": {"promptId": true}});
    let (client, raw) = Raw::connect_saying(Client::builder().offer_v2(), hello).await;
    let open = serde_json::Value::Null;
    let prompt_id = None;
    let mut agent = super::Agent {
        raw,
        open,
        prompt_id,
    };
    let session = super::open(&client, &mut agent).await;
    let mut events = session.events();
    agent.prompt_id = Some("turn-1".to_owned());
    agent.state("running").await;
    agent.handled().await;
    let turn = session.prompt("mine").await.unwrap();
    let params = agent.called("session/prompt").await;
    let mine = params["_meta"]["acp-sdk"]["promptId"].as_str().unwrap();
    agent.say("theirs").await;
    agent.idle("end_turn").await;
    agent.prompt_id = Some(mine.to_owned());
    agent.user("user-1").await;
    agent.accept().await;
    agent.state("running").await;
    agent.say("mine").await;
    agent.idle("end_turn").await;
    ends(turn, StopReason::EndTurn, "mine").await;
    agent.handled().await;
    let expected = [
        (None, "running"),
        (Some(1), "started"),
        (None, "theirs"),
        (None, "idle"),
        (Some(1), "user"),
        (Some(1), "running"),
        (Some(1), "mine"),
        (Some(1), "idle"),
        (Some(1), "ended end_turn"),
    ];
    let expected = expected.map(|(turn, word)| (turn, word.to_owned()));
    assert_eq!(ready(&mut events), expected);
}
