//! Calls and subscriptions at `/rpc`.

use acp_reference_agent::Reference;
use acp_schema::{Document, Protocol, Side};
use acp_sdk::v1::{Cost, StopReason, UsageUpdate};
use acp_server::{Handler, HandlerError, HandlerResult, Server, Turn};
use acp_server_remote::{EndpointSettings, Token, Tokens};
use serde_json::{Value, json};

use crate::http::{Host, request};
use crate::websocket::Socket;

/// Reports the total cost that the prompt says, and seven tokens.
struct Costly;

impl Handler for Costly {
    type State = ();

    async fn prompt(&self, (): &mut (), turn: Turn) -> HandlerResult<StopReason> {
        let total = turn.prompt_text().parse().unwrap_or(0.0);
        let usage = UsageUpdate::new(1u64, 2u64).with_cost(Cost::new(total, "USD"));
        turn.report_usage(usage).await?;
        let answer = json!({ "usage": { "totalTokens": 7 } });
        turn.set_answer(acp_sdk::Json::new(&answer).map_err(HandlerError::internal)?);
        Ok(StopReason::EndTurn)
    }
}

async fn host() -> Host {
    let host = Host::start(Server::new(Reference), &EndpointSettings::default()).await;
    host.at("/rpc")
}

/// Calls a method by a request of its own.
async fn call(host: &Host, method: &str, params: Value) -> Value {
    let response = host.post(&[], &request(1, method, params)).await;
    assert_eq!(response.status, 200, "{response:?}");
    response.json()
}

async fn new_session(host: &Host) -> String {
    let params = json!({ "cwd": "/", "mcpServers": [] });
    let answer = call(host, "session_new", params).await;
    answer["result"]["sessionId"].as_str().unwrap().to_owned()
}

fn prompt(session: &str, text: &str) -> Value {
    json!({ "sessionId": session, "prompt": [{ "type": "text", "text": text }] })
}

/// Returns the types of events and the texts of chunks.
fn told(events: &[Value]) -> Vec<String> {
    let told = events.iter().map(|event| {
        let text = event["update"]["content"]["text"].as_str();
        text.or(event["type"].as_str()).unwrap().to_owned()
    });
    told.collect()
}

#[tokio::test]
async fn every_method_of_the_protocol_has_one() {
    let host = host().await;
    let protocol = Protocol::from_document(&Document::v1().unwrap()).unwrap();
    let requests = protocol.methods().filter(|method| method.kind.is_request());
    for method in requests.filter(|method| method.side == Side::AGENT) {
        let name = method.name.replace('/', "_");
        let answer = call(&host, &name, json!({})).await;
        assert_ne!(answer["error"]["code"], -32601, "{name}: {answer}");
    }
    let answer = call(&host, "session_nothing", json!({})).await;
    assert_eq!(answer["error"]["code"], -32601);
}

#[tokio::test]
async fn the_end_of_a_turn_has_its_tokens_duration_and_cost() {
    let host = Host::start(Server::new(Costly), &EndpointSettings::default()).await;
    let host = host.at("/rpc");
    let session = new_session(&host).await;
    for (total, expected) in [
        ("0.25", json!({ "USD": 0.25 })),
        ("0.75", json!({ "USD": 0.5 })),
    ] {
        let answer = call(&host, "session_prompt", prompt(&session, total)).await;
        let result = &answer["result"];
        assert_eq!(
            (&result["stopReason"], &result["usage"], &result["costs"]),
            (&json!("end_turn"), &json!({ "totalTokens": 7 }), &expected)
        );
        assert!(result["durationMs"].is_u64(), "{answer}");
        let params = json!({ "sessionId": session });
        let polled = call(&host, "session_events", params).await["result"].clone();
        let ended = polled["events"].as_array().unwrap().last().unwrap();
        assert_eq!(ended["type"], "turn_ended");
        for name in ["costs", "durationMs", "usage"] {
            assert_eq!(ended[name], result[name], "{name}");
        }
    }
}

#[tokio::test]
async fn a_turn_by_single_requests() {
    let host = host().await;
    let hello = json!({ "protocolVersion": 1, "clientCapabilities": {} });
    let answer = call(&host, "initialize", hello).await;
    assert_eq!(answer["result"]["protocolVersion"], 1);
    let session = new_session(&host).await;
    let answer = call(&host, "session_prompt", prompt(&session, "hello")).await;
    assert_eq!(answer["result"]["stopReason"], "end_turn");
    let params = json!({ "sessionId": session });
    let polled = call(&host, "session_events", params).await["result"].clone();
    let events = polled["events"].as_array().unwrap();
    let numbers: Vec<_> = events
        .iter()
        .map(|event| event["eventId"].as_u64().unwrap())
        .collect();
    assert_eq!(numbers, (1..=numbers.len() as u64).collect::<Vec<_>>());
    assert_eq!(polled["lastEventId"], numbers.len());
    let told = told(events);
    assert_eq!(told.first().unwrap(), "turn_started");
    assert_eq!(told.last().unwrap(), "turn_ended");
    assert!(told.contains(&"hello".to_owned()), "{told:?}");

    let (_, list) = ((), call(&host, "session_list", json!({})).await);
    assert_eq!(list["result"]["sessions"][0]["sessionId"], session);
    let state = call(&host, "session_state", json!({ "sessionId": session })).await;
    assert_eq!(state["result"]["state"], "idle");
    let set = json!({ "sessionId": session, "modeId": "nothing" });
    let refused = call(&host, "session_set_mode", set).await;
    assert_eq!(refused["error"]["code"], -32602, "{refused}");
    let deleted = call(&host, "session_delete", json!({ "sessionId": session })).await;
    assert_eq!(deleted["result"], json!({}));
    let gone = call(&host, "session_prompt", prompt(&session, "hello")).await;
    assert_eq!(gone["error"]["code"], -32002);
}

#[tokio::test]
async fn the_turns_and_questions_of_a_session_without_its_updates() {
    let host = host().await;
    let session = new_session(&host).await;
    call(&host, "session_prompt", prompt(&session, "stream 3")).await;
    let params = json!({ "sessionId": session });
    let all = call(&host, "session_events", params).await["result"].clone();
    let params = json!({ "sessionId": session, "only": "turns" });
    let polled = call(&host, "session_events", params).await["result"].clone();
    let types = |polled: &Value| -> Vec<Value> {
        let events = polled["events"].as_array().unwrap().iter();
        events.map(|event| event["type"].clone()).collect()
    };
    assert!(types(&all).contains(&json!("update")));
    assert_eq!(types(&polled), ["turn_started", "turn_ended"]);
    // The next poll does not read the updates again.
    assert_eq!(polled["lastEventId"], all["lastEventId"]);
    let params = json!({ "sessionId": session, "only": "something" });
    let refused = call(&host, "session_events", params).await;
    assert_eq!(refused["error"]["code"], -32602, "{refused}");
}

#[tokio::test]
async fn a_long_poll_waits_for_an_event_and_no_longer() {
    let host = host().await;
    let session = new_session(&host).await;
    let params = json!({ "sessionId": session, "waitMs": 1 });
    let polled = call(&host, "session_events", params).await["result"].clone();
    assert_eq!(
        (&polled["events"], &polled["lastEventId"]),
        (&json!([]), &json!(0))
    );
    let params = json!({ "sessionId": session, "waitMs": 60_000 });
    let prompt = call(&host, "session_prompt_start", prompt(&session, "hello"));
    let (polled, started) = tokio::join!(call(&host, "session_events", params), prompt);
    assert_eq!(started["result"]["lastEventId"], 0);
    let events = polled["result"]["events"].as_array().unwrap();
    assert_eq!(told(events)[0], "turn_started");
}

#[tokio::test]
async fn a_subscription_has_every_event_once_and_a_permission_is_answered_once() {
    let host = host().await;
    let mut socket = Socket::open(&host).await;
    let session = socket
        .call("session_new", json!({ "cwd": "/", "mcpServers": [] }))
        .await
        .1;
    let session = session["result"]["sessionId"].as_str().unwrap().to_owned();
    call(&host, "session_prompt", prompt(&session, "hello")).await;
    let after = json!({ "sessionId": session, "after": 1 });
    let (_, subscribed) = socket.call("session_subscribe", after).await;
    let subscription = subscribed["result"].clone();
    assert!(subscription.is_string(), "{subscribed}");
    let turn = socket
        .send("session_prompt", prompt(&session, "permission"))
        .await;
    let mut numbers = Vec::new();
    let mut outcomes = Vec::new();
    loop {
        let message = socket.receive().await.unwrap();
        if message["id"] == turn {
            assert_eq!(message["result"]["stopReason"], "end_turn");
            break;
        }
        if message["id"].is_u64() {
            outcomes.push(message["error"]["code"].clone());
            continue;
        }
        assert_eq!(message["method"], "session_event");
        assert_eq!(message["params"]["subscription"], subscription);
        let event = &message["params"]["result"];
        numbers.push(event["eventId"].as_u64().unwrap());
        if event["type"] == "permission_asked" {
            let option = &event["request"]["options"][0]["optionId"];
            let bad = json!({ "outcome": "selected", "optionId": "no such option" });
            let good = json!({ "outcome": "selected", "optionId": option });
            // One after the other: calls of a WebSocket have no order among themselves.
            for outcome in [bad, good.clone(), good] {
                let params = json!({ "requestId": event["requestId"], "outcome": outcome });
                let answer = call(&host, "permission_respond", params).await;
                outcomes.push(answer["error"]["code"].clone());
            }
        }
    }
    assert_eq!(outcomes, [json!(-32602), Value::Null, json!(-32600)]);
    // The event of the turn's end may come after the answer.
    let last = host
        .server
        .session(&session.as_str().into())
        .await
        .unwrap()
        .last_event();
    while numbers.last() != Some(&last) {
        let message = socket.receive().await.unwrap();
        numbers.push(message["params"]["result"]["eventId"].as_u64().unwrap());
    }
    assert_eq!(numbers, (2..=last).collect::<Vec<_>>());
    let (_, ended) = socket
        .call("session_unsubscribe", json!([subscription]))
        .await;
    assert_eq!(ended["result"], true);
}

#[tokio::test]
async fn a_question_is_answered_by_its_own_kind_of_answer() {
    let host = host().await;
    let session = new_session(&host).await;
    call(
        &host,
        "session_prompt_start",
        prompt(&session, "permission"),
    )
    .await;
    let mut after = 0;
    let asked = loop {
        let params = json!({ "sessionId": session, "after": after, "waitMs": 60_000 });
        let polled = call(&host, "session_events", params).await["result"].clone();
        after = polled["lastEventId"].as_u64().unwrap();
        let events = polled["events"].as_array().unwrap();
        let asked = events
            .iter()
            .find(|event| event["type"] == "permission_asked");
        if let Some(asked) = asked {
            break asked["requestId"].clone();
        }
    };
    // A question of another kind is not answered by it.
    let params = json!({ "requestId": asked, "action": "decline" });
    let refused = call(&host, "elicitation_respond", params).await;
    assert_eq!(refused["error"]["code"], -32600, "{refused}");
    let params = json!({ "requestId": "nothing", "action": "decline" });
    let refused = call(&host, "elicitation_respond", params).await;
    assert_eq!(refused["error"]["code"], -32602, "{refused}");
    let cancelled = call(&host, "session_cancel", json!({ "sessionId": session })).await;
    assert_eq!(cancelled["result"], json!({}));
}

#[tokio::test]
async fn tokens_permit_here_what_they_permit_elsewhere() {
    let (master, reader) = (Token::random().unwrap(), Token::random().unwrap());
    let tokens = Tokens::new(&master).with_read_only(&reader);
    let host = Host::protected(Server::new(Reference), tokens.clone()).await;
    let host = host.at("/rpc").with_token(&master);
    let (own, other) = (new_session(&host).await, new_session(&host).await);
    let token = tokens.issue(&own.as_str().into()).unwrap();
    let guest = host.with_token(&token);
    let reader = host.with_token(&reader);
    let at = |session: &str| json!({ "sessionId": session });
    for (who, method, params, permitted) in [
        (&guest, "session_events", at(&own), true),
        (&guest, "session_events", at(&other), false),
        (&guest, "session_prompt", prompt(&own, "hello"), true),
        (&guest, "session_prompt", prompt(&other, "hello"), false),
        (&guest, "session_state", at(&other), false),
        (
            &guest,
            "session_new",
            json!({ "cwd": "/", "mcpServers": [] }),
            false,
        ),
        (&reader, "session_events", at(&own), true),
        (&reader, "session_state", at(&own), true),
        (&reader, "session_prompt", prompt(&own, "hello"), false),
        (&reader, "session_cancel", at(&own), false),
        (&reader, "session_delete", at(&own), false),
    ] {
        let answer = call(who, method, params).await;
        assert_eq!(answer["error"].is_null(), permitted, "{method}: {answer}");
    }
    let mut socket = Socket::open(&guest).await;
    let (_, refused) = socket.call("session_subscribe", at(&other)).await;
    assert_eq!(refused["error"]["code"], -32600);
    let (_, subscribed) = socket.call("session_subscribe", at(&own)).await;
    assert!(subscribed["result"].is_string());
    tokens.issue(&own.as_str().into()).unwrap();
    while socket.receive().await.is_some() {}
}

#[tokio::test]
async fn what_is_no_call_is_refused_and_the_socket_goes_on() {
    let host = host().await;
    let batch = format!("[{}]", request(1, "session_list", json!({})));
    let refused = host.post(&[], &batch).await;
    assert_eq!(refused.json()["error"]["code"], -32005, "{refused:?}");
    let array = call(&host, "session_prompt", json!(["s", []])).await;
    assert_eq!(array["error"]["code"], -32602, "{array}");
    assert_eq!(host.request("GET", &[], "").await.status, 426);
    assert_eq!(host.request("PUT", &[], "").await.status, 405);
    let mut socket = Socket::open(&host).await;
    socket.text("{".to_owned()).await;
    let refused = socket.receive().await.unwrap();
    assert_eq!(refused["error"]["code"], -32700);
    let (_, list) = socket.call("session_list", json!({})).await;
    assert_eq!(list["result"]["sessions"], json!([]));
}
