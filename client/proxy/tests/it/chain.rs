//! Chains of proxies, and parts of them that fail.

use std::time::Duration;

use acp_client::AgentCommand;
use acp_proxy::{Conductor, Proxy, Trace};
use acp_sdk::channel;

use crate::wire::{Peer, both_runtimes};

const INITIALIZE: &str =
    r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1}}"#;

/// An agent that answers `initialize`, and says nothing else until it is asked again.
const AGENT: &str = r#"read line
printf '{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":1}}\n'
read line
printf '{"jsonrpc":"2.0","id":1,"result":{"sessionId":"s"}}\n'
read line
echo last words >&2
exit 7"#;

fn sh(script: &str) -> AgentCommand {
    AgentCommand::new("sh").arg("-c").arg(script)
}

fn started(conductor: Conductor, agent: &str) -> Peer {
    let (client, near) = channel(64 << 10);
    let agent = sh(agent);
    tokio::spawn(async move { conductor.run(near, agent).await });
    Peer(client)
}

/// Returns the message of the error that answers `initialize`.
async fn error_of(mut client: Peer) -> String {
    client.send(INITIALIZE).await;
    let answer = client.json().await;
    assert_eq!(answer["id"], 0, "{answer}");
    answer["error"]["message"].as_str().unwrap().to_owned()
}

fn session_new() -> &'static str {
    r#"{"jsonrpc":"2.0","id":1,"method":"session/new","params":{"cwd":"/","mcpServers":[]}}"#
}

both_runtimes! {
    async fn a_chain_of_twenty_passes_what_it_is_given_and_ends_with_the_agent() {
        let chain = (0..20).fold(Conductor::new(), |chain, at| chain.proxy(Proxy::new(format!("p{at}"))));
        let mut client = started(chain, AGENT);
        client.send(INITIALIZE).await;
        assert_eq!(client.text().await, r#"{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":1}}"#);
        client.send(session_new()).await;
        assert_eq!(client.json().await["result"]["sessionId"], "s");
        client.send(r#"{"jsonrpc":"2.0","id":2,"method":"session/prompt","params":{"sessionId":"s","prompt":[]}}"#).await;
        let answer = client.json().await;
        let message = answer["error"]["message"].as_str().unwrap();
        assert!(message.contains("exited with code 7; last line of its standard error: last words"), "{message}");
        assert_eq!(client.next().await, None);
    }

    async fn a_program_that_ends_is_named() {
        for before in [0, 2] {
            let chain = (0..before).fold(Conductor::new(), |chain, at| chain.proxy(Proxy::new(format!("p{at}"))));
            let chain = chain.program(sh("echo broken >&2; read line; exit 3")).proxy(Proxy::new("behind"));
            let message = error_of(started(chain, AGENT)).await;
            assert!(message.contains("exit 3") && message.contains("exited with code 3"), "{message}");
            assert!(message.ends_with("its standard error: broken"), "{message}");
        }
    }

    async fn a_program_that_is_no_proxy_is_named() {
        let agent = r#"read line; printf '{"jsonrpc":"2.0","id":0,"error":{"code":-32601,"message":"unknown"}}\n'; read line"#;
        let message = error_of(started(Conductor::new().program(sh(agent)), AGENT)).await;
        assert!(message.contains("is no proxy: it does not know proxy/initialize (unknown)"), "{message}");
    }

    async fn a_program_that_is_silent_is_named_at_the_limit() {
        let chain = Conductor::new().program(sh("cat > /dev/null"));
        let chain = chain.start_limit(Duration::from_millis(100));
        let message = error_of(started(chain, AGENT)).await;
        assert!(message.contains("has not answered proxy/initialize for 0.1 s"), "{message}");
    }

    async fn a_trace_shows_each_hop() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("trace.html");
        let chain = Conductor::new().proxy(Proxy::new("first")).proxy(Proxy::new("</script>"));
        let mut client = started(chain.trace(Trace::create(&file).unwrap()), AGENT);
        client.send(INITIALIZE).await;
        client.text().await;
        client.send(session_new()).await;
        client.text().await;
        drop(client);
        let hops = |text: &str, from: &str, to: &str| text.matches(&format!(r#""from":"{from}","#)).count().min(text.matches(&format!(r#""to":"{to}""#)).count());
        // Its thread writes behind the messages.
        let text = tokio::task::spawn_blocking(move || {
            let mut text = String::new();
            for _ in 0..500 {
                text = std::fs::read_to_string(&file).unwrap();
                if text.matches("<script>add(").count() == 12 {
                    break;
                }
                std::thread::sleep(Duration::from_millis(20));
            }
            text
        })
        .await
        .unwrap();
        assert_eq!(text.matches("<script>add(").count(), 12);
        assert_eq!(text.matches("</script>").count(), 12 + 1, "no text ends a script");
        assert!(hops(&text, "client", "first") >= 2, "{text}");
    }
}
