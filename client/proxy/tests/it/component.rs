//! A proxy as a component of a conductor, which is scripted here.

use acp_proxy::{Conductor, Next, Proxy};
use acp_sdk::channel;
use acp_sdk::v1::methods::Prompt;
use acp_sdk::v1::{ContentBlock, PromptRequest};
use serde_json::json;

use crate::wire::{Peer, both_runtimes, prompt};

fn component() -> Peer {
    let proxy = Proxy::new("adds").on_request(
        |next: Next<Prompt>, mut request: PromptRequest| async move {
            request.prompt.push(ContentBlock::from("added"));
            next.call(request).await
        },
    );
    let (conductor, joined) = channel(64 << 10);
    tokio::spawn(Conductor::new().proxy(proxy).run_as_proxy(joined));
    Peer(conductor)
}

/// Initializes a component whose successor is scripted as well.
async fn initialized() -> Peer {
    let mut component = component();
    component.send(r#"{"jsonrpc":"2.0","id":0,"method":"proxy/initialize","params":{"protocolVersion":1,"later":1}}"#).await;
    let forwarded = component.json().await;
    assert_eq!(forwarded["method"], "proxy/successor");
    assert_eq!(
        forwarded["params"],
        json!({"method": "initialize", "params": {"protocolVersion": 1, "later": 1}})
    );
    let id = &forwarded["id"];
    component
        .send(&format!(
            r#"{{"jsonrpc":"2.0","id":{id},"result":{{"protocolVersion":1}}}}"#
        ))
        .await;
    let answer = component.json().await;
    assert_eq!(
        answer,
        json!({"jsonrpc": "2.0", "id": 0, "result": {"protocolVersion": 1}})
    );
    component
}

both_runtimes! {
    async fn messages_of_the_far_side_travel_in_envelopes() {
        let mut component = initialized().await;
        component.send(&prompt(1, "s", "hello")).await;
        let sent = component.json().await;
        assert_eq!(sent["method"], "proxy/successor");
        assert_eq!(sent["params"]["method"], "session/prompt");
        assert_eq!(sent["params"]["params"]["prompt"][1]["text"], "added");

        // A notification and a request of the successor reach the client as they are.
        component.send(r#"{"jsonrpc":"2.0","method":"proxy/successor","params":{"method":"session/update","params":{"n":1e400}}}"#).await;
        assert_eq!(component.text().await, r#"{"jsonrpc":"2.0","method":"session/update","params":{"n":1e400}}"#);
        component.send(r#"{"jsonrpc":"2.0","id":2,"method":"proxy/successor","params":{"method":"fs/read_text_file","params":{"path":"/x"}}}"#).await;
        let read = component.json().await;
        assert_eq!(read["method"], "fs/read_text_file");
        let id = &read["id"];
        component.send(&format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"content":"text"}}}}"#)).await;
        assert_eq!(component.json().await, json!({"jsonrpc": "2.0", "id": 2, "result": {"content": "text"}}));

        // The cancellation of the prompt is that of the request which carries it.
        component.send(r#"{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":1}}"#).await;
        let cancelled = component.json().await;
        assert_eq!(cancelled["method"], "$/cancel_request");
        assert_eq!(cancelled["params"]["requestId"], sent["id"]);
        let id = &sent["id"];
        component.send(&format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"stopReason":"cancelled"}}}}"#)).await;
        let answer = component.json().await;
        assert_eq!((&answer["id"], &answer["result"]["stopReason"]), (&json!(1), &json!("cancelled")));
    }

    async fn answers_to_no_request_never_reach_the_other_side() {
        let mut component = initialized().await;
        // An answer of the client, which the conductor would take for one of the successor.
        component.send(r#"{"jsonrpc":"2.0","id":987654,"result":{}}"#).await;
        component.send(r#"{"jsonrpc":"2.0","id":null,"method":"_x"}"#).await;
        let forwarded = component.json().await;
        assert_eq!(forwarded["params"]["method"], "_x");
        assert!(forwarded.as_object().unwrap().contains_key("id"), "{forwarded}");
    }

    async fn a_proxy_that_is_started_as_an_agent_says_what_it_is() {
        let mut component = component();
        component.send(r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1}}"#).await;
        let answer = component.json().await;
        let message = answer["error"]["message"].as_str().unwrap();
        assert!(message.starts_with("this is a proxy and no agent"), "{message}");
    }

    async fn an_envelope_without_a_method_is_refused_and_the_connection_goes_on() {
        let mut component = initialized().await;
        component.send(r#"{"jsonrpc":"2.0","method":"proxy/successor","params":{}}"#).await;
        component.send(r#"{"jsonrpc":"2.0","id":5,"method":"proxy/successor"}"#).await;
        assert_eq!(component.json().await["error"]["code"], -32602);
        component.send(&prompt(1, "s", "hello")).await;
        assert_eq!(component.json().await["params"]["method"], "session/prompt");
    }
}
