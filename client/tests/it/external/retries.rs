//! Further attempts to start an agent and to open a session.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use acp_client::{AgentCommand, Client, Error, ExternalAgent};
use tokio::time::Instant;

use super::raw_tool;
use crate::agent::{TestAgent, connect, within};

/// A tool whose agent starts after this many failures, and the number of starts.
fn failing(failures: usize) -> (ExternalAgent, Arc<AtomicUsize>) {
    let starts = Arc::new(AtomicUsize::new(0));
    let counted = starts.clone();
    let tool = ExternalAgent::start_with(move || {
        let number = counted.fetch_add(1, Ordering::Relaxed);
        async move {
            if number < failures {
                let missing = AgentCommand::new("/nonexistent/agent");
                return Client::builder().spawn(missing).await;
            }
            Ok(connect(TestAgent::default(), Client::builder()).await)
        }
    });
    (tool.directory("/"), starts)
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_cannot_be_started_is_tried_again_after_growing_pauses() {
    let (tool, starts) = failing(2);
    let begun = Instant::now();
    within(tool.retries(3).call("work")).await.unwrap();
    assert_eq!(starts.load(Ordering::Relaxed), 3);
    // From 125 to 250 ms, then from 250 to 500 ms, in the time of the test's clock.
    let paused = begun.elapsed();
    assert!(paused >= Duration::from_millis(375), "{paused:?}");
    assert!(paused <= Duration::from_millis(760), "{paused:?}");
}

#[tokio::test(start_paused = true)]
async fn attempts_are_bounded_and_the_timeout_includes_them() {
    let (tool, starts) = failing(10);
    let error = within(tool.retries(3).call("work")).await.unwrap_err();
    assert!(matches!(error, Error::Spawn { .. }), "{error}");
    assert_eq!(starts.load(Ordering::Relaxed), 4);

    let (tool, _) = failing(1000);
    let tool = tool.retries(1000).timeout(Duration::from_secs(5));
    let error = within(tool.call("work")).await.unwrap_err();
    assert!(matches!(error, Error::CallTimeout { .. }), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_session_is_asked_for_again_only_if_none_was_created() {
    let (tool, mut raw) = raw_tool().await;
    let call = tokio::spawn(tool.clone().retries(3).call("work").into_future());
    let first = raw.next().await;
    assert_eq!(first["method"], "session/new");
    let error = serde_json::json!({"code": -32603, "message": "overloaded"});
    raw.send(serde_json::json!({"jsonrpc": "2.0", "id": first["id"], "error": error}))
        .await;
    let second = raw.next().await;
    assert_eq!(second["method"], "session/new");
    // An answer that is lost may have created one.
    let error = call.await.unwrap().unwrap_err();
    assert!(matches!(error, Error::Timeout { .. }), "{error}");
    drop(tool);
    let rest = raw.rest().await;
    assert!(!rest.contains("session/new"), "{rest}");
}
