//! Input during turns, for each method that agents have for it.

use acp_client::{Client, Error, Session, Steered};
use acp_sdk::conversation::{Conversation, Item, ItemKind};
use acp_sdk::extensions::SteerRefusal;
use serde_json::{Value, json};

use crate::agent::{Raw, within};

async fn session(hello: Value) -> (Client, Raw, Session) {
    let (client, mut raw) = Raw::connect_saying(Client::builder(), hello).await;
    let (session, ()) = tokio::join!(
        client.new_session("/"),
        raw.answer("session/new", json!({"sessionId": "s"}))
    );
    (client, raw, session.unwrap())
}

fn own() -> Value {
    let ours = json!({ "session": { "steer": true } });
    json!({ "protocolVersion": 1, "agentCapabilities": { "_meta": { "acp-sdk": ours } } })
}

fn common() -> Value {
    json!({ "protocolVersion": 1, "_meta": { "steering": { "supported": true } } })
}

/// The texts of a conversation, with the speaker in front.
fn words(conversation: &Conversation) -> Vec<String> {
    let message = |item: &Item| match &item.kind {
        ItemKind::Message(message) => Some(format!("{:?} {}", message.role, message.text())),
        _ => None,
    };
    conversation.items().filter_map(message).collect()
}

/// On one thread the task of the turn has not run yet when `prompt` returns.
#[tokio::test]
async fn input_follows_the_prompt_of_its_turn() {
    let (_client, mut raw, session) = session(own()).await;
    let turn = session.prompt("go").await.unwrap();
    let agent = async {
        let prompt = raw.next().await;
        assert_eq!(prompt["method"], "session/prompt");
        let answer = json!({ "outcome": "injected", "messageId": "m" });
        raw.answer("_acp-sdk/session/steer", answer).await;
        prompt
    };
    let (steered, prompt) = within(async { tokio::join!(session.steer("left"), agent) }).await;
    assert_eq!(steered.unwrap(), Steered::Injected);
    let result = json!({ "stopReason": "end_turn" });
    raw.send(json!({ "jsonrpc": "2.0", "id": prompt["id"], "result": result }))
        .await;
    within(turn.outcome()).await.unwrap();
}

#[tokio::test]
async fn input_is_a_message_of_the_user_where_the_turn_has_taken_it() {
    for (hello, method, answer) in [
        (
            own(),
            "_acp-sdk/session/steer",
            json!({ "outcome": "injected", "messageId": "m" }),
        ),
        (
            common(),
            "_session/steering",
            json!({ "outcome": "injected" }),
        ),
    ] {
        let (_client, mut raw, session) = session(hello).await;
        assert!(session.can_steer());
        let mut conversation = session.conversation();
        let turn = session.prompt("go").await.unwrap();
        let prompt = raw.next().await;
        raw.say("s", "One.").await;
        let agent = async {
            let params = raw.params(method, answer).await;
            raw.say("s", "Two.").await;
            let result = json!({ "stopReason": "end_turn" });
            raw.send(json!({ "jsonrpc": "2.0", "id": prompt["id"], "result": result }))
                .await;
            params
        };
        let (steered, params) = tokio::join!(session.steer("left"), agent);
        assert_eq!(steered.unwrap(), Steered::Injected);
        assert_eq!(params["sessionId"], "s");
        assert_eq!(params["prompt"][0]["text"], "left");
        match method {
            "_session/steering" => {
                assert_eq!(
                    params["_meta"]["steering"]["idleBehavior"],
                    "promptRequired"
                );
            }
            _ => {
                assert_eq!(params["otherwise"], "refuse");
                assert!(!params["promptId"].as_str().unwrap().is_empty());
            }
        }
        let outcome = within(turn.outcome()).await.unwrap();
        assert_eq!(outcome.text, "One.Two.");
        let expected = ["User go", "Agent One.", "User left", "Agent Two."];
        while words(conversation.conversation()) != expected {
            within(conversation.next()).await.unwrap();
        }
    }
}

#[tokio::test]
async fn each_outcome_has_its_value() {
    let refused = |reason| Steered::Refused(reason);
    for (hello, method, answer, expected) in [
        (
            own(),
            "_acp-sdk/session/steer",
            json!({ "outcome": "refused", "reason": "cancelled" }),
            refused(SteerRefusal::Cancelled),
        ),
        (
            own(),
            "_acp-sdk/session/steer",
            json!({ "outcome": "queued" }),
            Steered::Queued,
        ),
        (
            common(),
            "_session/steering",
            json!({ "outcome": "promptRequired", "reason": "noRunningTurn" }),
            refused(SteerRefusal::NoTurn),
        ),
        (
            common(),
            "_session/steering",
            json!({ "outcome": "startedNewTurn" }),
            Steered::Queued,
        ),
    ] {
        let (_client, mut raw, session) = session(hello).await;
        let mut events = session.events();
        let steering = session.steer_or_queue("left");
        let (steered, params) = tokio::join!(steering, raw.params(method, answer));
        assert_eq!(steered.unwrap(), expected);
        match method {
            "_session/steering" => assert_eq!(params["_meta"]["steering"], Value::Null),
            _ => assert_eq!(params["otherwise"], "queue"),
        }
        assert!(events.next_ready().is_none(), "nothing was injected");
    }
}

#[tokio::test]
async fn an_agent_that_announces_no_method_is_sent_nothing() {
    let (_client, raw, session) = session(json!({ "protocolVersion": 1 })).await;
    assert!(!session.can_steer());
    let error = session.steer("left").await.unwrap_err();
    assert!(matches!(error, Error::Unsupported { .. }), "{error}");
    drop(session);
    drop(_client);
    let mut raw = raw;
    assert!(raw.is_over().await);
}

/// A connection was lost: the agent has sent again what it had taken, and answers the request that was sent
/// again.
#[tokio::test]
async fn a_message_that_the_agent_has_sent_is_not_added_again() {
    let (_client, mut raw, session) = session(own()).await;
    let mut conversation = session.conversation();
    let chunk = json!({ "sessionUpdate": "user_message_chunk", "messageId": "m", "content": { "type": "text", "text": "left" } });
    let params = json!({ "sessionId": "s", "update": chunk });
    raw.send(json!({ "jsonrpc": "2.0", "method": "session/update", "params": params }))
        .await;
    let answer = json!({ "outcome": "injected", "messageId": "m" });
    let answering = raw.answer("_acp-sdk/session/steer", answer);
    let (steered, ()) = tokio::join!(session.steer("left"), answering);
    assert_eq!(steered.unwrap(), Steered::Injected);
    raw.say("s", "end").await;
    let expected = ["User left", "Agent end"];
    while words(conversation.conversation()) != expected {
        within(conversation.next()).await.unwrap();
    }
}
