//! An agent as a tool, and an agent that delegates.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use acp_client::{Client, Decision, Event, ExternalAgent, Forward, Permissions, Policy, Question};
use acp_sdk::v1::*;
use serde_json::json;

use crate::agent::{Raw, TestAgent, connect, within};

#[tokio::test]
async fn a_task_goes_in_and_an_outcome_comes_out() {
    let client = connect(TestAgent::default(), Client::builder()).await;
    let tool = ExternalAgent::new(client);
    let outcome = within(tool.ask("/", "work")).await.unwrap();
    assert_eq!(outcome.text, "One.\n\nTwo.");
    let mut updates = 0;
    let count = |event: &Event| updates += usize::from(matches!(event, Event::Update(_)));
    within(tool.ask_watching("/", "work", count)).await.unwrap();
    assert_eq!(updates, 8);
    let error = within(tool.ask("/", "fail")).await.unwrap_err();
    assert!(error.to_string().contains("as you wish"), "{error}");
}

#[tokio::test]
async fn tasks_run_side_by_side() {
    let agent = TestAgent::default();
    let tool = ExternalAgent::new(connect(agent.clone(), Client::builder()).await);
    let dir = tempfile::tempdir().unwrap();
    let hanging = tool.ask("/", "hang");
    let others = async {
        agent.hanging.notified().await;
        let outcome = tool.ask(dir.path(), "quick").await.unwrap();
        agent.cancelled.notify_one();
        outcome.text
    };
    let (hung, quick) = within(async { tokio::join!(hanging, others) }).await;
    assert_eq!(quick, "quick");
    assert_eq!(hung.unwrap().text, "workingstopped");
}

#[tokio::test]
async fn a_task_that_takes_too_long_is_cancelled() {
    let client = connect(TestAgent::default(), Client::builder()).await;
    let tool = ExternalAgent::new(client).limit(Duration::from_millis(50));
    let outcome = within(tool.ask("/", "hang")).await.unwrap();
    assert_eq!(outcome.stop_reason, StopReason::Cancelled);
    assert_eq!(outcome.text, "workingstopped");
}

#[tokio::test]
async fn a_task_that_is_dropped_is_cancelled() {
    let agent = TestAgent::default();
    let tool = ExternalAgent::new(connect(agent.clone(), Client::builder()).await);
    tokio::select! {
        _ = tool.ask("/", "hang") => panic!("it hangs"),
        () = agent.hanging.notified() => {}
    }
    within(agent.stopped.notified()).await;
    within(agent.closed.notified()).await;
}

#[tokio::test]
async fn a_task_that_is_dropped_before_its_session_is_there_closes_it() {
    let hello = json!({
        "protocolVersion": 1,
        "agentCapabilities": { "sessionCapabilities": { "close": {} } },
    });
    let (client, mut raw) = Raw::connect_saying(Client::builder(), hello).await;
    let tool = ExternalAgent::new(client);
    let request = tokio::select! {
        _ = tool.ask("/", "work") => panic!("there is no answer"),
        request = raw.next() => request,
    };
    assert_eq!(request["method"], "session/new");
    raw.send(json!({"jsonrpc": "2.0", "id": request["id"], "result": {"sessionId": "s"}}))
        .await;
    let params = raw.params("session/close", json!({})).await;
    assert_eq!(params, json!({"sessionId": "s"}));
}

/// An agent that has everything done by another one, and passes its questions on.
struct Delegating {
    agent: TestAgent,
}

impl Agent for Delegating {
    async fn new_session(
        &self,
        _: &AgentContext,
        _: NewSessionRequest,
    ) -> acp_sdk::HandlerResult<NewSessionResponse> {
        Ok(NewSessionResponse::new("outer"))
    }

    async fn prompt(
        &self,
        cx: &AgentContext,
        req: PromptRequest,
    ) -> acp_sdk::HandlerResult<PromptResponse> {
        let forward = Forward::new(cx.client().clone(), req.session_id.clone());
        let builder = Client::builder().permissions(forward);
        let tool = ExternalAgent::new(connect(self.agent.clone(), builder).await);
        let outcome = tool.ask("/", req.prompt).await;
        let outcome = outcome.map_err(acp_sdk::HandlerError::internal)?;
        Ok(PromptResponse::new(outcome.stop_reason))
    }

    async fn cancel(&self, _: &AgentContext, _: CancelNotification) -> acp_sdk::HandlerResult<()> {
        Ok(())
    }
}

/// A policy that notes what it is asked.
#[derive(Clone)]
struct Noting(Policy, Arc<Mutex<Vec<Question>>>);

impl Permissions for Noting {
    async fn decide(&self, question: &Question) -> Decision {
        self.1.lock().unwrap().push(question.clone());
        self.0.decide(question).await
    }
}

#[tokio::test]
async fn a_delegating_agent_passes_questions_on_to_its_own_client() {
    for (policy, id) in [(Policy::ApproveAll, "4"), (Policy::DenyAll, "3")] {
        let agent = TestAgent::default();
        let delegating = Delegating {
            agent: agent.clone(),
        };
        let asked = Arc::default();
        let noting = Noting(policy, Arc::clone(&asked));
        let (ours, theirs) = tokio::io::duplex(1 << 16);
        let (reader, writer) = tokio::io::split(theirs);
        tokio::spawn(acp_sdk::serve(delegating, (reader, writer)));
        let (reader, writer) = tokio::io::split(ours);
        let builder = Client::builder().permissions(noting);
        let client = within(builder.connect((reader, writer))).await.unwrap();
        let session = within(client.new_session("/")).await.unwrap();
        let turn = session.prompt("ask edit").await.unwrap();
        within(turn.outcome()).await.unwrap();

        let chosen = json!({"outcome": "selected", "optionId": id});
        assert_eq!(*agent.answered.lock().unwrap(), [chosen]);
        let asked = asked.lock().unwrap();
        assert_eq!(asked.len(), 1);
        assert_eq!(asked[0].request.session_id.as_str(), "outer");
        assert_eq!(asked[0].title.as_deref(), Some("Do it"));
        assert_eq!(asked[0].kind, Some(ToolKind::Edit));
    }
}
