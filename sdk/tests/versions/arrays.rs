//! Arrays of messages, which no version has: agents and clients answer each with one error.

use std::time::Duration;

use acp_sdk::MultiVersion;
use serde_json::{Value, json};

use crate::support::{Log, New, NewClient, Old, OldClient, Raw, agent, client};

fn call(method: &str, params: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
}

fn initialize(version: u16) -> Value {
    let info = json!({"name": "raw", "version": "0"});
    call(
        "initialize",
        &json!({"protocolVersion": version, "info": info}),
    )
}

fn update() -> Value {
    let update = json!({"sessionUpdate": "usage_update", "used": 1, "size": 2});
    let params = json!({"sessionId": "s", "update": update});
    json!({"jsonrpc": "2.0", "method": "session/update", "params": params})
}

/// Sends every form of array, to an agent also arrays that were cut off, and expects one error for each.
async fn refuses_arrays(raw: &mut Raw, is_agent: bool) {
    let cancel =
        json!({"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": "s"}});
    let new = call("session/new", &json!({"cwd": "/"}));
    let result = json!({"jsonrpc": "2.0", "id": 0, "result": {}});
    let full = json!([initialize(2), new, cancel, update(), 7]);
    // What an array that was cut off contains is not known.
    let cut_off = [&full.to_string()[..30], "[", "[1,"].map(str::to_owned);
    let whole = [
        json!([]),
        json!([[]]),
        json!([1, 2]),
        json!([cancel, update()]),
        json!([result, result]),
        json!([new]),
        full,
        json!(vec![0; 1001]),
    ]
    .map(|array| array.to_string());
    let cut_off = cut_off.into_iter().filter(|_| is_agent);
    for text in whole.into_iter().chain(cut_off) {
        raw.write(format!(" {text} \n")).await;
        let answer = tokio::time::timeout(Duration::from_secs(60), raw.expect()).await;
        let answer = answer.unwrap_or_else(|_| panic!("{text} is not answered"));
        assert_eq!(
            (&answer["id"], &answer["error"]["code"]),
            (&json!(null), &json!(-32600)),
            "{text}: {answer}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn an_agent_answers_an_array_with_one_error_and_goes_on() {
    let log = Log::default();
    let both = || {
        MultiVersion::agent()
            .version(Old(log.clone()))
            .version(New(log.clone()))
    };
    let agents = [
        (agent(Old(log.clone())), 1),
        (agent(New(log.clone())), 2),
        (agent(both()), 1),
        (agent(both()), 2),
    ];
    for ((mut raw, _driver), version) in agents {
        let before = log.all().len();
        refuses_arrays(&mut raw, true).await;
        raw.send(initialize(version)).await;
        assert_eq!(raw.expect().await["result"]["protocolVersion"], version);
        refuses_arrays(&mut raw, true).await;
        raw.ask(1, "session/new", json!({"cwd": "/", "mcpServers": []}))
            .await;
        assert_eq!(log.all().len(), before + 1, "only `initialize` was handled");
    }
}

#[tokio::test(start_paused = true)]
async fn a_client_answers_arrays_and_no_stray_text() {
    let log = Log::default();
    let (_old, raw_of_old, _driver_of_old) = client(OldClient(log.clone()));
    let (_new, raw_of_new, _driver_of_new) = client(NewClient(log.clone()));
    for mut raw in [raw_of_old, raw_of_new] {
        for stray in [
            "agent 1.0: this is no message",
            "[INFO] nor is this",
            "{",
            "[\"no\"",
        ] {
            raw.write(format!("{stray}\n")).await;
        }
        refuses_arrays(&mut raw, false).await;
        raw.send(call("_any", &json!({}))).await;
        assert_eq!(raw.expect().await["error"]["code"], -32601);
    }
    assert!(log.all().is_empty(), "{:?}", log.all());
}
