//! The lines of the audit log, by the route of the answer.

use std::io;
use std::sync::{Arc, Mutex};

use acp_sdk::v1::{
    ElicitationSchema, PermissionOption, PermissionOptionKind, StopReason, ToolKind,
};
use acp_server::event::{Event, EventBody, TurnEvent};
use acp_server::{Access, Handler, HandlerResult, PromptHandle, Received, Server, Session, Turn};
use acp_server_remote::{Token, TokenFile, Tokens};
use serde_json::{Value, json};

use crate::http::{Client, Host};
use crate::raw::PATIENCE;
use crate::websocket::Socket;

/// With a character that turns the text after it, and a line of its own.
const TITLE: &str = "ls \u{202e}txt\nallowed";

/// Asks for what the prompt says.
struct Asker;

impl Handler for Asker {
    type State = ();

    async fn prompt(&self, (): &mut (), turn: Turn) -> HandlerResult<StopReason> {
        match turn.prompt_text().as_str() {
            "form" => drop(turn.elicit("Your name?", ElicitationSchema::new()).await?),
            what => {
                let call = turn.tool_call(TITLE, ToolKind::Execute).await?;
                let always = PermissionOptionKind::AllowAlways;
                let always = PermissionOption::new("always", "Always", always);
                match what {
                    "always" => turn.ask_permission_with(&call, vec![always]).await?,
                    _ => turn.ask_permission(&call).await?,
                };
                call.complete("").await?;
            }
        }
        Ok(StopReason::EndTurn)
    }
}

/// What this thread logs.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl Lines {
    fn collect(&self) -> tracing::subscriber::DefaultGuard {
        let lines = self.clone();
        let subscriber = tracing_subscriber::fmt()
            .json()
            .flatten_event(true)
            .with_max_level(tracing::level_filters::LevelFilter::INFO)
            .with_writer(move || lines.clone())
            .finish();
        tracing::subscriber::set_default(subscriber)
    }

    /// Takes the one line that was written since the last call.
    fn one(&self) -> Value {
        let text = std::mem::take(&mut *self.0.lock().unwrap());
        let text = String::from_utf8(text).unwrap();
        let lines = text.lines().map(|line| serde_json::from_str(line).unwrap());
        let audit = |line: &Value| line["target"] == "acp_server::audit";
        let mut lines: Vec<Value> = lines.filter(audit).collect();
        assert_eq!(lines.len(), 1, "{text}");
        assert_eq!(lines[0]["level"], "INFO");
        lines.remove(0)
    }
}

impl io::Write for Lines {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(line);
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

struct Fixture {
    lines: Lines,
    /// As the owner of the master token uses it.
    master: Host,
    /// As the owner of a token `ci` uses it.
    named: Host,
    _folder: tempfile::TempDir,
    _collecting: tracing::subscriber::DefaultGuard,
}

impl Fixture {
    async fn new() -> Self {
        let lines = Lines::default();
        let collecting = lines.collect();
        let folder = tempfile::tempdir().unwrap();
        let file = TokenFile::new(folder.path().join("tokens.json"));
        let named = file.add("ci", Access::Full, None).unwrap();
        let master = Token::random().unwrap();
        let tokens = Tokens::new(&master).with_file(file).unwrap();
        let server = Server::new(Asker);
        let host = Host::with_rest(server, tokens).await;
        Self {
            lines,
            named: host.with_token(&named),
            master: host.with_token(&master),
            _folder: folder,
            _collecting: collecting,
        }
    }

    /// Starts a turn that nobody's client has begun, and waits for its question.
    async fn asking(&self, what: &str) -> (Session, u64, PromptHandle) {
        let session = self.master.server.create_session("/").await.unwrap();
        let content = acp_sdk::v1::ContentBlock::from(acp_sdk::v1::TextContent::new(what));
        let turn = session.prompt(vec![content]).unwrap();
        let question = asked(&session).await;
        (session, question, turn)
    }
}

/// Waits for the first question of a session.
async fn asked(session: &Session) -> u64 {
    let mut events = session.subscribe(0);
    loop {
        let next = tokio::time::timeout(PATIENCE, events.next()).await;
        if let Received::Event(Event {
            body:
                EventBody::Turn(
                    TurnEvent::PermissionAsked { question, .. }
                    | TurnEvent::ElicitationAsked { question, .. },
                ),
            ..
        }) = next.unwrap().unwrap()
        {
            return question.0;
        }
    }
}

fn prompt(session: &str, text: &str) -> Value {
    json!({ "sessionId": session, "prompt": [{ "type": "text", "text": text }] })
}

/// Checks a line about the permission that was answered so.
fn permission(line: &Value, session: &str, option: [&str; 3], who: [&str; 2]) {
    assert_eq!(line["message"], "a question was answered");
    assert_eq!(
        (&line["session"], &line["asked"]),
        (&json!(session), &json!("permission"))
    );
    assert_eq!(line["title"], r"ls \u{202e}txt\nallowed");
    assert_eq!(
        (&line["kind"], &line["outcome"]),
        (&json!("execute"), &json!("selected"))
    );
    let chosen = ["option", "option_name", "option_kind"].map(|name| line[name].as_str().unwrap());
    assert_eq!(chosen, option);
    assert_eq!(
        ["by", "route"].map(|name| line[name].as_str().unwrap()),
        who
    );
}

const ALLOWED: [&str; 3] = ["allow", "Allow", "allow_once"];
const REJECTED: [&str; 3] = ["reject", "Reject", "reject_once"];

#[tokio::test]
async fn answers_over_acp_have_the_token_and_the_transport() {
    let all = Fixture::new().await;
    let client = Client::connect(&all.named).await;
    let mut connection = client.stream(None, None).await;
    let session = client.new_session(&mut connection).await;
    let mut stream = client.stream(Some(&session), None).await;
    let turn = client.prompt(&session, "permission").await;
    loop {
        let message = stream.event().await.unwrap().data;
        if message["method"] == "session/request_permission" {
            let outcome = json!({ "outcome": { "outcome": "selected", "optionId": "allow" } });
            let answer = json!({ "jsonrpc": "2.0", "id": message["id"], "result": outcome });
            client.send_raw(&answer.to_string(), Some(&session)).await;
        }
        if message["id"] == turn && message["method"].is_null() {
            break;
        }
    }
    permission(
        &all.lines.one(),
        &session,
        ALLOWED,
        ["token ci", "acp/http"],
    );

    let mut socket = Socket::connect(&all.master).await;
    let session = socket.new_session().await;
    let turn = socket
        .send("session/prompt", prompt(&session, "permission"))
        .await;
    loop {
        let message = socket.receive().await.unwrap();
        if message["method"] == "session/request_permission" {
            let outcome = json!({ "outcome": { "outcome": "selected", "optionId": "reject" } });
            let answer = json!({ "jsonrpc": "2.0", "id": message["id"], "result": outcome });
            socket.text(answer.to_string()).await;
        }
        if message["id"] == turn && message["method"].is_null() {
            break;
        }
    }
    permission(
        &all.lines.one(),
        &session,
        REJECTED,
        ["master", "acp/websocket"],
    );
}

#[tokio::test]
async fn answers_over_rest_and_of_the_program_have_their_route() {
    let all = Fixture::new().await;
    let (session, question, turn) = all.asking("permission").await;
    let id = session.id().as_str();
    let body = json!({ "session_id": id, "permission_id": question.to_string(), "approved": true });
    let answered = all
        .named
        .at("/tool/approve")
        .post(&[], &body.to_string())
        .await;
    assert_eq!(answered.status, 200, "{answered:?}");
    turn.stop_reason().await.unwrap();
    permission(&all.lines.one(), id, ALLOWED, ["token ci", "rest"]);

    let (session, question, turn) = all.asking("permission").await;
    let outcome = acp_sdk::v1::SelectedPermissionOutcome::new("reject");
    let question = acp_server::event::QuestionId(question);
    session.answer_permission(question, outcome.into()).unwrap();
    turn.stop_reason().await.unwrap();
    let who = ["the program", "program"];
    permission(&all.lines.one(), session.id().as_str(), REJECTED, who);
}

#[tokio::test]
async fn a_call_that_an_earlier_answer_allows_has_a_line() {
    let all = Fixture::new().await;
    let (session, question, turn) = all.asking("always").await;
    let outcome = acp_sdk::v1::SelectedPermissionOutcome::new("always");
    let question = acp_server::event::QuestionId(question);
    session.answer_permission(question, outcome.into()).unwrap();
    turn.stop_reason().await.unwrap();
    let always = ["always", "Always", "allow_always"];
    let who = ["the program", "program"];
    permission(&all.lines.one(), session.id().as_str(), always, who);

    let content = acp_sdk::v1::ContentBlock::from(acp_sdk::v1::TextContent::new("always"));
    let turn = session.prompt(vec![content]).unwrap();
    turn.stop_reason().await.unwrap();
    let line = all.lines.one();
    assert_eq!(line["message"], "a question was not asked again");
    assert_eq!(
        (&line["title"], &line["option_kind"]),
        (&json!(r"ls \u{202e}txt\nallowed"), &json!("allow_always"))
    );
    assert_eq!(line["by"], "an earlier answer");
}

#[cfg(feature = "rpc")]
#[tokio::test]
async fn answers_over_rpc_do_not_have_what_was_entered() {
    let all = Fixture::new().await;
    let mut socket = Socket::open(&all.master).await;
    let capabilities = json!({ "elicitation": { "form": {} } });
    let hello = json!({ "protocolVersion": 1, "clientCapabilities": capabilities });
    socket.call("initialize", hello).await;
    let session = socket.new_session().await;
    let turn = socket
        .send("session/prompt", prompt(&session, "form"))
        .await;
    let opened = all.master.server.open_session(&session.as_str().into());
    let question = asked(&opened.unwrap()).await;
    let params = json!({ "requestId": format!("{session}/{question}"), "action": "accept",
        "content": { "name": "secret" } });
    let call = crate::http::request(1, "elicitation_respond", params);
    let answered = all.master.at("/rpc").post(&[], &call).await;
    assert_eq!(answered.json()["result"], json!({}), "{answered:?}");
    loop {
        let message = socket.receive().await.unwrap();
        if message["id"] == turn && message["method"].is_null() {
            break;
        }
    }
    let line = all.lines.one();
    assert!(!line.to_string().contains("secret"), "{line}");
    for (name, expected) in [
        ("asked", "elicitation"),
        ("title", "Your name?"),
        ("kind", "form"),
        ("outcome", "accept"),
        ("by", "master"),
        ("route", "rpc"),
    ] {
        assert_eq!(line[name], expected, "{name}: {line}");
    }
}

#[tokio::test]
async fn questions_of_a_cancelled_turn_are_withdrawn_by_nobody() {
    let all = Fixture::new().await;
    let (session, question, turn) = all.asking("permission").await;
    session.cancel();
    turn.stop_reason().await.unwrap();
    let line = all.lines.one();
    assert_eq!(line["message"], "a question was withdrawn");
    assert_eq!(
        (&line["outcome"], &line["question"]),
        (&json!("withdrawn"), &json!(question))
    );
    assert!(line["by"].is_null() && line["option"].is_null(), "{line}");
}

#[tokio::test]
async fn an_answer_in_place_of_a_person_is_that_of_the_server() {
    let fixture = Fixture::new().await;
    let session = fixture.master.server.create_session("/").await.unwrap();
    let mut policies = session.policies();
    policies.question_timeout = Some(std::time::Duration::from_millis(1));
    session.set_policies(policies);
    let turn = session.prompt(vec!["once".into()]).unwrap();
    turn.stop_reason().await.unwrap();
    let rejected = ["reject", "Reject", "reject_once"];
    let who = ["nobody answered within 0.001 s", "server"];
    permission(&fixture.lines.one(), session.id().as_str(), rejected, who);
}
