//! What no hook takes is passed as the bytes that came.

use acp_proxy::{Next, Proxy};
use acp_sdk::v1::methods::Prompt;

use crate::wire::{both_runtimes, prompt, update, wired};

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
        let limit = std::time::Duration::from_millis(300);
        assert!(tokio::time::timeout(limit, &mut sending).await.is_err());
        let receiving = async {
            for number in 0..count {
                assert_eq!(wired.client.text().await, update("s", &number.to_string()));
            }
        };
        tokio::join!(sending, receiving);
    }
}
