//! What hooks do with messages.

use std::time::Duration;

use acp_proxy::{Forward, Next, Proxy, RawNext};
use acp_sdk::v1::methods::{Prompt, RequestPermission, SessionUpdate};
use acp_sdk::v1::{
    ContentBlock, PermissionOption, PermissionOptionKind, PromptRequest, PromptResponse,
    RequestPermissionOutcome, RequestPermissionRequest, SessionNotification, StopReason,
    ToolCallUpdate,
};
use serde_json::json;

use crate::wire::{both_runtimes, end_turn, prompt, update, wired};

/// Adds a text to each prompt.
fn adds(text: &'static str) -> Proxy {
    Proxy::new(text).on_request(
        move |next: Next<Prompt>, mut request: PromptRequest| async move {
            request.prompt.push(ContentBlock::from(text));
            let mut response = next.call(request).await?;
            response.meta.get_or_insert_default().insert(text, &true)?;
            Ok(response)
        },
    )
}

fn texts(prompt: &serde_json::Value) -> Vec<&str> {
    let blocks = prompt["params"]["prompt"].as_array().unwrap();
    blocks
        .iter()
        .map(|block| block["text"].as_str().unwrap())
        .collect()
}

both_runtimes! {
    async fn hooks_change_request_and_result_one_after_the_other() {
        let mut wired = wired(adds("first").then(adds("second")));
        let sent = r#"{"jsonrpc":"2.0","id":9,"method":"session/prompt","params":{"later":1,"sessionId":"s","prompt":[{"type":"text","text":"a","x":2}]}}"#;
        wired.client.send(sent).await;
        let received = wired.agent.json().await;
        assert_eq!(texts(&received), ["a", "first", "second"]);
        // What no type knows survives.
        assert_eq!(received["params"]["later"], 1);
        assert_eq!(received["params"]["prompt"][0]["x"], 2);
        let id = &received["id"];
        wired.agent.send(&format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"stopReason":"end_turn","later":3}}}}"#)).await;
        let answer = wired.client.json().await;
        assert_eq!(answer, json!({"jsonrpc": "2.0", "id": 9, "result": {
            "stopReason": "end_turn", "later": 3, "_meta": {"first": true, "second": true},
        }}));
    }

    async fn a_hook_answers_itself() {
        let hook = |_: Next<Prompt>, _| async { Ok(PromptResponse::new(StopReason::Refusal)) };
        let mut wired = wired(Proxy::new("refuses").on_request(hook));
        wired.client.send(&prompt(1, "s", "hello")).await;
        assert_eq!(wired.client.json().await["result"]["stopReason"], "refusal");
        wired.client.send("{\"jsonrpc\":\"2.0\",\"method\":\"_last\"}").await;
        assert!(wired.agent.text().await.contains("_last"), "the agent has no prompt");
    }

    async fn a_hook_asks_the_client_before_it_passes_on() {
        let hook = |next: Next<Prompt>, request: PromptRequest| async move {
            let call = ToolCallUpdate::new("prompt");
            let option = PermissionOption::new("yes", "Yes", PermissionOptionKind::AllowOnce);
            let question = RequestPermissionRequest::new(request.session_id.clone(), call, vec![option]);
            let answer = next.client().call::<RequestPermission>(&question).await?;
            match answer.outcome {
                RequestPermissionOutcome::Selected(_) => next.call(request).await,
                _ => Ok(PromptResponse::new(StopReason::Cancelled)),
            }
        };
        let mut wired = wired(Proxy::new("asks").on_request(hook));
        for (outcome, reason) in [
            (json!({"outcome": "selected", "optionId": "yes"}), "end_turn"),
            (json!({"outcome": "cancelled"}), "cancelled"),
        ] {
            wired.client.send(&prompt(1, "s", "hello")).await;
            let question = wired.client.json().await;
            let answer = json!({"jsonrpc": "2.0", "id": question["id"], "result": {"outcome": outcome}});
            wired.client.send(&answer.to_string()).await;
            if reason == "end_turn" {
                let request = wired.agent.json().await;
                wired.agent.send(&end_turn(&request["id"])).await;
            }
            let answer = wired.client.json().await;
            assert_eq!(answer["result"]["stopReason"], reason);
        }
    }

    async fn hooks_of_notifications_change_them_and_drop_them() {
        let hook = |forward: Forward<SessionUpdate>, update: SessionNotification| async move {
            let text = serde_json::to_string(&update)?;
            match text.contains("secret") {
                true => Ok(()),
                false => forward.pass().await,
            }
        };
        let mut wired = wired(Proxy::new("drops").on_notification(hook));
        for text in ["one", "secret", "two"] {
            wired.agent.send(&update("s", text)).await;
        }
        assert_eq!(wired.client.text().await, update("s", "one"));
        assert_eq!(wired.client.text().await, update("s", "two"));
    }

    async fn what_the_agent_sends_passes_the_hooks_from_its_side() {
        let adds = |text: &'static str| {
            Proxy::new(text).on_raw_notification(Some("_x"), move |forward, params| async move {
                let mut said: Vec<String> = serde_json::from_str(params.as_ref().unwrap().get())?;
                said.push(text.to_owned());
                forward.send(Some(serde_json::value::to_raw_value(&said)?)).await
            })
        };
        let mut wired = wired(adds("first").then(adds("second")));
        let sent = r#"{"jsonrpc":"2.0","method":"_x","params":[]}"#;
        wired.agent.send(sent).await;
        assert_eq!(wired.client.json().await["params"], json!(["second", "first"]));
        wired.client.send(sent).await;
        assert_eq!(wired.agent.json().await["params"], json!(["first", "second"]));
    }

    async fn invalid_params_never_reach_a_hook_or_the_other_side() {
        let mut wired = wired(adds("x"));
        wired.client.send(r#"{"jsonrpc":"2.0","id":1,"method":"session/prompt","params":{"sessionId":1}}"#).await;
        assert_eq!(wired.client.json().await["error"]["code"], -32602);
        wired.client.send(&prompt(2, "s", "hello")).await;
        assert_eq!(texts(&wired.agent.json().await), ["hello", "x"]);
    }

    async fn methods_that_nobody_knows_have_hooks_too() {
        let hook = |next: RawNext, params| async move {
            assert_eq!(next.method(), "_team/x");
            next.call(params).await
        };
        let mut wired = wired(Proxy::new("raw").on_raw_request(Some("_team/x"), hook));
        wired.agent.send(r#"{"jsonrpc":"2.0","id":1,"method":"_team/x","params":{"n":1e400}}"#).await;
        let request = wired.client.text().await;
        assert!(request.ends_with(r#","method":"_team/x","params":{"n":1e400}}"#), "{request}");
    }

    async fn a_hook_that_panics_is_an_error_that_names_it() {
        let hook = |_: Next<Prompt>, request: PromptRequest| async move {
            let at = request.prompt.len();
            assert!(at == 0, "as the test wants it");
            Ok(PromptResponse::new(StopReason::EndTurn))
        };
        let mut wired = wired(adds("a").then(Proxy::new("broken").on_request(hook)));
        wired.client.send(&prompt(1, "s", "hello")).await;
        let answer = wired.client.json().await;
        let message = answer["error"]["message"].as_str().unwrap();
        assert_eq!(message, "the proxy `broken` has panicked in session/prompt");
        wired.client.send(r#"{"jsonrpc":"2.0","method":"_next"}"#).await;
        assert!(wired.agent.text().await.contains("_next"));
    }

    async fn a_proxy_of_one_version_says_so_between_peers_of_another() {
        let mut wired = wired(adds("x"));
        let initialize = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":2}}"#;
        for (version, is_refused) in [(2, true), (1, false)] {
            wired.client.send(initialize).await;
            wired.agent.text().await;
            wired.agent.send(&format!(r#"{{"jsonrpc":"2.0","id":0,"result":{{"protocolVersion":{version}}}}}"#)).await;
            let answer = wired.client.json().await;
            let message = answer["error"]["message"].as_str().unwrap_or_default();
            assert_eq!(message.contains("the proxy `x` knows version [1]"), is_refused, "{answer}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_hook_that_never_returns_ends_at_the_limit_and_the_rest_goes_on() {
    let hook = |_: Next<Prompt>, _| std::future::pending();
    let proxy = Proxy::new("stuck").on_request(hook);
    let mut wired = wired(proxy.hook_limit(Duration::from_secs(5)));
    wired.client.send(&prompt(1, "s", "hello")).await;
    let waiting = r#"{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":"s"}}"#;
    wired.client.send(waiting).await;
    let other = r#"{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":"other"}}"#;
    wired.client.send(other).await;
    assert_eq!(wired.agent.text().await, other);
    let answer = wired.client.json().await;
    let message = answer["error"]["message"].as_str().unwrap();
    assert_eq!(
        message,
        "the proxy `stuck` has done nothing with session/prompt for 5 s"
    );
    assert_eq!(wired.agent.text().await, waiting);
}
