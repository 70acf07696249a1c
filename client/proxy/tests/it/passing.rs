//! What no hook takes is passed as the bytes that came.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use acp_proxy::{Next, Proxy};
use acp_sdk::v1::methods::Prompt;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex, split};

use crate::wire::{both_runtimes, end_turn, prompt, update, wired};

/// Starts a proxy between byte streams of a client and an agent.
fn streams(proxy: Proxy) -> (DuplexStream, DuplexStream) {
    let (client, near) = duplex(64 << 10);
    let (far, agent) = duplex(64 << 10);
    tokio::spawn(async move { drop(proxy.run(split(near), split(far)).await) });
    (client, agent)
}

/// Messages that a typed layer would change.
const ODD: [&str; 9] = [
    r#"{"jsonrpc":"2.0", "id" : 1.0, "method":"session\/new","params":{"cwd":"/","mcpServers":[],"later":1e400}}"#,
    r#"{"jsonrpc":"2.0","id":"ä\u0001","method":"_x/y"}"#,
    r#"{"method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"unheard_of","n":123456789012345678901234567890}}}"#,
    r#"{"jsonrpc":"2.0","id":7,"error":{"code":-1,"message":"m","data":[null]},"extra":true}"#,
    r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"parse"}}"#,
    r#"{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":"never seen"}}"#,
    r#"{"id":3,"result":null}"#,
    r#"[{"jsonrpc":"2.0","id":4,"method":"session/prompt"}]"#,
    "not JSON",
];

both_runtimes! {
    async fn every_message_of_either_side_is_passed_unchanged() {
        let mut wired = wired(Proxy::new("nothing"));
        for text in ODD {
            wired.client.send(text).await;
            assert_eq!(wired.agent.text().await, text);
            wired.agent.send(text).await;
            assert_eq!(wired.client.text().await, text);
        }
    }

    async fn messages_of_other_methods_than_the_hooks_are_passed_unchanged() {
        let hook = |next: Next<Prompt>, request| async move { next.call(request).await };
        let mut wired = wired(Proxy::new("prompts").on_request(hook));
        for text in &ODD[..7] {
            wired.client.send(text).await;
            assert_eq!(wired.agent.text().await, *text);
            wired.agent.send(text).await;
            assert_eq!(wired.client.text().await, *text);
        }
    }

    async fn what_would_get_past_the_hooks_is_refused() {
        let hook = |next: Next<Prompt>, request| async move { next.call(request).await };
        let mut wired = wired(Proxy::new("prompts").on_request(hook));
        let twice = r#"{"jsonrpc":"2.0","id":5,"id":6,"method":"session/prompt","params":{}}"#;
        let without_id = r#"{"jsonrpc":"2.0","id":null,"method":"session/prompt","params":{}}"#;
        for (text, code) in [(ODD[7], -32600), (ODD[8], -32700), (twice, -32600), (without_id, -32600)] {
            wired.client.send(text).await;
            let answer = wired.client.json().await;
            assert_eq!(answer["error"]["code"], code, "{text}: {answer}");
        }
        // The connection goes on.
        wired.client.send(&prompt(1, "s", "hello")).await;
        assert_eq!(wired.agent.json().await["params"]["sessionId"], "s");
    }

    async fn messages_that_arrive_at_once_keep_their_order_and_are_observed_once() {
        let observed = Arc::new(Mutex::new(Vec::new()));
        let observer = observed.clone();
        let proxy = Proxy::new("nothing").observe(move |_, message| {
            observer.lock().unwrap().push(String::from_utf8_lossy(message).into_owned());
        });
        let (mut client, mut agent) = streams(proxy);
        let named = r#"{"method":"_named","params":{"id":"no request"}}"#.to_owned();
        let asked = r#"{"jsonrpc":"2.0","id":"q","method":"_ask"}"#.to_owned();
        let sent = [
            update("s", "one"), update("s", "two"), named.clone(), update("s", "three"), asked.clone(),
            end_turn(&1.into()), end_turn(&2.into()), update("s", "four"), asked, named, update("s", "five"),
        ];
        let text = sent.join("\n") + "\n";
        agent.write_all(text.as_bytes()).await.unwrap();
        drop(agent);
        let mut received = String::new();
        client.read_to_string(&mut received).await.unwrap();
        assert_eq!(received, text);
        assert_eq!(*observed.lock().unwrap(), sent);
    }

    async fn a_client_that_does_not_read_stops_the_agent_and_nothing_is_lost() {
        let mut wired = wired(Proxy::new("nothing"));
        let count = 20_000;
        let sending = async {
            for number in 0..count {
                wired.agent.send(&update("s", &number.to_string())).await;
            }
        };
        // 3 MiB do not fit into the channels and the proxy.
        let mut sending = std::pin::pin!(sending);
        let limit = Duration::from_millis(300);
        assert!(tokio::time::timeout(limit, &mut sending).await.is_err());
        let receiving = async {
            for number in 0..count {
                assert_eq!(wired.client.text().await, update("s", &number.to_string()));
            }
        };
        tokio::join!(sending, receiving);
    }
}

/// What is read of a stream at once is many messages, and still bounded.
#[tokio::test(start_paused = true)]
async fn a_client_that_does_not_read_its_stream_stops_the_agent_and_nothing_is_lost() {
    let (mut client, mut agent) = streams(Proxy::new("nothing"));
    let numbers = 0..30_000;
    let text: String = numbers
        .map(|number| update("s", &number.to_string()) + "\n")
        .collect();
    let sending = async {
        agent.write_all(text.as_bytes()).await.unwrap();
        agent.shutdown().await.unwrap();
    };
    let mut sending = std::pin::pin!(sending);
    // Nothing else goes on when the time advances.
    let limit = Duration::from_secs(1);
    assert!(tokio::time::timeout(limit, &mut sending).await.is_err());
    let mut received = vec![0; text.len()];
    let receiving = client.read_exact(&mut received);
    let (_, received_all) = tokio::join!(sending, receiving);
    received_all.unwrap();
    assert!(received == text.as_bytes());
}
