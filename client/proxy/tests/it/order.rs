//! Order and cancellation across a proxy.

use std::sync::Arc;

use acp_proxy::{Forward, Next, Proxy};
use acp_sdk::v1::methods::{Prompt, SessionUpdate};
use acp_sdk::v1::{PromptRequest, SessionNotification};
use tokio::sync::{Notify, Semaphore};

use crate::wire::{both_runtimes, end_turn, prompt, update, wired};

/// A proxy whose hooks of updates wait for a permit of session `s`.
fn slow_updates(permits: &Arc<Semaphore>) -> Proxy {
    let permits = permits.clone();
    Proxy::new("slow").on_notification(
        move |forward: Forward<SessionUpdate>, update: SessionNotification| {
            let permits = permits.clone();
            async move {
                if &*update.session_id.to_string() == "s" {
                    permits.acquire().await?.forget();
                }
                forward.send(update).await
            }
        },
    )
}

/// A proxy whose hook of prompts waits until it is notified.
fn slow_prompts(go: &Arc<Notify>) -> Proxy {
    let go = go.clone();
    Proxy::new("slow").on_request(move |next: Next<Prompt>, request: PromptRequest| {
        let go = go.clone();
        async move {
            go.notified().await;
            next.call(request).await
        }
    })
}

both_runtimes! {
    async fn an_answer_comes_behind_the_updates_before_it_and_other_sessions_pass() {
        for is_hooked in [false, true] {
            let permits = Arc::new(Semaphore::new(0));
            let mut proxy = slow_updates(&permits);
            if is_hooked {
                proxy = proxy.on_request(|next: Next<Prompt>, request| async move { next.call(request).await });
            }
            let mut wired = wired(proxy);
            wired.client.send(&prompt(1, "s", "hello")).await;
            let id = wired.agent.json().await["id"].clone();
            for text in ["one", "two", "three"] {
                wired.agent.send(&update("s", text)).await;
            }
            wired.agent.send(&end_turn(&id)).await;
            wired.agent.send(&update("other", "meanwhile")).await;
            assert_eq!(wired.client.text().await, update("other", "meanwhile"));
            permits.add_permits(3);
            for text in ["one", "two", "three"] {
                assert_eq!(wired.client.text().await, update("s", text));
            }
            assert_eq!(wired.client.json().await["result"]["stopReason"], "end_turn");
        }
    }

    async fn what_a_client_sends_behind_a_prompt_stays_behind_it() {
        let go = Arc::new(Notify::new());
        let mut wired = wired(slow_prompts(&go));
        wired.client.send(&prompt(1, "s", "hello")).await;
        let cancel = r#"{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":"s"}}"#;
        wired.client.send(cancel).await;
        let other = r#"{"jsonrpc":"2.0","id":2,"method":"session/new","params":{"cwd":"/","mcpServers":[]}}"#;
        wired.client.send(other).await;
        assert_eq!(wired.agent.text().await, other);
        go.notify_one();
        assert_eq!(wired.agent.json().await["method"], "session/prompt");
        assert_eq!(wired.agent.text().await, cancel);
    }

    async fn a_cancelled_request_is_cancelled_where_it_went() {
        let go = Arc::new(Notify::new());
        go.notify_one();
        let mut wired = wired(slow_prompts(&go));
        wired.client.send(&prompt(1, "s", "hello")).await;
        let sent = wired.agent.json().await;
        wired.client.send(r#"{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":1}}"#).await;
        let cancelled = wired.agent.json().await;
        assert_eq!(cancelled["method"], "$/cancel_request");
        assert_eq!(cancelled["params"]["requestId"], sent["id"]);
        let id = &sent["id"];
        wired.agent.send(&format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":-32800,"message":"stopped"}}}}"#)).await;
        let answer = wired.client.json().await;
        assert_eq!((answer["id"].as_i64(), answer["error"]["message"].as_str()), (Some(1), Some("stopped")));
    }

    async fn a_request_that_is_cancelled_in_its_hook_never_leaves() {
        let go = Arc::new(Notify::new());
        let mut wired = wired(slow_prompts(&go));
        wired.client.send(&prompt(1, "s", "hello")).await;
        wired.client.send(r#"{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":1}}"#).await;
        // Whatever is sent later has passed the cancellation.
        wired.client.send(r#"{"jsonrpc":"2.0","method":"_mark"}"#).await;
        assert!(wired.agent.text().await.contains("_mark"));
        go.notify_one();
        assert_eq!(wired.client.json().await["error"]["code"], -32800);
    }

    async fn a_request_that_waits_is_cancelled_behind_itself() {
        let go = Arc::new(Notify::new());
        let mut wired = wired(slow_prompts(&go));
        wired.client.send(&prompt(1, "s", "hello")).await;
        let waiting = r#"{"jsonrpc":"2.0","id":2,"method":"_x","params":{"sessionId":"s"}}"#;
        let cancel = r#"{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":2}}"#;
        wired.client.send(waiting).await;
        wired.client.send(cancel).await;
        go.notify_one();
        assert_eq!(wired.agent.json().await["method"], "session/prompt");
        assert_eq!(wired.agent.text().await, waiting);
        assert_eq!(wired.agent.text().await, cancel);
    }

    async fn answers_that_come_twice_are_not_given_to_another_call() {
        let hook = |next: Next<Prompt>, request| async move { next.call(request).await };
        let mut wired = wired(Proxy::new("prompts").on_request(hook));
        for round in 1..4 {
            wired.client.send(&prompt(round, "s", "hello")).await;
            let id = wired.agent.json().await["id"].clone();
            wired.agent.send(&end_turn(&id)).await;
            let again = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"stopReason":"refusal"}}}}"#);
            wired.agent.send(&again).await;
            let answer = wired.client.json().await;
            assert_eq!(answer["id"], round);
            assert_eq!(answer["result"]["stopReason"], "end_turn");
        }
    }
}
