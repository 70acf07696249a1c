//! Permission requests in the forms that agents send.

use std::sync::Arc;

use acp_client::{Client, Decision, Event, PermissionRequest, Permissions, Policy, Turn};
use acp_sdk::v1::{RequestPermissionOutcome, SelectedPermissionOutcome};
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::agent::{Raw, TestAgent, connect, within};

/// A user who never answers.
#[derive(Clone, Default)]
struct Silent {
    asked: Arc<Notify>,
}

impl Permissions for Silent {
    async fn decide(&self, _: &PermissionRequest) -> Decision {
        self.asked.notify_one();
        std::future::pending().await
    }
}

async fn asked(permissions: impl Permissions, kind: &str) -> Value {
    let agent = TestAgent::default();
    let client = connect(agent.clone(), Client::builder().permissions(permissions)).await;
    let session = within(client.new_session("/")).await.unwrap();
    let turn = session.prompt(format!("ask {kind}")).await.unwrap();
    within(turn.outcome()).await.unwrap();
    let answered = agent.answered.lock().unwrap().clone();
    assert_eq!(answered.len(), 1);
    answered[0].clone()
}

fn selected(id: &str) -> Value {
    json!({"outcome": "selected", "optionId": id})
}

#[tokio::test]
async fn policies_answer_by_kind() {
    assert_eq!(asked(Policy::ApproveAll, "execute").await, selected("4"));
    assert_eq!(asked(Policy::DenyAll, "read").await, selected("3"));
    // Only the announcement of the tool call contains the kind.
    assert_eq!(asked(Policy::ApproveReads, "read").await, selected("4"));
    assert_eq!(asked(Policy::ApproveReads, "edit").await, selected("3"));
}

#[tokio::test]
async fn nothing_is_allowed_unless_somebody_says_so() {
    let agent = TestAgent::default();
    let client = connect(agent.clone(), Client::builder()).await;
    let session = within(client.new_session("/")).await.unwrap();
    let turn = session.prompt("ask read").await.unwrap();
    within(turn.outcome()).await.unwrap();
    assert_eq!(*agent.answered.lock().unwrap(), [selected("3")]);
}

#[tokio::test]
async fn answers_are_events_of_the_turn() {
    let agent = TestAgent::default();
    let client = connect(agent, Client::builder().permissions(Policy::ApproveAll)).await;
    let session = within(client.new_session("/")).await.unwrap();
    let mut turn = session.prompt("ask edit").await.unwrap();
    let answered = within(next_answer(&mut turn)).await;
    assert_eq!(answered.question.title.as_deref(), Some("Do it"));
    let chosen = RequestPermissionOutcome::Selected(SelectedPermissionOutcome::new("4"));
    assert_eq!(answered.outcome, chosen);
}

async fn next_answer(turn: &mut Turn) -> acp_client::Answered {
    loop {
        let event = turn.next().await.expect("the turn goes on").event;
        if let Event::Permission(answered) = event {
            return *answered;
        }
    }
}

/// Rules receive the session's directory and the announced call; the reader receives the reason.
#[tokio::test]
async fn rules_know_what_was_announced_and_where() {
    use acp_client::{Reason, Rule, Rules};
    let dir = tempfile::tempdir().unwrap();
    for (path, id) in [("src/a", "yes"), ("src/../../a", "no")] {
        let rules = Rules::new().rule(Rule::allow().path("src/**").unwrap());
        let (client, mut raw) = Raw::connect(Client::builder().permissions(rules)).await;
        let (session, ()) = tokio::join!(
            client.new_session(dir.path()),
            raw.answer("session/new", json!({"sessionId": "s"}))
        );
        let session = session.unwrap();
        let mut turn = session.prompt("hi").await.unwrap();
        raw.next().await;
        let call = json!({"sessionUpdate": "tool_call", "toolCallId": "c", "title": "Edit it",
            "kind": "edit", "locations": [{"path": path}]});
        let params = json!({"sessionId": "s", "update": call});
        raw.send(json!({"jsonrpc": "2.0", "method": "session/update", "params": params}))
            .await;
        let options = json!([{"optionId": "yes", "name": "Yes", "kind": "allow_once"},
            {"optionId": "no", "name": "No", "kind": "reject_once"}]);
        let params = json!({"sessionId": "s", "toolCall": {"toolCallId": "c"}, "options": options});
        raw.send(json!({"jsonrpc": "2.0", "id": 7, "method": "session/request_permission", "params": params}))
            .await;
        let answered = within(next_answer(&mut turn)).await;
        let chosen = RequestPermissionOutcome::Selected(SelectedPermissionOutcome::new(id));
        assert_eq!(answered.outcome, chosen, "{path}");
        let by_rule =
            matches!(answered.reason.as_deref(), Some(Reason::Rule(rule)) if rule.number == 1);
        assert_eq!(by_rule, id == "yes");
    }
}

/// A user who sees the output of the turn's reader so far.
#[derive(Clone, Default)]
struct Watching(Arc<std::sync::Mutex<Vec<&'static str>>>);

impl Permissions for Watching {
    async fn decide(&self, _: &PermissionRequest) -> Decision {
        self.0.lock().unwrap().push("asked");
        Decision::Allow
    }

    fn in_order(&self) -> bool {
        true
    }
}

#[tokio::test]
async fn who_asks_a_person_is_asked_after_what_came_before() {
    let watching = Watching::default();
    let builder = Client::builder().permissions(watching.clone());
    let client = connect(TestAgent::default(), builder).await;
    let session = within(client.new_session("/")).await.unwrap();
    let mut turn = session.prompt("ask edit").await.unwrap();
    while let Some(event) = within(turn.next()).await {
        // While an event is being displayed, no other output may be written.
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
        watching.0.lock().unwrap().push(match event.event {
            Event::Update(_) => "update",
            _ => "answer",
        });
    }
    assert_eq!(*watching.0.lock().unwrap(), ["update", "asked", "answer"]);
}

#[tokio::test]
async fn a_pending_question_is_answered_when_the_turn_is_cancelled() {
    let (agent, silent) = (TestAgent::default(), Silent::default());
    let client = connect(agent.clone(), Client::builder().permissions(silent.clone())).await;
    let session = within(client.new_session("/")).await.unwrap();
    let mut turn = session.prompt("ask edit").await.unwrap();
    within(silent.asked.notified()).await;
    turn.cancel();
    let answered = within(next_answer(&mut turn)).await;
    assert_eq!(answered.outcome, RequestPermissionOutcome::Cancelled);
    within(turn.outcome()).await.unwrap();
    let cancelled = json!({"outcome": "cancelled"});
    assert_eq!(*agent.answered.lock().unwrap(), [cancelled]);
}

#[tokio::test]
async fn the_agent_hears_of_the_cancel_before_the_answer() {
    let silent = Silent::default();
    let (client, mut raw) = Raw::connect(Client::builder().permissions(silent.clone())).await;
    let (session, ()) = tokio::join!(
        client.new_session("/"),
        raw.answer("session/new", json!({"sessionId": "s"}))
    );
    let session = session.unwrap();
    let turn = session.prompt("hi").await.unwrap();
    let prompt = raw.next().await;
    let ask = |id: &str| {
        let options = json!([{"optionId": "a", "name": "A", "kind": "allow_once"}]);
        let params = json!({"sessionId": "s", "toolCall": {"toolCallId": "c"}, "options": options});
        json!({"jsonrpc": "2.0", "id": id, "method": "session/request_permission", "params": params})
    };
    raw.send(ask("q")).await;
    within(silent.asked.notified()).await;
    session.cancel();
    assert_eq!(raw.next().await["method"], "session/cancel");
    let cancelled = json!({"outcome": {"outcome": "cancelled"}});
    let answer = raw.next().await;
    assert_eq!(
        (&answer["id"], &answer["result"]),
        (&json!("q"), &cancelled)
    );
    // A request after the cancellation is answered likewise.
    raw.send(ask("late")).await;
    let answer = raw.next().await;
    assert_eq!(
        (&answer["id"], &answer["result"]),
        (&json!("late"), &cancelled)
    );
    let result = json!({"stopReason": "cancelled"});
    raw.send(json!({"jsonrpc": "2.0", "id": prompt["id"], "result": result}))
        .await;
    within(turn.outcome()).await.unwrap();
}

#[tokio::test]
async fn a_pending_question_does_not_outlive_the_turn_or_the_connection() {
    for drop_turn in [true, false] {
        let silent = Silent::default();
        let gone = Arc::new(Notify::new());
        let permissions = Dropped(silent.clone(), gone.clone());
        let (client, mut raw) = Raw::connect(Client::builder().permissions(permissions)).await;
        let (session, ()) = tokio::join!(
            client.new_session("/"),
            raw.answer("session/new", json!({"sessionId": "s"}))
        );
        let session = session.unwrap();
        let turn = session.prompt("hi").await.unwrap();
        raw.next().await;
        let params = json!({"sessionId": "s", "toolCall": {"toolCallId": "c"}, "options": []});
        raw.send(json!({"jsonrpc": "2.0", "id": 0, "method": "session/request_permission", "params": params}))
            .await;
        within(silent.asked.notified()).await;
        if drop_turn {
            drop(turn);
            within(gone.notified()).await;
            assert_eq!(raw.next().await["method"], "session/cancel");
            assert_eq!(
                raw.next().await["result"]["outcome"]["outcome"],
                "cancelled"
            );
        } else {
            drop(raw);
            within(gone.notified()).await;
            assert!(within(turn.outcome()).await.is_err());
        }
    }
}

#[tokio::test]
async fn questions_beyond_measure_are_refused() {
    let (_client, mut raw) = Raw::connect(Client::builder().permissions(Silent::default())).await;
    let params = json!({"sessionId": "s", "toolCall": {"toolCallId": "c"}, "options": []});
    for id in 0..257 {
        raw.send(json!({"jsonrpc": "2.0", "id": id, "method": "session/request_permission", "params": params}))
            .await;
    }
    let refused = raw.next().await;
    assert_eq!(refused["id"], 256);
    let message = refused["error"]["message"].as_str().unwrap();
    assert!(
        message.contains("256 requests are in progress"),
        "{message}"
    );
}

/// Notifies when the future of the request is dropped.
struct Dropped(Silent, Arc<Notify>);

impl Permissions for Dropped {
    async fn decide(&self, question: &PermissionRequest) -> Decision {
        struct Tell(Arc<Notify>);
        impl Drop for Tell {
            fn drop(&mut self) {
                self.0.notify_one();
            }
        }
        let _tell = Tell(self.1.clone());
        self.0.decide(question).await
    }
}
