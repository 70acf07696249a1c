//! What is no proper message, and that the connection goes on after it.

use std::sync::{Arc, Mutex};

use acp_sdk::{ConnectionBuilder, Observer};
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;

use super::support::{TestAgent, TestClient, agent, client, raw, raw_prompt};

/// The code and id of the answer to one line, after which the connection still works.
async fn answer(line: &[u8]) -> (Value, Value) {
    let (mut raw, _driver) = agent(TestAgent::default());
    raw.write(line).await;
    raw.write("\n").await;
    let answer = raw.expect().await;
    raw.assert_alive().await;
    (answer["error"]["code"].clone(), answer["id"].clone())
}

async fn bad_lines_get_the_code_they_deserve() {
    let null = json!(null);
    assert_eq!(answer(b"{\"jsonrpc\"").await, (json!(-32700), null.clone()));
    assert_eq!(answer(b"\xff\xfe").await, (json!(-32700), null.clone()));
    assert_eq!(answer(b"[]").await, (json!(-32600), null.clone()));
    assert_eq!(
        answer(br#"{"jsonrpc":"2.0","id":[],"method":"x"}"#).await,
        (json!(-32600), null)
    );
    let unknown = br#"{"jsonrpc":"2.0","id":-3,"method":"no/such"}"#;
    assert_eq!(answer(unknown).await, (json!(-32601), json!(-3)));
    // The second has no member that must be there.
    for method in ["session/prompt", "logout"] {
        let array = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":[]}}"#);
        assert_eq!(answer(array.as_bytes()).await, (json!(-32602), json!(1)));
    }
}

async fn wrong_params_name_the_json_pointer() {
    let (mut raw, _driver) = agent(TestAgent::default());
    let params = json!({"sessionId": "s", "prompt": [{"type": "text", "text": 5}]});
    raw.send(json!({"jsonrpc": "2.0", "id": 1, "method": "session/prompt", "params": params}))
        .await;
    assert_eq!(
        raw.expect().await["error"]["data"]["path"],
        "/prompt/0/text"
    );
}

async fn notifications_and_answers_are_never_answered() {
    let (mut raw, _driver) = agent(TestAgent::default());
    for line in [
        r#"{"jsonrpc":"2.0","method":"no/such"}"#,
        r#"{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":5}}"#,
        r#"{"jsonrpc":"2.0","method":"$/cancel_request","params":{}}"#,
        r#"{"jsonrpc":"2.0","method":"$/unheard_of"}"#,
        r#"{"jsonrpc":"2.0","id":99,"result":{}}"#,
        r#"{"jsonrpc":"2.0","id":[],"result":{}}"#,
        r#"{"jsonrpc":"2.0","id":"99","error":{"code":1,"message":"x"}}"#,
        r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"x"}}"#,
        r#"{"jsonrpc":"2.0","error":{"code":-32700,"message":"x"}}"#,
        "",
        "   ",
    ] {
        raw.write(format!("{line}\r\n")).await;
        raw.assert_alive().await;
    }
}

async fn a_flood_of_garbage_gets_a_bounded_number_of_errors() {
    let (mut raw, _driver) = agent(TestAgent::default());
    for _ in 0..1000 {
        raw.write("garbage\n".repeat(100)).await;
    }
    raw.send(json!({"jsonrpc": "2.0", "id": 1, "method": "_alive"}))
        .await;
    let mut errors = 0;
    while raw.expect().await["id"] != 1 {
        errors += 1;
    }
    assert!((1..=32).contains(&errors), "{errors} errors");
}

async fn methods_may_be_escaped_and_depth_does_no_harm() {
    let (mut raw, _driver) = agent(TestAgent::default());
    let depth = "[".repeat(10_000) + &"]".repeat(10_000);
    raw.write(format!(
        "{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"session\\/new\",\
         \"params\":{{\"cwd\":\"/\",\"mcpServers\":[],\"x\":{depth},\"n\":1e999}}}}\n"
    ))
    .await;
    assert_eq!(raw.expect().await["result"]["sessionId"], "s1");
}

async fn a_client_answers_what_it_does_not_know() {
    let (_handle, mut raw, _driver) = client(TestClient::default());
    // What an agent prints by accident is not a question.
    raw.write("Starting up!\n[INFO] ready\n{\"id\":\n").await;
    // One that no version has, one of a vendor, and one that this client does not serve.
    for (id, method) in ["no/such", "_vendor/ask", "fs/read_text_file"]
        .iter()
        .enumerate()
    {
        let params = json!({"sessionId": "s", "path": "/a"});
        raw.send(json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}))
            .await;
        let answer = raw.expect().await;
        assert_eq!(
            (&answer["id"], &answer["error"]["code"]),
            (&json!(id), &json!(-32601)),
            "{method}"
        );
    }
}

async fn an_error_repeats_only_the_beginning_of_what_is_endless() {
    let (mut raw, _driver) = agent(TestAgent::default());
    let long = "x".repeat(100_000);
    for method in ["_alive", &long] {
        raw.send(json!({"jsonrpc": "2.0", "id": long, "method": method}))
            .await;
        let answer = raw.expect().await;
        assert_eq!(answer["id"], long, "the id is repeated whole");
        let message = answer["error"]["message"].as_str().unwrap_or_default();
        assert!(message.len() < 200, "{} bytes", message.len());
    }
    // The same of an id that is in use.
    let request = raw_prompt(long.as_str(), "hang");
    raw.send(request.clone()).await;
    raw.send(request).await;
    let refusal = raw.expect().await;
    assert_eq!(
        (&refusal["id"], &refusal["error"]["code"]),
        (&json!(null), &json!(-32600))
    );
    assert!(refusal.to_string().len() < 400);
}

async fn a_message_earns_an_error_and_no_more_than_the_bound_is_saved() {
    let (mut raw, _driver) = agent(TestAgent::default());
    // As many as may be at once, however much was said well before.
    for _ in 0..100 {
        raw.assert_alive().await;
    }
    raw.write("garbage\n".repeat(100)).await;
    for _ in 0..32 {
        assert_eq!(raw.expect().await["error"]["code"], -32700);
    }
    for _ in 0..2 {
        raw.assert_alive().await;
        raw.write("garbage\ngarbage\n").await;
        assert_eq!(raw.expect().await["error"]["code"], -32700);
    }
    raw.assert_alive().await;
    // What has an id is waited for, and so it is always answered.
    raw.write("{\"id\":3,\"method\":\"_alive\"}\n".repeat(100))
        .await;
    for _ in 0..100 {
        assert_eq!(raw.expect().await["id"], 3);
    }
    raw.assert_alive().await;
}

/// Notes what it is told of, in a few words.
#[derive(Clone, Default)]
struct Watcher(Arc<Mutex<Vec<String>>>);

impl Watcher {
    fn note(&self, what: String) {
        self.0.lock().unwrap().push(what);
    }
}

impl Observer for Watcher {
    fn invalid_message(&self, line: &[u8], reason: &str) {
        let line = String::from_utf8_lossy(line);
        self.note(format!("bad {line}: {}", &reason[..20]));
    }
    fn message_too_long(&self, bytes: u64) {
        self.note(format!("long {bytes}"));
    }
    fn dropped(&self, method: &str, path: &str, _: &str) {
        self.note(format!("dropped {method} {path}"));
    }
    fn uncorrelated_error(&self, error: &str) {
        self.note(format!("complaint {error}"));
    }
}

async fn who_watches_is_told_of_all_that_is_put_up_with() {
    let watcher = Watcher::default();
    let (reader, mut input) = tokio::io::duplex(1 << 16);
    let driver = ConnectionBuilder::new()
        .max_message_bytes(200)
        .observer(watcher.clone())
        .client(TestClient::default(), (reader, tokio::io::sink()));
    let lines = [
        "garbage",
        &"x".repeat(201),
        r#"{"jsonrpc":"2.0","error":{"code":-32700,"message":"what?"}}"#,
        r#"{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"tool_call","toolCallId":"c","title":"t","kind":5}}}"#,
        r#"{"jsonrpc":"2.0","method":"session/update","params":{}}"#,
    ];
    input.write_all(lines.join("\n").as_bytes()).await.unwrap();
    drop(input);
    driver.await.unwrap();
    assert_eq!(
        *watcher.0.lock().unwrap(),
        [
            "bad garbage: the line is not JSON",
            "long 201",
            r#"complaint {"code":-32700,"message":"what?"}"#,
            "dropped session/update /update/kind",
            "dropped session/update ",
        ]
    );
}

async fn a_client_answers_invalid_input_on_demand() {
    for answers in [true, false] {
        let connection = ConnectionBuilder::new().answer_invalid(answers);
        let (ours, theirs) = tokio::io::duplex(1 << 16);
        let (reader, writer) = tokio::io::split(ours);
        let driver = connection.client(TestClient::default(), (reader, writer));
        let _driver = tokio::spawn(driver);
        let mut peer = raw(theirs);
        peer.write("garbage\n").await;
        if answers {
            assert_eq!(peer.expect().await["error"]["code"], -32700);
        }
        peer.assert_alive().await;
    }
}

/// Panics at whatever it is notified of.
struct Panicking;

impl Observer for Panicking {
    fn invalid_message(&self, _: &[u8], _: &str) {
        panic!("a fault in the observer");
    }
    fn dropped(&self, _: &str, _: &str, _: &str) {
        panic!("a fault in the observer");
    }
}

async fn an_observer_that_panics_ends_nothing() {
    let (ours, theirs) = tokio::io::duplex(1 << 16);
    let (reader, writer) = tokio::io::split(ours);
    let driver = ConnectionBuilder::new()
        .observer(Panicking)
        .agent(TestAgent::default(), (reader, writer));
    let _driver = tokio::spawn(driver);
    let mut peer = raw(theirs);
    peer.write("garbage\n").await;
    assert_eq!(peer.expect().await["error"]["code"], -32700);
    peer.send(json!({"jsonrpc": "2.0", "method": "session/cancel", "params": {}}))
        .await;
    peer.assert_alive().await;
}

crate::on_every_runtime!(
    a_client_answers_invalid_input_on_demand,
    an_observer_that_panics_ends_nothing,
    bad_lines_get_the_code_they_deserve,
    wrong_params_name_the_json_pointer,
    notifications_and_answers_are_never_answered,
    a_flood_of_garbage_gets_a_bounded_number_of_errors,
    methods_may_be_escaped_and_depth_does_no_harm,
    a_client_answers_what_it_does_not_know,
    an_error_repeats_only_the_beginning_of_what_is_endless,
    a_message_earns_an_error_and_no_more_than_the_bound_is_saved,
    who_watches_is_told_of_all_that_is_put_up_with,
);
