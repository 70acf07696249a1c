//! Chains that are started again when a part of them has ended.

use std::time::Duration;

use acp_client::{AgentCommand, Reconnect};
use acp_proxy::{Conductor, End, Proxy, proxies};
use acp_sdk::channel;
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use crate::wire::{Peer, both_runtimes, prompt};

/// An agent that ends at the prompt "die". `LOADS` says whether it can load sessions.
const AGENT: &str = r#"
id() { printf %s "$line" | sed 's/.*"id":\([^,}]*\).*/\1/'; }
answer() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$(id)" "$1"; }
update() { printf '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"%s"}}}}\n' "$1"; }
while read -r line; do
    case $line in
        *'"initialize"'*) answer '{"protocolVersion":1,"agentCapabilities":{"loadSession":LOADS}}' ;;
        *'"session/new"'*) answer '{"sessionId":"s"}' ;;
        *'"session/load"'*) update old; answer '{}' ;;
        *die*) echo gone >&2; exit 7 ;;
        *'"session/prompt"'*) update new; answer '{"stopReason":"end_turn"}' ;;
    esac
done"#;

async fn started(loads: bool) -> (Peer, JoinHandle<End>) {
    let (client, near) = channel(64 << 10);
    let first_wait = Duration::from_millis(1);
    let restart = Reconnect::default().with_waits(first_wait, Duration::from_secs(1));
    let redact = proxies::redact(["secret"]).unwrap();
    let chain = Conductor::new().proxy(redact).proxy(Proxy::new("other"));
    let agent = AgentCommand::new("sh");
    let agent = agent.args(["-c".to_owned(), AGENT.replace("LOADS", &loads.to_string())]);
    let chain = chain.restart(restart);
    let running = tokio::spawn(async move { chain.run(near, agent).await.unwrap() });
    let mut client = Peer(client);
    for (id, method, params) in [
        (0, "initialize", json!({"protocolVersion": 1})),
        (1, "session/new", json!({"cwd": "/", "mcpServers": []})),
    ] {
        let request = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        client.send(&request.to_string()).await;
        assert_eq!(client.json().await["id"], id);
    }
    (client, running)
}

/// Expects the update of a turn and its end.
async fn turn(client: &mut Peer, id: u32) {
    let update = client.json().await;
    ended(client, &update, id).await;
}

async fn ended(client: &mut Peer, update: &Value, id: u32) {
    let text = &update["params"]["update"]["content"]["text"];
    assert_eq!(text, "new", "{update}");
    let answer = client.json().await;
    assert_eq!(answer["id"], id);
    assert_eq!(answer["result"]["stopReason"], "end_turn");
}

async fn dies(client: &mut Peer, id: u32) {
    client.send(&prompt(id, "s", "die")).await;
    let answer = client.json().await;
    let message = answer["error"]["message"].as_str().unwrap();
    assert!(
        message.contains("exited with code 7; last line of its standard error: gone"),
        "{message}"
    );
}

both_runtimes! {
    async fn sessions_go_on_in_the_next_chain_and_nothing_is_shown_twice() {
        let (mut client, running) = started(true).await;
        client.send(&prompt(2, "s", "hello")).await;
        turn(&mut client, 2).await;
        for id in [100, 200] {
            dies(&mut client, id).await;
            // What was sent before the loss is known fails. The history that the agent sends again is not for
            // the client.
            let mut id = id;
            let update = loop {
                id += 1;
                client.send(&prompt(id, "s", "again")).await;
                let message = client.json().await;
                if message["error"].is_null() {
                    break message;
                }
                let reason = message["error"]["message"].as_str().unwrap();
                assert!(reason.contains("exited with code 7"), "{message}");
            };
            ended(&mut client, &update, id).await;
        }
        client.close().await;
        let end = running.await.unwrap();
        assert!(matches!(end.side, acp_proxy::Side::Client), "{end}");
    }

    async fn a_session_that_cannot_be_resumed_ends_the_chain() {
        let (mut client, running) = started(false).await;
        dies(&mut client, 2).await;
        assert_eq!(client.next().await, None);
        let end = running.await.unwrap();
        assert!(end.reason.contains("cannot resume a session"), "{end}");
    }
}
