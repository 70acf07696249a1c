//! Agents that end when nobody uses them, are restarted with a bound, and end with their owner.

use std::sync::atomic::Ordering;
use std::time::Duration;

use acp_client::{Error, Supervisor};
use acp_sdk::v1::StopReason;
use tokio_util::sync::CancellationToken;

use super::starts::Startable;
use crate::agent::within;

const MINUTE: Duration = Duration::from_secs(60);

/// Shorter than `within` waits, in the time of the test's clock.
const IDLE: Duration = Duration::from_secs(20);

#[tokio::test(start_paused = true)]
async fn an_agent_that_nobody_uses_ends_and_is_started_by_the_next_call() {
    let startable = Startable::default();
    let tool = startable.tool().idle_timeout(IDLE);
    tool.call("work").await.unwrap();
    tokio::time::advance(IDLE / 2).await;
    // The time starts again, and does not run while a call does.
    let stop = CancellationToken::new();
    let call = tokio::spawn(tool.call("hang").cancelled_by(stop.clone()).into_future());
    startable.agent.hanging.notified().await;
    tokio::time::advance(2 * IDLE).await;
    stop.cancel();
    let result = within(call).await.unwrap().unwrap();
    assert_eq!(result.metadata.stop_reason, StopReason::Cancelled);
    assert_eq!(startable.starts.load(Ordering::Relaxed), 1);

    startable.ended().await;
    tool.call("work").await.unwrap();
    assert_eq!(startable.starts.load(Ordering::Relaxed), 2);
    // An agent that was set up and is never called ends, too.
    startable.ended().await;
    tool.setup().await.unwrap();
    startable.ended().await;
    assert_eq!(startable.starts.load(Ordering::Relaxed), 3);
}

#[tokio::test(start_paused = true)]
async fn restarts_are_bounded_until_the_oldest_is_long_ago() {
    let startable = Startable::default();
    let tool = startable.tool().max_restarts(2, MINUTE);
    for _ in 0..3 {
        within(tool.call("work")).await.unwrap();
        startable.die().await;
    }
    for _ in 0..2 {
        let error = within(tool.call("work")).await.unwrap_err();
        assert!(
            matches!(error, Error::RestartLimit { restarts: 2, .. }),
            "{error}"
        );
    }
    assert_eq!(startable.starts.load(Ordering::Relaxed), 3);
    tokio::time::advance(MINUTE).await;
    within(tool.call("work")).await.unwrap();
}

#[tokio::test]
async fn the_calls_of_a_parent_end_with_it() {
    let startable = Startable::default();
    let parent = CancellationToken::new();
    let tool = startable.tool().closed_with(parent.clone());
    let call = tokio::spawn(tool.call("hang").into_future());
    startable.agent.hanging.notified().await;
    parent.cancel();
    let result = within(call).await.unwrap().unwrap();
    assert_eq!(result.metadata.stop_reason, StopReason::Cancelled);
    within(startable.agent.closed.notified()).await;
    let error = within(tool.call("work")).await.unwrap_err();
    assert!(matches!(error, Error::CallCancelled { .. }), "{error}");
}

#[tokio::test]
async fn agents_of_a_supervisor_are_started_on_use_and_end_together() {
    let (one, two) = (Startable::default(), Startable::default());
    let agents = [one.tool().name("one"), two.tool().name("two")];
    let supervisor = Supervisor::new(agents);
    assert_eq!(supervisor.agents().len(), 2);
    assert!(supervisor.get("three").is_none());
    let tool = supervisor.get("one").unwrap();
    let call = tokio::spawn(tool.call("hang").into_future());
    one.agent.hanging.notified().await;
    assert_eq!(two.starts.load(Ordering::Relaxed), 0);
    within(supervisor.shutdown()).await;
    let result = within(call).await.unwrap().unwrap();
    assert_eq!(result.metadata.stop_reason, StopReason::Cancelled);
    within(one.agent.closed.notified()).await;
    one.ended().await;
    let error = within(tool.call("work")).await.unwrap_err();
    assert!(matches!(error, Error::CallCancelled { .. }), "{error}");
}

#[tokio::test]
async fn dropping_a_supervisor_cancels_its_calls_and_ends_its_agents() {
    let startable = Startable::default();
    let supervisor = Supervisor::new([startable.tool()]);
    let call = tokio::spawn(supervisor.agents()[0].call("hang").into_future());
    startable.agent.hanging.notified().await;
    drop(supervisor);
    let result = within(call).await.unwrap().unwrap();
    assert_eq!(result.metadata.stop_reason, StopReason::Cancelled);
    startable.ended().await;
}
