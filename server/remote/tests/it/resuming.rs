//! In version 2, replay, marker and state precede the answer to `session/resume`, on any transport.

use acp_reference_agent::Reference;
use acp_server::Server;
use acp_server_remote::EndpointSettings;
use serde_json::{Value, json};

use crate::http::{Client, Host, Open, request};
use crate::raw::PATIENCE;
use crate::websocket::Socket;

/// What precedes the answer, for a session with one turn.
const REPLAY: [&str; 4] = [
    "user_message_chunk",
    "agent_message_chunk",
    "replay_complete",
    "idle",
];

fn hello() -> Value {
    json!({ "protocolVersion": 2, "info": { "name": "test", "version": "1" } })
}

async fn host() -> Host {
    Host::start(Server::new(Reference), &EndpointSettings::default()).await
}

/// Returns the kind of an update, or its state, or `answer` for the answer to this request.
fn word(message: &Value, request: u64) -> String {
    let update = &message["params"]["update"];
    let word = update["state"]
        .as_str()
        .or(update["sessionUpdate"].as_str());
    match message["id"] == request && message["result"].is_object() {
        true => "answer".to_owned(),
        false => word.unwrap_or_else(|| panic!("{message}")).to_owned(),
    }
}

async fn words(stream: &mut Open, request: u64, count: usize) -> Vec<String> {
    let mut words = Vec::new();
    while words.len() < count {
        let event = tokio::time::timeout(PATIENCE, stream.event()).await;
        let event = event.unwrap_or_else(|_| panic!("nothing follows {words:?}"));
        words.push(word(&event.unwrap().data, request));
    }
    words
}

/// A session with one turn.
async fn talked(host: &Host) -> String {
    let client = Client::connect_with(host, hello()).await;
    let mut connection = client.stream(None, None).await;
    let session = client.new_session(&mut connection).await;
    let mut stream = client.stream(Some(&session), None).await;
    client.prompt(&session, "hello").await;
    while stream.event().await.unwrap().data["params"]["update"]["state"] != "idle" {}
    session
}

fn resume(session: &str, replays: bool) -> Value {
    let mut params = json!({ "sessionId": session, "cwd": "/" });
    if replays {
        params["replayFrom"] = json!({ "type": "start" });
    }
    params
}

/// It must not wait for ever, and what follows is sent on the stream that it opens.
#[tokio::test]
async fn a_client_that_opens_the_stream_after_the_answer_is_sent_the_replay_before_it() {
    let host = host().await;
    for (replays, names_it) in [(true, true), (true, false), (false, true)] {
        let session = talked(&host).await;
        let client = Client::connect_with(&host, hello()).await;
        let mut connection = client.stream(None, None).await;
        let body = request(7, "session/resume", resume(&session, replays));
        client.send_raw(&body, names_it.then_some(&*session)).await;
        let before = if replays { &REPLAY[..] } else { &REPLAY[3..] };
        let seen = words(&mut connection, 7, before.len() + 1).await;
        assert_eq!(seen[..before.len()], *before, "{names_it}");
        assert_eq!(seen[before.len()], "answer", "{names_it}");
        let mut stream = client.stream(Some(&session), None).await;
        client.prompt(&session, "hello").await;
        assert_eq!(words(&mut stream, 0, 1).await, ["running"]);
    }
}

#[tokio::test]
async fn an_open_stream_is_sent_the_replay() {
    let host = host().await;
    let session = talked(&host).await;
    let client = Client::connect_with(&host, hello()).await;
    let mut connection = client.stream(None, None).await;
    let mut stream = client.stream(Some(&session), None).await;
    let request = client.send("session/resume", resume(&session, true)).await;
    assert_eq!(words(&mut stream, request, 4).await, REPLAY);
    assert_eq!(words(&mut connection, request, 1).await, ["answer"]);
}

#[tokio::test]
async fn a_socket_is_sent_the_replay_before_the_answer() {
    let host = host().await;
    let session = talked(&host).await;
    let mut socket = Socket::open(&host).await;
    socket.call("initialize", hello()).await;
    let (before, answer) = socket.call("session/resume", resume(&session, true)).await;
    assert!(answer["result"].is_object(), "{answer}");
    let before: Vec<_> = before.iter().map(|message| word(message, 0)).collect();
    assert_eq!(before, REPLAY);
}
