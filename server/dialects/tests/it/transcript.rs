//! A conversation of each dialect, as a fixture that is made by running it.

use acp_server::Server;
use acp_server_dialects::chimera::Chimera;
use acp_server_dialects::otter_acp::OtterAcp;
use acp_server_dialects::otter_http_acp::OtterHttpAcp;
use serde_json::{Value, json};

use crate::client::Client;
use crate::openoxide::{client_of, prompt};
use crate::script::Script;

/// Compares the lines of a conversation with a fixture; with `UPDATE_FIXTURES` set it is written.
fn compare(name: &str, lines: &[String], replaced: &[(&str, &str)]) {
    let mut text = lines.join("\n") + "\n";
    for (from, to) in replaced {
        text = text.replace(from, to);
    }
    let path = format!("{}/tests/fixtures/{name}.txt", env!("CARGO_MANIFEST_DIR"));
    if std::env::var_os("UPDATE_FIXTURES").is_some() {
        std::fs::write(&path, &text).unwrap();
    }
    let kept = std::fs::read_to_string(&path).unwrap();
    let (found, kept) = (messages(&text), messages(&kept));
    assert_eq!(found, kept, "{path}; set UPDATE_FIXTURES to write it anew");
}

/// The messages of a conversation, with who sends each. Features of other crates decide in which order JSON has
/// its members.
fn messages(text: &str) -> Vec<(&str, Value)> {
    text.lines()
        .map(|line| {
            let (from, message) = line.split_once(' ').unwrap();
            (from, serde_json::from_str(message).unwrap())
        })
        .collect()
}

#[tokio::test]
async fn chimera() {
    let mut client = Client::of(Chimera::new(Server::new(Script)));
    let (created, _) = client
        .result("session/create", json!({ "working_dir": "." }))
        .await;
    let id = created["session_id"].as_str().unwrap().to_owned();
    for text in ["say Hel|lo", "think", "tool works", "usage"] {
        let params = json!({ "session_id": id, "message": text });
        client.result("session/sendMessage", params).await;
    }
    let (forked, _) = client
        .result("session/fork", json!({ "session_id": id }))
        .await;
    let copy = forked["session_id"].as_str().unwrap().to_owned();
    compare(
        "chimera",
        &client.lines,
        &[(&id, "session-1"), (&copy, "session-2")],
    );
}

#[tokio::test]
async fn openoxide() {
    let mut client = client_of(&Server::new(Script));
    client.result("initialize", json!({})).await;
    let (created, _) = client
        .result("session/new", json!({ "working_dir": "/w" }))
        .await;
    let id = created["session_id"].clone();
    for text in ["say Hel|lo", "plan", "files", "commands", "/review"] {
        client.result("session/prompt", prompt(&id, text)).await;
    }
    client.error("session/prompt", prompt(&id, "fail")).await;
    client.send("session/prompt", prompt(&id, "hold A")).await;
    client.next().await;
    let cancel = json!({ "jsonrpc": "2.0", "method": "$/cancelRequest", "params": { "id": 9 } });
    client.write(&cancel.to_string()).await;
    client.next().await;
    let (forked, _) = client
        .result("session/fork", json!({ "session_id": id, "event_id": 5 }))
        .await;
    let copy = forked["session_id"].as_str().unwrap().to_owned();
    client
        .result("session/delete", json!({ "session_id": copy }))
        .await;
    let lines = client.lines.iter().map(|line| without_times(line));
    compare(
        "openoxide",
        &lines.collect::<Vec<_>>(),
        &[(id.as_str().unwrap(), "session-1"), (&copy, "session-2")],
    );
}

#[tokio::test]
async fn otter_acp() {
    let mut client = Client::of(OtterAcp::new(Server::new(Script)));
    client.result("initialize", json!({})).await;
    let (created, _) = client.result("session/new", json!({ "cwd": "/w" })).await;
    let id = created["sessionId"].as_str().unwrap().to_owned();
    for text in ["say Hel|lo", "tool works", "usage"] {
        let params = json!({ "sessionId": id, "message": text });
        client.result("session/message", params).await;
    }
    let params = json!({ "sessionId": id, "message": "fail" });
    client.error("session/message", params).await;
    client
        .result(
            "session/resume",
            json!({ "sessionId": id, "sinceEventId": 11 }),
        )
        .await;
    let version = format!("\"version\":\"{}\"", env!("CARGO_PKG_VERSION"));
    compare(
        "otter-acp",
        &client.lines,
        &[(&id, "otter-1"), (&version, "\"version\":\"0\"")],
    );
}

#[tokio::test]
async fn otter_http_acp() {
    let mut client = Client::of(OtterHttpAcp::new(Server::new(Script)));
    client
        .result("initialize", json!({ "protocolVersion": 1 }))
        .await;
    let (created, _) = client.result("session/new", json!({ "cwd": "/w" })).await;
    let id = created["session_id"].as_str().unwrap().to_owned();
    for text in ["say Hel|lo", "tool works"] {
        let params = json!({ "session_id": id, "prompt": text });
        client.result("session/turn", params).await;
    }
    let params = json!({ "session_id": id, "prompt": "fail" });
    client.error("session/turn", params).await;
    client
        .result("session/cancel", json!({ "session_id": id }))
        .await;
    client.result("session/list", json!({})).await;
    client
        .result("session/get", json!({ "session_id": id }))
        .await;
    let lines = client.lines.iter().map(|line| without_times(line));
    compare(
        "otter-http-acp",
        &lines.collect::<Vec<_>>(),
        &[(&id, "session-1")],
    );
}

/// Replaces the values of members that are times.
fn without_times(line: &str) -> String {
    let mut line = line.to_owned();
    for member in ["ts", "started_at", "time", "updated_at"] {
        let before = format!("\"{member}\":\"");
        let mut parts = line.split(&before);
        let mut masked = parts.next().unwrap().to_owned();
        for part in parts {
            let (_, rest) = part.split_once('"').unwrap();
            masked += &format!("{before}TIME\"{rest}");
        }
        line = masked;
    }
    line
}
