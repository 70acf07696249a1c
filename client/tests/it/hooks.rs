//! The agent's requests: each hook is set separately and served by session.

use std::sync::{Arc, Mutex};

use acp_client::{
    Buffers, Client, Elicitation, Extensions, OpenFiles, Policy, SessionContext, Workspace,
};
use acp_sdk::v1::{
    CLIENT_METHODS, CreateElicitationRequest, ElicitationAcceptAction, ElicitationAction,
    ElicitationContentValue, ElicitationId,
};
use acp_sdk::{HandlerResult, Json};
use serde_json::{Value, json};

use crate::agent::{Raw, within};

/// A client whose agent is played by the test, with a session of this id in this directory.
async fn open(client: &Client, raw: &mut Raw, id: &str, cwd: &str) -> acp_client::Session {
    let (session, ()) = tokio::join!(
        client.new_session(cwd),
        raw.answer("session/new", json!({ "sessionId": id }))
    );
    session.unwrap()
}

/// Sends a request to the client and returns its result or error.
async fn ask(raw: &mut Raw, method: &str, params: Value) -> Value {
    raw.send(json!({"jsonrpc": "2.0", "id": "ask", "method": method, "params": params}))
        .await;
    let mut answer = raw.next().await;
    assert_eq!(answer["id"], "ask", "{answer}");
    match answer["error"].take() {
        Value::Null => answer["result"].take(),
        error => error,
    }
}

#[tokio::test]
async fn files_are_served_in_the_directories_of_the_session_that_asks() {
    let dirs = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let path = |at: usize, name: &str| dirs[at].path().join(name).to_str().unwrap().to_owned();
    for at in [0, 1] {
        std::fs::write(path(at, "file"), format!("of {at}")).unwrap();
    }
    let builder = Client::builder().workspace(Workspace::unguarded());
    let (client, mut raw) = Raw::connect(builder).await;
    let _sessions = [
        open(&client, &mut raw, "a", &path(0, "")).await,
        open(&client, &mut raw, "b", &path(1, "")).await,
    ];
    for (session, own, other) in [("a", 0, 1), ("b", 1, 0)] {
        let read = |at| json!({"sessionId": session, "path": path(at, "file")});
        let found = ask(&mut raw, "fs/read_text_file", read(own)).await;
        assert_eq!(found["content"], format!("of {own}"));
        let refused = ask(&mut raw, "fs/read_text_file", read(other)).await;
        assert_eq!(refused["code"], -32602, "{refused}");
        let write = json!({"sessionId": session, "path": path(other, "new"), "content": ""});
        let refused = ask(&mut raw, "fs/write_text_file", write).await;
        assert_eq!(refused["code"], -32602, "{refused}");

        let run = json!({"sessionId": session, "command": "cat", "args": ["file"]});
        let terminal = ask(&mut raw, "terminal/create", run).await["terminalId"].take();
        let id = json!({"sessionId": session, "terminalId": terminal});
        ask(&mut raw, "terminal/wait_for_exit", id.clone()).await;
        let output = ask(&mut raw, "terminal/output", id.clone()).await;
        assert_eq!(output["output"], format!("of {own}"));
        ask(&mut raw, "terminal/release", id).await;
    }
    let unknown = json!({"sessionId": "c", "path": path(0, "file")});
    let refused = ask(&mut raw, "fs/read_text_file", unknown).await;
    assert!(
        refused["message"]
            .as_str()
            .unwrap()
            .contains("no session c is open"),
        "{refused}"
    );
}

/// Both agents name their session `s`: ids are those of the agents.
#[tokio::test]
async fn terminals_belong_to_the_connection_that_created_them() {
    let dir = tempfile::tempdir().unwrap();
    let cwd = dir.path().to_str().unwrap();
    let workspace = Workspace::unguarded();
    let shared = || Client::builder().workspace(workspace.clone());
    let (client, mut raw) = Raw::connect(shared()).await;
    let (other_client, mut other) = Raw::connect(shared()).await;
    let session = open(&client, &mut raw, "s", cwd).await;
    let other_session = open(&other_client, &mut other, "s", cwd).await;

    let run =
        json!({"sessionId": "s", "command": "sh", "args": ["-c", "echo s3cret; exec sleep 600"]});
    let mut created = ask(&mut raw, "terminal/create", run.clone()).await;
    let terminal = json!({"sessionId": "s", "terminalId": created["terminalId"].take()});
    for method in ["output", "wait_for_exit", "kill", "release"] {
        let method = format!("terminal/{method}");
        let refused = within(ask(&mut other, &method, terminal.clone())).await;
        assert_eq!(refused["code"], -32002, "{method}: {refused}");
    }
    // Neither the end of the other session nor that of the other connection concerns it.
    drop(other_session);
    other_client.shutdown().await;
    let output = ask(&mut raw, "terminal/output", terminal.clone()).await;
    assert_eq!(output["exitStatus"], Value::Null, "{output}");
    // An agent cannot use up the terminals of another one.
    let (third_client, mut third) = Raw::connect(shared()).await;
    let _third_session = open(&third_client, &mut third, "s", cwd).await;
    let quick = json!({"sessionId": "s", "command": "true"});
    for _ in 0..64 {
        let created = ask(&mut third, "terminal/create", quick.clone()).await;
        assert!(created["terminalId"].is_string(), "{created}");
    }
    let refused = ask(&mut third, "terminal/create", quick.clone()).await;
    assert_eq!(refused["code"], -32603, "{refused}");
    let created = ask(&mut raw, "terminal/create", quick).await;
    assert!(created["terminalId"].is_string(), "{created}");
    drop(session);
}

#[tokio::test]
async fn a_session_that_is_being_created_has_its_files_already() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("AGENTS.md");
    std::fs::write(&file, "rules").unwrap();
    let builder = Client::builder()
        .workspace(Workspace::new())
        .permissions(Policy::ApproveReads);
    let (client, mut raw) = Raw::connect(builder).await;
    let (session, ()) = within(async {
        tokio::join!(client.new_session(dir.path()), async {
            let request = raw.next().await;
            let read = json!({"sessionId": "s", "path": file});
            let found = ask(&mut raw, "fs/read_text_file", read).await;
            assert_eq!(found["content"], "rules");
            let result = json!({"sessionId": "s"});
            raw.send(json!({"jsonrpc": "2.0", "id": request["id"], "result": result}))
                .await;
        })
    })
    .await;
    session.unwrap();
}

/// An editor with one file open.
#[derive(Clone, Default)]
struct Editor(Arc<Mutex<Option<(String, String)>>>);

impl OpenFiles for Editor {
    async fn text(&self, path: &str) -> Option<String> {
        let open = self.0.lock().unwrap();
        let (name, text) = open.as_ref()?;
        (name == path).then(|| text.clone())
    }

    async fn replace(&self, path: &str, text: &str) -> bool {
        let mut open = self.0.lock().unwrap();
        match open.as_mut() {
            Some((name, buffer)) if name == path => {
                *buffer = text.to_owned();
                true
            }
            _ => false,
        }
    }
}

#[tokio::test]
async fn what_is_not_saved_comes_before_what_is_on_disk() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    std::fs::write(path("open"), "saved").unwrap();
    std::fs::write(path("closed"), "on disk").unwrap();
    let editor = Editor::default();
    let unsaved = "one\ntwo\nthree".to_owned();
    *editor.0.lock().unwrap() = Some((path("open"), unsaved));
    let files = Buffers::new(editor.clone(), Workspace::unguarded());
    let (client, mut raw) = Raw::connect(Client::builder().files(files)).await;
    let _session = open(&client, &mut raw, "s", &path("")).await;
    let of = |name: &str| json!({"sessionId": "s", "path": path(name), "line": 2, "limit": 1});
    let read = ask(&mut raw, "fs/read_text_file", of("open")).await;
    assert_eq!(read["content"], "two\n");
    let whole = json!({"sessionId": "s", "path": path("closed")});
    assert_eq!(
        ask(&mut raw, "fs/read_text_file", whole).await["content"],
        "on disk"
    );
    for name in ["open", "closed"] {
        let write = json!({"sessionId": "s", "path": path(name), "content": "new"});
        assert_eq!(ask(&mut raw, "fs/write_text_file", write).await, json!({}));
    }
    let on_disk = |name: &str| std::fs::read_to_string(path(name)).unwrap();
    assert_eq!(
        (on_disk("open"), on_disk("closed")),
        ("saved".into(), "new".into())
    );
    assert_eq!(editor.0.lock().unwrap().as_ref().unwrap().1, "new");
    // The editor is not queried for files elsewhere, open or not.
    *editor.0.lock().unwrap() = Some(("/etc/passwd".to_owned(), "secret".to_owned()));
    let outside = json!({"sessionId": "s", "path": "/etc/passwd"});
    assert_eq!(
        ask(&mut raw, "fs/read_text_file", outside).await["code"],
        -32602
    );
    let terminal = json!({"sessionId": "s", "command": "true"});
    assert_eq!(
        ask(&mut raw, "terminal/create", terminal).await["code"],
        -32601
    );
}

/// A user who enters a name.
#[derive(Clone)]
struct User(&'static str, Arc<Mutex<Vec<String>>>);

impl Elicitation for User {
    async fn ask(
        &self,
        session: Option<&SessionContext>,
        request: &CreateElicitationRequest,
    ) -> ElicitationAction {
        let session = session.map_or("none", |session| session.id().as_str());
        self.1
            .lock()
            .unwrap()
            .push(format!("{session}: {}", request.message));
        let name = ElicitationContentValue::from(self.0);
        let content = [("name", name)].into_iter().collect();
        ElicitationAction::Accept(ElicitationAcceptAction::new().with_content(content))
    }

    fn completed(&self, id: &ElicitationId) {
        self.1.lock().unwrap().push(format!("{id} is done"));
    }
}

fn form(message: &str) -> Value {
    json!({"mode": "form", "sessionId": "s", "message": message, "requestedSchema": {
        "type": "object", "required": ["name"],
        "properties": {"name": {"type": "string", "maxLength": 3}}}})
}

#[tokio::test]
async fn the_user_is_asked_and_an_answer_that_does_not_fit_is_not_sent() {
    for (name, fits) in [("Ann", true), ("Anna", false)] {
        let user = User(name, Arc::default());
        let builder = Client::builder().elicitation(user.clone());
        let (client, mut raw) = Raw::connect(builder).await;
        let _session = open(&client, &mut raw, "s", "/").await;
        let answer = ask(&mut raw, "elicitation/create", form("Who?")).await;
        match fits {
            true => assert_eq!(
                answer,
                json!({"action": "accept", "content": {"name": "Ann"}})
            ),
            false => assert_eq!(answer["code"], -32603, "{answer}"),
        }
        assert_eq!(*user.1.lock().unwrap(), ["s: Who?"]);
        let url = json!({"mode": "url", "sessionId": "s", "message": "Log in", "elicitationId": "e",
            "url": "javascript:alert(1)"});
        assert_eq!(
            ask(&mut raw, "elicitation/create", url).await["code"],
            -32602
        );
        raw.send(json!({"jsonrpc": "2.0", "method": "elicitation/complete",
            "params": {"elicitationId": "e"}}))
            .await;
        // Requests are answered in the order of messages.
        ask(&mut raw, "_none", json!({})).await;
        assert_eq!(*user.1.lock().unwrap(), ["s: Who?", "e is done"]);
    }
}

#[tokio::test]
async fn without_hooks_nothing_is_declared_or_served() {
    let (client, mut raw) = Raw::connect(Client::builder()).await;
    let _session = open(&client, &mut raw, "s", "/").await;
    let asked = ask(&mut raw, "elicitation/create", form("Who?")).await;
    assert_eq!(asked["code"], -32601);
    let read = json!({"sessionId": "s", "path": "/etc/passwd"});
    assert_eq!(
        ask(&mut raw, "fs/read_text_file", read).await["code"],
        -32601
    );
    assert_eq!(ask(&mut raw, "_none", json!({})).await["code"], -32601);
}

struct Own;

impl Extensions for Own {
    async fn request(&self, method: &str, params: Option<Json>) -> HandlerResult<Json> {
        let params = params.map(|params| params.get().to_owned());
        Ok(Json::from(json!({ "method": method, "params": params })))
    }
}

#[tokio::test]
async fn methods_of_an_extension_are_answered() {
    let (_client, mut raw) = Raw::connect(Client::builder().extensions(Own)).await;
    let answer = ask(&mut raw, "_own/do", json!({"a": 1})).await;
    assert_eq!(answer, json!({"method": "_own/do", "params": "{\"a\":1}"}));
}

/// A hook that is added needs a row in the document.
#[test]
fn every_hook_is_in_the_document() {
    let hooks = include_str!("../../src/hooks/object_safe.rs");
    let hooks = hooks
        .lines()
        .filter_map(|line| line.trim().strip_suffix(" {"));
    let hooks = hooks.filter_map(|line| Some(line.split_once(" as Any")?.0));
    let hooks: Vec<_> = hooks.filter(|name| !name.contains('$')).collect();
    assert!(hooks.contains(&"Permissions"), "{hooks:?}");
    let document = include_str!("../../../docs/client.md");
    for hook in hooks {
        let row = format!("| `{hook}` | `");
        assert!(document.contains(&row), "docs/client.md has no row {row}");
    }
}

/// What an agent may send, besides the requests that the hooks answer: notifications, and proposals
/// without a hook.
pub const UNANSWERED: [&str; 8] = [
    "$/cancel_request",
    "_acp-sdk/session/state_changed",
    "auth/status_update",
    "elicitation/complete",
    "mcp/message",
    "proxy/initialize",
    "proxy/successor",
    "session/update",
];

/// A method that is added to the documents must get a hook, or be listed above. The client declares
/// the capabilities of all methods that have a hook.
#[tokio::test]
async fn every_request_of_the_documents_has_a_hook_and_is_declared_or_listed() {
    let user = User("", Arc::default());
    let builder = Client::builder()
        .workspace(Workspace::new())
        .elicitation(user);
    let hello = json!({"protocolVersion": 1});
    let (client, mut raw, said) = Raw::connect_asking(builder, hello).await;
    let declares = |pointer| {
        let value = said["clientCapabilities"].pointer(pointer);
        value.is_some_and(|value| !value.is_null() && *value != json!(false))
    };
    let dir = tempfile::tempdir().unwrap();
    let cwd = dir.path().to_str().unwrap();
    let _session = open(&client, &mut raw, "s", cwd).await;
    // Valid for all methods that are answered. An error about params is no answer: it precedes the
    // one about a method without a hook.
    let mut params = form("text");
    for (name, value) in [
        ("path", json!(format!("{cwd}/file"))),
        ("content", json!("")),
        ("command", json!("true")),
        ("terminalId", json!("t")),
        ("toolCall", json!({"toolCallId": "1"})),
        ("options", json!([])),
    ] {
        params[name] = value;
    }
    let mut unanswered = Vec::new();
    for facts in CLIENT_METHODS.iter() {
        let answer = ask(&mut raw, facts.name, params.clone()).await;
        if answer["code"] == -32601 || answer["code"] == -32602 {
            unanswered.push(facts.name);
        } else if let Some(pointer) = facts.capability {
            assert!(declares(pointer), "{}: {pointer}", facts.name);
        }
    }
    assert_eq!(unanswered, UNANSWERED);
}
