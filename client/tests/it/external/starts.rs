//! Agents that are started for calls, and started again after their end.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use acp_client::{Client, Error, ExternalAgent};
use acp_sdk::v1::*;
use tokio::task::JoinHandle;

use crate::agent::{TestAgent, within};

/// An agent that is started in memory and can be killed.
#[derive(Clone, Default)]
pub(super) struct Startable {
    pub(super) agent: TestAgent,
    pub(super) starts: Arc<AtomicUsize>,
    running: Arc<Mutex<Option<JoinHandle<()>>>>,
}

impl Startable {
    pub(super) fn tool(&self) -> ExternalAgent {
        let this = self.clone();
        let start = move || {
            let this = this.clone();
            async move {
                this.starts.fetch_add(1, Ordering::Relaxed);
                let (ours, theirs) = tokio::io::duplex(1 << 16);
                let (reader, writer) = tokio::io::split(theirs);
                let agent = this.agent.clone();
                let running = tokio::spawn(async move {
                    let _ = acp_sdk::serve(agent, (reader, writer)).await;
                });
                *this.running.lock().unwrap() = Some(running);
                let (reader, writer) = tokio::io::split(ours);
                Client::builder().connect((reader, writer)).await
            }
        };
        ExternalAgent::start_with(start).directory("/")
    }

    /// Waits until the agent that runs has ended by itself.
    pub(super) async fn ended(&self) {
        let running = self.running.lock().unwrap().take().unwrap();
        within(running).await.unwrap();
    }

    pub(super) async fn die(&self) {
        let running = self.running.lock().unwrap().take().unwrap();
        running.abort();
        let _ = running.await;
    }
}

#[tokio::test]
async fn the_agent_is_started_once_and_again_when_it_has_died() {
    let startable = Startable::default();
    let tool = startable.tool();
    let starts = || startable.starts.load(Ordering::Relaxed);
    assert_eq!(starts(), 0);
    let both = async { tokio::join!(tool.setup(), tool.setup()) };
    let (first, second) = within(both).await;
    first.and(second).unwrap();
    within(tool.call("work")).await.unwrap();
    assert_eq!(starts(), 1);
    for expected in 2..5 {
        startable.die().await;
        // The client may not have noticed the exit yet.
        let result = within(tool.call("work")).await.unwrap();
        assert_eq!((result.text.as_str(), starts()), ("One.\n\nTwo.", expected));
    }
    within(tool.cleanup()).await;
    within(tool.call("work")).await.unwrap();
    assert_eq!(starts(), 5);
}

/// An agent that exits at `session/new`.
#[derive(Clone, Default)]
struct Dying {
    asked: Arc<tokio::sync::Notify>,
}

impl Agent for Dying {
    async fn initialize(
        &self,
        _: &AgentContext,
        _: InitializeRequest,
    ) -> acp_sdk::HandlerResult<InitializeResponse> {
        Ok(InitializeResponse::new(ProtocolVersion::V1))
    }

    async fn new_session(
        &self,
        _: &AgentContext,
        _: NewSessionRequest,
    ) -> acp_sdk::HandlerResult<NewSessionResponse> {
        self.asked.notify_one();
        std::future::pending().await
    }

    async fn prompt(
        &self,
        _: &AgentContext,
        _: PromptRequest,
    ) -> acp_sdk::HandlerResult<PromptResponse> {
        std::future::pending().await
    }

    async fn cancel(&self, _: &AgentContext, _: CancelNotification) -> acp_sdk::HandlerResult<()> {
        Ok(())
    }
}

/// The client may notice the agent's exit only at `session/new`. It restarts the agent once for
/// that.
#[tokio::test]
async fn an_agent_that_dies_of_a_call_is_started_again_once() {
    for (dying, expected) in [(1, 2), (5, 2)] {
        let starts = Arc::new(AtomicUsize::new(0));
        let counted = starts.clone();
        let tool = ExternalAgent::start_with(move || {
            let number = counted.fetch_add(1, Ordering::Relaxed) + 1;
            async move {
                let (ours, theirs) = tokio::io::duplex(1 << 16);
                let streams = tokio::io::split(theirs);
                tokio::spawn(async move {
                    if number > dying {
                        let _ = acp_sdk::serve(TestAgent::default(), streams).await;
                        return;
                    }
                    let agent = Dying::default();
                    let asked = agent.asked.clone();
                    tokio::select! {
                        _ = acp_sdk::serve(agent, streams) => {}
                        () = asked.notified() => {}
                    }
                });
                Client::builder().connect(tokio::io::split(ours)).await
            }
        });
        let result = within(tool.call("work").directory("/")).await;
        assert_eq!(result.is_ok(), dying < expected, "{result:?}");
        assert_eq!(starts.load(Ordering::Relaxed), expected);
    }
}

#[tokio::test]
async fn an_agent_that_cannot_be_started_is_tried_again_by_the_next_call() {
    let starts = Arc::new(AtomicUsize::new(0));
    let counted = starts.clone();
    let tool = ExternalAgent::start_with(move || {
        counted.fetch_add(1, Ordering::Relaxed);
        Client::builder().spawn(acp_client::AgentCommand::new("/nonexistent/agent"))
    });
    for expected in 1..3 {
        let error = within(tool.call("work")).await.unwrap_err();
        assert!(matches!(error, Error::Spawn { .. }), "{error}");
        assert_eq!(starts.load(Ordering::Relaxed), expected);
    }
}

#[tokio::test]
async fn nobody_waits_for_an_agent_that_does_not_start() {
    let tool = ExternalAgent::start_with(std::future::pending);
    let expires = async |tool: &ExternalAgent| {
        let call = tool.call("work").timeout(Duration::from_millis(20));
        let error = within(call).await.unwrap_err().to_string();
        assert!(error.contains("waiting for the agent"), "{error}");
    };
    expires(&tool).await;
    expires(&tool).await;
    // A dropped call holds neither the start nor a place.
    let tool = tool.max_concurrent(1);
    for _ in 0..2 {
        expires(&tool).await;
        tokio::task::yield_now().await;
    }
}
