//! Depth, of calls and of JSON, that takes no depth of the stack.

use acp_sdk::Json;
use serde_json::json;

use super::support::{TestAgent, TestClient, agent, descend, pair};

#[test]
fn chains_of_handlers_need_no_deep_stack() {
    let run = || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(async {
            let (handle, _drivers) = pair(TestAgent::default(), TestClient::default());
            let params = Json::from(json!({"depth": 100}));
            descend(handle.peer(), Some(params)).await.unwrap()
        })
    };
    let small = std::thread::Builder::new().stack_size(512 << 10).spawn(run);
    assert_eq!(small.unwrap().join().unwrap().get(), "\"bottom\"");
}

async fn deep_json_needs_no_deep_stack() {
    // Everywhere a message can be deep: params, a field, an error, a result, an array.
    let deep = "[".repeat(10_000) + &"]".repeat(10_000);
    let lines = [
        format!(r#"{{"jsonrpc":"2.0","id":1,"method":"_alive","params":{deep}}}"#),
        format!(
            r#"{{"jsonrpc":"2.0","id":2,"method":"session/prompt","params":{{"sessionId":{deep},"prompt":[]}}}}"#
        ),
        format!(
            r#"{{"jsonrpc":"2.0","id":3,"method":"session/prompt","params":{{"sessionId":"s","prompt":{deep}}}}}"#
        ),
        format!(r#"{{"jsonrpc":"2.0","id":4,"error":{deep}}}"#),
        format!(r#"{{"jsonrpc":"2.0","id":5,"result":{deep}}}"#),
        format!(
            r#"{{"jsonrpc":"2.0","method":"session/cancel","params":{{"sessionId":"s","_meta":{deep}}}}}"#
        ),
        deep.clone(),
        "[".repeat(100_000),
    ];
    let (mut raw, _driver) = agent(TestAgent::default());
    let mut codes = Vec::new();
    for line in lines {
        raw.write(format!("{line}\n")).await;
    }
    raw.send(json!({"jsonrpc": "2.0", "id": "end", "method": "_alive"}))
        .await;
    loop {
        let answer = raw.expect().await;
        if answer["id"] == "end" {
            break;
        }
        codes.push((answer["id"].clone(), answer["error"]["code"].clone()));
    }
    let expected = [
        (json!(1), json!(null)),
        (json!(2), json!(-32602)),
        (json!(3), json!(-32602)),
        (json!(null), json!(-32600)),
        (json!(null), json!(-32600)),
    ];
    assert_eq!(codes, expected);
}

crate::on_every_runtime!(deep_json_needs_no_deep_stack,);
