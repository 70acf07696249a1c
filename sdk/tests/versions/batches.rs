//! Several messages in one array, which version 2 allows and version 1 does not.

use std::time::Duration;

use acp_sdk::service::layers::Deadline;
use acp_sdk::{ConnectionBuilder, MultiVersion};
use serde_json::{Value, json};

use crate::support::{Log, New, NewClient, Old, OldClient, Raw, agent, agent_with, client};

fn call(id: u64, method: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": {"cwd": "/"}})
}

fn cancel() -> Value {
    json!({"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": "s"}})
}

/// An agent of version 2, initialized.
async fn initialized(log: &Log) -> Raw {
    initialized_with(ConnectionBuilder::new(), log).await
}

async fn initialized_with(connection: ConnectionBuilder, log: &Log) -> Raw {
    let (mut raw, _) = agent_with(connection, New(log.clone()));
    let info = json!({"name": "raw", "version": "0"});
    let params = json!({"protocolVersion": 2, "info": info});
    raw.ask(0, "initialize", params).await;
    raw
}

/// The ids and error codes of the answers in an array.
fn answers(batch: &Value) -> Vec<(Value, Option<i64>)> {
    let answers = batch.as_array().unwrap_or_else(|| panic!("{batch}"));
    let mut found: Vec<_> = answers
        .iter()
        .map(|answer| (answer["id"].clone(), answer["error"]["code"].as_i64()))
        .collect();
    found.sort_by_key(|(id, _)| id.to_string());
    found
}

#[tokio::test]
async fn the_answers_to_an_array_are_an_array() {
    let log = Log::default();
    let mut raw = initialized(&log).await;
    let batch = json!([
        call(1, "session/new"),
        cancel(),
        call(2, "_none"),
        7,
        call(3, "session/new")
    ]);
    raw.send(batch).await;
    let expected = [
        (json!(1), None),
        (json!(2), Some(-32601)),
        (json!(3), None),
        (json!(null), Some(-32600)),
    ];
    assert_eq!(answers(&raw.expect().await), expected);
    assert_eq!(log.all(), ["v2 initialize 2 raw", "v2 cancel"]);
}

/// The layer does not implement `takes_batches`, whose default is `false`.
#[tokio::test]
async fn an_array_is_accepted_behind_a_layer() {
    let layered = ConnectionBuilder::new().layer(Deadline::new().others(Duration::from_secs(60)));
    let mut raw = initialized_with(layered, &Log::default()).await;
    raw.send(json!([call(1, "session/new")])).await;
    assert_eq!(answers(&raw.expect().await), [(json!(1), None)]);
}

#[tokio::test]
async fn an_array_waits_for_its_slowest_and_nobody_else_does() {
    let mut raw = initialized(&Log::default()).await;
    // The prompt is answered only when its update has been written, and after the others.
    let prompt = json!([{"type": "text", "text": "x"}]);
    let mut slow = call(1, "session/prompt");
    slow["params"] = json!({"sessionId": "new", "prompt": prompt});
    raw.send_all(&[
        json!([slow, call(2, "session/new")]),
        call(3, "session/new"),
    ])
    .await;
    let mut seen = Vec::new();
    for _ in 0..3 {
        let message = raw.expect().await;
        match &message {
            Value::Array(_) => seen.push(format!("{:?}", answers(&message).len())),
            other if other["method"] == "session/update" => seen.push("update".to_owned()),
            other => seen.push(format!("answer {}", other["id"])),
        }
    }
    seen.sort();
    assert_eq!(seen, ["2", "answer 3", "update"]);
}

#[tokio::test]
async fn notifications_alone_are_not_answered() {
    let log = Log::default();
    let mut raw = initialized(&log).await;
    raw.send(json!([cancel(), cancel()])).await;
    let answer = json!({"jsonrpc": "2.0", "id": 9, "result": {}});
    raw.send(json!([answer])).await;
    raw.ask(1, "session/new", json!({"cwd": "/"})).await;
    assert_eq!(log.all()[1..], ["v2 cancel", "v2 cancel"]);
}

#[tokio::test]
async fn what_is_no_batch_gets_one_answer() {
    let mut raw = initialized(&Log::default()).await;
    let many = format!("[{}]", vec!["1"; 1001].join(","));
    for (text, code) in [
        ("[]", -32600),
        (" [ ] ", -32600),
        ("[1,", -32700),
        (&many, -32600),
    ] {
        raw.write(format!("{text}\n")).await;
        let answer = raw.expect().await;
        assert_eq!(
            (&answer["id"], &answer["error"]["code"]),
            (&json!(null), &json!(code))
        );
    }
    // Entries that are none are answered one by one, as far as garbage is answered at all.
    raw.send(json!(vec![json!([]); 1000])).await;
    let answered = answers(&raw.expect().await);
    assert!((1..=32).contains(&answered.len()), "{}", answered.len());
    raw.ask(1, "session/new", json!({"cwd": "/"})).await;
}

#[tokio::test]
async fn a_client_answers_bad_arrays_and_no_other_noise() {
    let (_agent, mut raw, _driver) = client(NewClient(Log::default()));
    raw.write("agent 1.0: this is no message\n".to_owned())
        .await;
    for (text, code) in [("[]", -32600), ("[1,", -32700)] {
        raw.write(format!("{text}\n")).await;
        let answer = raw.expect().await;
        assert_eq!(
            (&answer["id"], &answer["error"]["code"]),
            (&json!(null), &json!(code))
        );
    }
    raw.send(json!([call(1, "_none"), 7])).await;
    let expected = [(json!(1), Some(-32601)), (json!(null), Some(-32600))];
    assert_eq!(answers(&raw.expect().await), expected);
}

#[tokio::test]
async fn version_1_has_no_batches() {
    let (mut raw, _driver) = agent(Old::default());
    raw.send(json!([call(1, "session/new")])).await;
    let answer = raw.expect().await;
    assert_eq!(
        (&answer["id"], &answer["error"]["code"]),
        (&json!(null), &json!(-32600))
    );
}

#[tokio::test]
async fn an_agent_of_both_takes_batches_once_version_2_is_agreed_on() {
    for version in [1, 2] {
        let (mut raw, _driver) = agent(
            MultiVersion::agent()
                .version(Old::default())
                .version(New::default()),
        );
        let info = json!({"name": "raw", "version": "0"});
        let params = json!({"protocolVersion": version, "info": info});
        let request = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params});
        raw.send(json!([request])).await;
        assert_eq!(raw.expect().await["error"]["code"], -32600);
        raw.send(request).await;
        assert_eq!(raw.expect().await["result"]["protocolVersion"], version);
        raw.send(json!([call(1, "_any")])).await;
        assert_eq!(raw.expect().await.is_array(), version == 2);
    }
}

#[tokio::test]
async fn a_client_takes_batches_in_version_2_alone() {
    let log = Log::default();
    let update = json!({"sessionUpdate": "usage_update", "used": 1, "size": 2});
    let params = json!({"sessionId": "s", "update": update});
    let update = json!({"jsonrpc": "2.0", "method": "session/update", "params": params});
    let batch = [json!([update, update]), call(5, "_any")];

    let (_agent, mut raw, _driver) = client(NewClient(log.clone()));
    raw.send_all(&batch).await;
    assert_eq!(raw.expect().await["id"], 5);
    assert_eq!(log.all(), ["v2 update of s", "v2 update of s"]);

    let (_agent, mut raw, _driver) = client(OldClient(log.clone()));
    raw.send_all(&batch).await;
    assert_eq!(raw.expect().await["id"], 5);
    assert_eq!(log.all().len(), 2);
}
