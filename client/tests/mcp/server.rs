//! `McpServer` over streams in memory.

use std::time::Duration;

use acp_client::{Client, ExternalAgent, McpError, McpServer};
use rmcp::ServiceExt as _;
use rmcp::model::{ClientRequest, ErrorCode, Request};
use rmcp::service::{PeerRequestOptions, ServiceError};
use serde_json::json;
use tokio::io::AsyncWriteExt as _;
use tokio::task::JoinHandle;

use crate::agent::{TestAgent, connect, within};
use crate::host::{Connected, Host, call, params, texts};

type Serving = JoinHandle<Result<(), McpError>>;

async fn serve(agent: TestAgent, host: Host) -> (Connected, Serving) {
    let agent = ExternalAgent::new(connect(agent, Client::builder()).await);
    serve_agent(agent.name("worker").directory("/"), host).await
}

async fn serve_agent(agent: ExternalAgent, host: Host) -> (Connected, Serving) {
    let (ours, theirs) = tokio::io::duplex(1 << 16);
    let (input, output) = tokio::io::split(theirs);
    let serving = tokio::spawn(McpServer::new([agent]).serve(input, output));
    let host = within(host.serve(tokio::io::split(ours))).await.unwrap();
    (host, serving)
}

#[tokio::test]
async fn there_is_one_tool_that_has_a_task_done() {
    let (host, serving) = serve(TestAgent::default(), Host::default()).await;
    let tools = within(host.list_all_tools()).await.unwrap();
    assert_eq!(tools.len(), 1);
    assert_eq!(tools[0].name, "worker");
    assert!(
        tools[0]
            .description
            .as_ref()
            .is_some_and(|text| text.contains("another agent"))
    );
    assert_eq!(tools[0].input_schema["required"], json!(["task"]));

    let result = call(&host, "work").await.unwrap();
    assert_eq!(result.is_error, Some(false));
    assert_eq!(texts(&result), ["One.\n\nTwo."]);
    let meta = serde_json::to_value(&result.meta).unwrap();
    let ours = &meta["acp-sdk"];
    assert_eq!(ours["stopReason"], "end_turn");
    assert_eq!(ours["toolCalls"][0]["title"], "Read it");
    assert_eq!(ours["toolCalls"][0]["status"], "completed");
    assert_eq!(ours["cost"]["amount"], 0.5);
    within(host.cancel()).await.unwrap();
    within(serving).await.unwrap().unwrap();
}

#[tokio::test]
async fn what_fails_is_told_to_the_model() {
    let agent = connect(TestAgent::default(), Client::builder()).await;
    let agent = ExternalAgent::new(agent).name("worker").directory("/");
    let timeout = agent.clone().timeout(Duration::from_millis(50));
    let (host, _serving) = serve_agent(agent, Host::default()).await;
    let result = call(&host, "fail").await.unwrap();
    assert_eq!(result.is_error, Some(true));
    assert!(texts(&result)[0].contains("as you wish"), "{result:?}");
    for wrong in [
        json!({}),
        json!({"task": 1}),
        json!({"task": " "}),
        json!({"task": "a", "b": 1}),
    ] {
        let result = within(host.call_tool(params("worker", &wrong)))
            .await
            .unwrap();
        assert_eq!(result.is_error, Some(true));
        assert!(
            texts(&result)[0].starts_with("invalid arguments: "),
            "{result:?}"
        );
    }
    let unknown = params("other", &json!({"task": "work"}));
    let error = within(host.call_tool(unknown)).await.unwrap_err();
    assert!(
        matches!(&error, ServiceError::McpError(error) if error.code == ErrorCode::INVALID_PARAMS),
        "{error}"
    );
    let (host, _serving) = serve_agent(timeout, Host::default()).await;
    let result = call(&host, "hang").await.unwrap();
    assert_eq!(result.is_error, Some(true));
    assert_eq!(texts(&result)[0], "workingstopped");
    assert!(texts(&result)[1].contains("ran out of time"), "{result:?}");
}

#[tokio::test]
async fn what_the_agent_does_is_progress() {
    let host = Host::default();
    let (connected, _serving) = serve(TestAgent::default(), host.clone()).await;
    call(&connected, "work").await.unwrap();
    // The host handles each notification in a separate task.
    let progress = loop {
        let progress = host.progress.lock().unwrap().clone();
        let done = progress
            .iter()
            .any(|(_, message)| message == "Read it: completed");
        if done && progress.iter().any(|(_, message)| message == "Read it") {
            break progress;
        }
        within(host.told.notified()).await;
    };
    let mut numbers: Vec<f64> = progress.iter().map(|(number, _)| *number).collect();
    numbers.sort_by(f64::total_cmp);
    numbers.dedup();
    assert_eq!(numbers.len(), progress.len(), "{progress:?}");
}

#[tokio::test]
async fn a_request_that_is_cancelled_cancels_the_turn() {
    let agent = TestAgent::default();
    let (host, _serving) = serve(agent.clone(), Host::default()).await;
    let request = Request::new(params("worker", &json!({"task": "hang"})));
    let request = ClientRequest::CallToolRequest(request);
    let sent = host.send_cancellable_request(request, PeerRequestOptions::no_options());
    let sent = within(sent).await.unwrap();
    within(agent.hanging.notified()).await;
    within(sent.cancel(None)).await.unwrap();
    within(agent.stopped.notified()).await;
    within(agent.closed.notified()).await;
    // The connection continues.
    let result = call(&host, "work").await.unwrap();
    assert_eq!(result.is_error, Some(false), "{result:?}");
}

#[tokio::test]
async fn a_host_that_leaves_cancels_its_calls() {
    let agent = TestAgent::default();
    let (host, serving) = serve(agent.clone(), Host::default()).await;
    let calling = tokio::spawn(async move {
        tokio::select! {
            _ = call(&host, "hang") => panic!("it hangs"),
            () = agent.hanging.notified() => {}
        }
        drop(host);
        agent
    });
    let agent = within(calling).await.unwrap();
    within(agent.stopped.notified()).await;
    within(agent.closed.notified()).await;
    within(serving).await.unwrap().unwrap();
}

#[tokio::test]
async fn a_peer_that_is_no_host_is_an_error_and_one_that_leaves_is_none() {
    let agent = || ExternalAgent::start_with(std::future::pending);
    let (mut ours, theirs) = tokio::io::duplex(1 << 16);
    let (input, output) = tokio::io::split(theirs);
    let serving = tokio::spawn(McpServer::new([agent()]).serve(input, output));
    let message = json!({"jsonrpc": "2.0", "id": 1, "result": {}});
    ours.write_all(format!("{message}\n").as_bytes())
        .await
        .unwrap();
    let error = within(serving).await.unwrap().unwrap_err();
    assert!(matches!(error, McpError::Initialize(_)), "{error}");

    let (ours, theirs) = tokio::io::duplex(1 << 16);
    let (input, output) = tokio::io::split(theirs);
    drop(ours);
    within(McpServer::new([agent()]).serve(input, output))
        .await
        .unwrap();
}
