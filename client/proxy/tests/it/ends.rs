//! The end of either side.

use acp_proxy::{Next, Proxy, Side};
use acp_sdk::v1::methods::Prompt;

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
