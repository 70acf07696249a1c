//! Files, terminals and updates of sessions that the agent has created itself, such as those of
//! subagents.

use std::path::Path;

use acp_client::{Client, Event, Events, Policy, Session, Turn, Workspace};
use acp_sdk::v1::SessionUpdate;
use serde_json::{Value, json};

use crate::agent::{Raw, said, within};

/// A client with the sessions `parent`, which runs a turn, and `idle`.
struct Case {
    client: Client,
    raw: Raw,
    parent: Session,
    idle: Session,
    turn: Turn,
    /// The request of the turn.
    prompt: Value,
    dir: tempfile::TempDir,
}

async fn open(client: &Client, raw: &mut Raw, id: &str, dir: &Path) -> Session {
    let answer = raw.answer("session/new", json!({"sessionId": id}));
    let (session, ()) = tokio::join!(client.new_session(dir), answer);
    session.unwrap()
}

impl Case {
    async fn new(policy: Policy) -> Self {
        let dir = tempfile::tempdir().unwrap();
        for name in ["parent", "idle"] {
            std::fs::create_dir(dir.path().join(name)).unwrap();
            std::fs::write(dir.path().join(name).join("file"), name).unwrap();
        }
        let builder = Client::builder();
        let builder = builder.workspace(Workspace::new()).permissions(policy);
        let (client, mut raw) = Raw::connect(builder).await;
        let parent = open(&client, &mut raw, "parent", &dir.path().join("parent")).await;
        let idle = open(&client, &mut raw, "idle", &dir.path().join("idle")).await;
        let turn = parent.prompt("hi").await.unwrap();
        let prompt = raw.next().await;
        Self {
            client,
            raw,
            parent,
            idle,
            turn,
            prompt,
            dir,
        }
    }

    fn path(&self, name: &str) -> String {
        self.dir.path().join(name).to_str().unwrap().to_owned()
    }

    /// Sends a request of a session and returns the whole answer.
    async fn call(&mut self, session: &str, method: &str, mut params: Value) -> Value {
        params["sessionId"] = session.into();
        self.raw
            .send(json!({"jsonrpc": "2.0", "id": "call", "method": method, "params": params}))
            .await;
        self.raw.next().await
    }

    async fn update(&mut self, session: &str, update: Value, meta: Value) {
        let params = json!({"sessionId": session, "update": update, "_meta": meta});
        self.raw
            .send(json!({"jsonrpc": "2.0", "method": "session/update", "params": params}))
            .await;
    }

    async fn end_turn(&mut self) {
        let result = json!({"stopReason": "end_turn"});
        let id = self.prompt["id"].clone();
        self.raw
            .send(json!({"jsonrpc": "2.0", "id": id, "result": result}))
            .await;
    }
}

fn text(text: &str) -> Value {
    serde_json::to_value(said(text)).unwrap()
}

fn named(parent: &str) -> Value {
    json!({"_vendor": {"parentSessionId": parent}})
}

/// Returns the session and the update of the next event of a child session.
async fn of_child(events: &mut Events) -> (String, SessionUpdate) {
    loop {
        let event = within(events.next()).await.unwrap();
        if let Event::ChildSession(child) = event.event {
            return (child.session.to_string(), child.update);
        }
    }
}

#[tokio::test]
async fn files_of_a_child_session_are_served_in_the_directories_and_by_the_guard_of_its_parent() {
    let mut case = Case::new(Policy::ApproveReads).await;
    let mut events = case.parent.events();
    let read = |path: String| json!({"path": path});
    let inside = read(case.path("parent/file"));
    let answer = case.call("child", "fs/read_text_file", inside).await;
    assert_eq!(answer["result"]["content"], "parent", "{answer}");
    let outside = read(case.path("idle/file"));
    let answer = case.call("child", "fs/read_text_file", outside).await;
    assert_eq!(answer["error"]["code"], -32602, "{answer}");

    let write = json!({"path": case.path("parent/new"), "content": "x"});
    let answer = case.call("child", "fs/write_text_file", write).await;
    assert_eq!(answer["error"]["code"], -32603, "{answer}");
    while !matches!(
        within(events.next()).await.unwrap().event,
        Event::Permission(answered) if answered.question.request.session_id.as_str() == "child"
    ) {}

    // The parent that is named is preferred to the one that runs a turn.
    let mut named_idle = read(case.path("idle/file"));
    named_idle["_meta"] = named("idle");
    let answer = case.call("other", "fs/read_text_file", named_idle).await;
    assert_eq!(answer["result"]["content"], "idle", "{answer}");
}

#[cfg(unix)]
#[tokio::test]
async fn terminals_of_a_child_session_end_with_its_parent() {
    use crate::lifeline::Lifeline;

    let mut case = Case::new(Policy::ApproveAll).await;
    let lifeline = Lifeline::new();
    let words = ["-c".to_owned(), lifeline.tie("pwd; exec sleep 600")];
    let create = json!({"command": "sh", "args": words});
    let answer = case.call("child", "terminal/create", create).await;
    let terminal = json!({"terminalId": answer["result"]["terminalId"]});
    // The parent is known from now on, also between turns.
    case.end_turn().await;
    within(case.turn.finish()).await.unwrap();
    let directory = case.path("parent");
    loop {
        let output = case
            .call("child", "terminal/output", terminal.clone())
            .await;
        let printed = output["result"]["output"]
            .as_str()
            .expect("its output")
            .trim();
        if !printed.is_empty() {
            assert!(printed.ends_with(&directory), "{printed}");
            break;
        }
    }
    let Case {
        parent,
        turn,
        raw,
        idle,
        client,
        ..
    } = case;
    drop((parent, turn));
    lifeline.all_dead().await;
    drop((raw, idle, client));
}

#[tokio::test]
async fn requests_of_a_session_that_was_released_are_not_those_of_another() {
    let mut case = Case::new(Policy::ApproveAll).await;
    let path = json!({"path": case.path("parent/file")});
    let answer = case.call("child", "fs/read_text_file", path.clone()).await;
    assert_eq!(answer["result"]["content"], "parent", "{answer}");
    let unnamed = open(&case.client, &mut case.raw, "gone", case.dir.path()).await;
    drop(unnamed);
    let answer = case.call("gone", "fs/read_text_file", path).await;
    assert_eq!(answer["error"]["code"], -32602, "{answer}");
}

#[tokio::test]
async fn updates_of_a_child_session_are_shown_with_its_parent_and_are_no_part_of_its_text() {
    let mut case = Case::new(Policy::ApproveAll).await;
    let mut events = case.parent.events();
    let mut others = case.idle.events();
    case.update("child", text("by meta"), named("parent")).await;
    let announced = json!({"sessionUpdate": "subagent_update", "sessionId": "announced"});
    case.update("parent", announced, Value::Null).await;
    case.update("announced", text("by its parent"), Value::Null)
        .await;
    case.update("grandchild", text("deeper"), named("announced"))
        .await;
    case.update("child", text("again"), Value::Null).await;
    case.update("stranger", text("nobody's"), Value::Null).await;
    case.update("parent", text("own"), Value::Null).await;
    for (session, words) in [
        ("child", "by meta"),
        ("announced", "by its parent"),
        ("grandchild", "deeper"),
        ("child", "again"),
    ] {
        let expected = (session.to_owned(), said(words));
        assert_eq!(of_child(&mut events).await, expected);
    }
    case.end_turn().await;
    let first = within(case.turn.next()).await.unwrap();
    assert!(matches!(first.event, Event::ChildSession(_)), "{first:?}");
    assert_eq!(first.turn, Some(1));
    assert_eq!(within(case.turn.outcome()).await.unwrap().text, "own");
    assert!(others.next_ready().is_none());
}

#[tokio::test]
async fn what_a_child_session_did_unasked_ends_the_turn_of_its_parent() {
    let mut case = Case::new(Policy::ApproveReads).await;
    let call = json!({"sessionUpdate": "tool_call", "toolCallId": "c", "title": "Remove all",
        "kind": "execute", "status": "completed", "rawInput": {"command": "rm -r x"}});
    case.update("child", call, named("parent")).await;
    assert_eq!(case.raw.next().await["method"], "session/cancel");
    case.end_turn().await;
    let outcome = within(case.turn.outcome()).await.unwrap();
    assert_eq!(outcome.not_allowed.len(), 1, "{outcome:?}");
    assert!(outcome.not_allowed[0].contains("Remove all"), "{outcome:?}");
}
