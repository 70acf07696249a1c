//! Permission requests of sessions that the agent has created itself, such as those of subagents.

use std::time::Duration;

use acp_client::{
    Client, Decision, Event, PermissionRequest, Permissions, Policy, Reason, Session,
};
use acp_sdk::v1::StopReason;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::agent::{Raw, within};

/// A person who sees each request, and never answers.
struct Silent(mpsc::UnboundedSender<PermissionRequest>);

impl Permissions for Silent {
    async fn decide(&self, question: &PermissionRequest) -> Decision {
        self.0.send(question.clone()).unwrap();
        std::future::pending().await
    }

    fn in_order(&self) -> bool {
        true
    }
}

async fn open(client: &Client, raw: &mut Raw, id: &str, dir: &str) -> Session {
    let answer = raw.answer("session/new", json!({"sessionId": id}));
    let (session, ()) = tokio::join!(client.new_session(dir), answer);
    session.unwrap()
}

/// A tool call of the session `child`, and the request about it, which has its id only.
async fn ask(raw: &mut Raw, meta: Value) {
    let call = json!({"sessionUpdate": "tool_call", "toolCallId": "c", "title": "Look around"});
    let params = json!({"sessionId": "child", "update": call});
    raw.send(json!({"jsonrpc": "2.0", "method": "session/update", "params": params}))
        .await;
    let option = |id: &str| json!({"optionId": id, "name": id, "kind": id});
    let options = [option("allow_once"), option("reject_once")];
    let mut params =
        json!({"sessionId": "child", "toolCall": {"toolCallId": "c"}, "options": options});
    params["_meta"] = meta;
    let method = "session/request_permission";
    raw.send(json!({"jsonrpc": "2.0", "id": "ask", "method": method, "params": params}))
        .await;
}

/// Awaits the answer; returns the option, or the outcome without one.
async fn answer(raw: &mut Raw) -> String {
    let answer = raw.next().await;
    assert_eq!(answer["id"], "ask", "{answer}");
    let outcome = &answer["result"]["outcome"];
    let chosen = outcome["optionId"].as_str().or(outcome["outcome"].as_str());
    chosen.unwrap().to_owned()
}

#[tokio::test]
async fn a_question_of_a_subagent_is_one_of_its_parent() {
    let (asked, mut questions) = mpsc::unbounded_channel();
    let (client, mut raw) = Raw::connect(Client::builder().permissions(Silent(asked))).await;
    let dir = tempfile::tempdir().unwrap();
    let session = open(&client, &mut raw, "parent", dir.path().to_str().unwrap()).await;
    let _idle = open(&client, &mut raw, "idle", "/").await;
    let mut turn = session.prompt("hi").await.unwrap();
    let prompt = raw.next().await;
    ask(&mut raw, Value::Null).await;
    let question = within(questions.recv()).await.unwrap();
    assert_eq!(question.request.session_id.as_str(), "child");
    assert_eq!(question.title.as_deref(), Some("Look around"));
    assert_eq!(question.cwd.as_deref(), Some(dir.path()));

    // Cancelling the turn of the parent answers it.
    turn.cancel();
    assert_eq!(raw.next().await["method"], "session/cancel");
    assert_eq!(answer(&mut raw).await, "cancelled");
    let event = within(turn.next()).await.unwrap();
    assert!(matches!(event.event, Event::Permission(_)), "{event:?}");
    let result = json!({"stopReason": "cancelled"});
    raw.send(json!({"jsonrpc": "2.0", "id": prompt["id"], "result": result}))
        .await;
    let outcome = within(turn.outcome()).await.unwrap();
    assert_eq!(outcome.stop_reason, StopReason::Cancelled);
}

#[tokio::test]
async fn a_parent_that_is_named_is_preferred() {
    let builder = Client::builder().permissions(Policy::ApproveAll);
    let (client, mut raw) = Raw::connect(builder).await;
    let running = open(&client, &mut raw, "running", "/").await;
    let named = open(&client, &mut raw, "named", "/").await;
    let mut events = named.events();
    let _turn = running.prompt("hi").await.unwrap();
    raw.next().await;
    ask(&mut raw, json!({"_vendor": {"parentSessionId": "named"}})).await;
    assert_eq!(answer(&mut raw).await, "allow_once");
    let event = within(events.next()).await.unwrap();
    assert!(matches!(event.event, Event::Permission(_)), "{event:?}");
}

#[tokio::test(start_paused = true)]
async fn a_question_without_a_parent_is_answered_in_time() {
    let limit = Duration::from_secs(20);
    let (asked, mut questions) = mpsc::unbounded_channel();
    let builder = Client::builder()
        .permissions(Silent(asked))
        .answer_within(limit);
    let (client, mut raw) = Raw::connect(builder).await;
    let _one = open(&client, &mut raw, "one", "/").await;
    let _two = open(&client, &mut raw, "two", "/").await;
    ask(&mut raw, Value::Null).await;
    within(questions.recv()).await.unwrap();
    let begun = tokio::time::Instant::now();
    assert_eq!(answer(&mut raw).await, "reject_once");
    assert!(begun.elapsed() >= limit);
    let reason = Reason::NotAnswered(limit);
    let expected = "its session is not open here, and nobody answered within 20s";
    assert_eq!(reason.to_string(), expected);
}
