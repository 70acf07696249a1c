//! What is no proper message, and that the connection goes on after it.

use serde_json::{Value, json};

use super::support::{TestAgent, agent};

/// The code and id of the answer to one line, after which the connection still works.
async fn answer(line: &[u8]) -> (Value, Value) {
    let (mut raw, _driver) = agent(TestAgent::default());
    raw.write(line).await;
    raw.write("\n").await;
    let answer = raw.expect().await;
    raw.assert_alive().await;
    (answer["error"]["code"].clone(), answer["id"].clone())
}

#[tokio::test]
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
    let array = br#"{"jsonrpc":"2.0","id":1,"method":"session/prompt","params":[]}"#;
    assert_eq!(answer(array).await, (json!(-32602), json!(1)));
}

#[tokio::test]
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

#[tokio::test]
async fn notifications_and_answers_are_never_answered() {
    let (mut raw, _driver) = agent(TestAgent::default());
    for line in [
        r#"{"jsonrpc":"2.0","method":"no/such"}"#,
        r#"{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":5}}"#,
        r#"{"jsonrpc":"2.0","method":"$/cancel_request","params":{}}"#,
        r#"{"jsonrpc":"2.0","method":"$/unheard_of"}"#,
        r#"{"jsonrpc":"2.0","id":99,"result":{}}"#,
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

#[tokio::test]
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

#[tokio::test]
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
