//! The end of either side.

use std::time::Duration;

use acp_proxy::{Next, Proxy, Side};
use acp_sdk::v1::methods::Prompt;
use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::wire::{both_runtimes, prompt, update, wired};

fn hooked() -> Proxy {
    Proxy::new("prompts")
        .on_request(|next: Next<Prompt>, request| async move { next.call(request).await })
}

both_runtimes! {
    async fn requests_are_answered_with_the_reason_when_the_agent_ends() {
        for proxy in [Proxy::new("nothing"), hooked()] {
            let mut wired = wired(proxy);
            wired.client.send(&prompt(1, "s", "hello")).await;
            wired.agent.text().await;
            wired.agent.send(&update("s", "last words")).await;
            drop(wired.agent);
            assert_eq!(wired.client.text().await, update("s", "last words"));
            let answer = wired.client.json().await;
            assert_eq!(answer["id"], 1);
            assert_eq!(answer["error"]["code"], -32603);
            assert_eq!(answer["error"]["message"], "the agent has ended");
            assert_eq!(wired.client.next().await, None);
            assert_eq!(wired.proxy.await.unwrap().side, Side::Agent);
        }
    }

    async fn an_agent_answers_a_client_that_sends_nothing_more() {
        for proxy in [Proxy::new("nothing"), hooked()] {
            let mut wired = wired(proxy);
            wired.client.send(&prompt(1, "s", "hello")).await;
            wired.client.close().await;
            let id = wired.agent.json().await["id"].clone();
            wired.agent.send(&crate::wire::end_turn(&id)).await;
            assert_eq!(wired.agent.next().await, None);
            drop(wired.agent);
            assert_eq!(wired.client.json().await["result"]["stopReason"], "end_turn");
            assert_eq!(wired.client.next().await, None);
        }
    }

    async fn a_hook_that_waits_for_a_client_that_is_gone_ends() {
        hook_after_its_client().await;
    }

    async fn a_client_that_is_gone_ends_the_agent() {
        let mut wired = wired(hooked());
        wired.client.send(&prompt(1, "s", "hello")).await;
        wired.agent.text().await;
        drop(wired.client);
        assert_eq!(wired.agent.next().await, None);
        wired.agent.send(&update("s", "to nobody")).await;
        assert_eq!(wired.proxy.await.unwrap().side, Side::Client);
    }
}

/// Ends the client for which a hook waits, and returns how long the hook ran after it.
async fn hook_after_its_client() -> Duration {
    let (sender, mut ended) = mpsc::channel(1);
    let proxy = Proxy::new("asks").on_raw_request(None, move |next, params| {
        let sender = sender.clone();
        async move {
            let client = next.client();
            let answer = next.call(params).await;
            // A later call fails, too.
            client.call_raw("_again", None).await.unwrap_err();
            sender.send(Instant::now()).await.unwrap();
            answer
        }
    });
    let mut wired = wired(proxy);
    wired
        .agent
        .send(r#"{"jsonrpc":"2.0","id":7,"method":"_ask"}"#)
        .await;
    wired.client.text().await;
    let gone = Instant::now();
    drop(wired.client);
    let after = ended.recv().await.unwrap() - gone;
    let answer = wired.agent.json().await;
    assert_eq!(answer["id"], 7);
    assert_eq!(answer["error"]["message"], "the client has ended");
    assert_eq!(wired.agent.next().await, None);
    after
}

#[tokio::test(start_paused = true)]
async fn a_hook_that_waits_for_a_client_that_is_gone_ends_at_once() {
    let after = hook_after_its_client().await;
    assert!(after < Duration::from_millis(100), "{after:?}");
}

/// Its answer would be for nobody.
#[tokio::test(start_paused = true)]
async fn a_hook_that_waits_for_the_client_is_not_waited_for_when_the_agent_has_ended() {
    let proxy = Proxy::new("passes").on_raw_request(None, |next, params| next.call(params));
    let mut wired = wired(proxy);
    let request = r#"{"jsonrpc":"2.0","id":7,"method":"_ask"}"#;
    wired.agent.send(request).await;
    wired.client.text().await;
    let gone = Instant::now();
    wired.agent.send(&update("s", "last words")).await;
    drop(wired.agent);
    assert_eq!(wired.client.text().await, update("s", "last words"));
    assert_eq!(wired.client.next().await, None);
    assert!(
        gone.elapsed() < Duration::from_millis(100),
        "{:?}",
        gone.elapsed()
    );
}

#[tokio::test(start_paused = true)]
async fn a_hook_of_a_client_that_is_gone_is_cancelled_when_answers_are_no_longer_waited_for() {
    let (sender, mut cancelled) = mpsc::channel(1);
    let proxy = Proxy::new("waits").on_request(move |next: Next<Prompt>, _| {
        let sender = sender.clone();
        async move {
            next.cancelled().await;
            sender.send(Instant::now()).await.unwrap();
            Err(acp_sdk::HandlerError::cancelled())
        }
    });
    let mut wired = wired(proxy);
    wired.client.send(&prompt(1, "s", "hello")).await;
    let gone = Instant::now();
    drop(wired.client);
    let after = cancelled.recv().await.unwrap() - gone;
    assert!((1..3).contains(&after.as_secs()), "{after:?}");
    assert_eq!(wired.agent.next().await, None);
    assert!(gone.elapsed() < Duration::from_secs(3));
}
