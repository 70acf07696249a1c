//! Tools and their calls.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use acp_sdk::v1::{ContentBlock, EnvVariable, McpServer, TextContent};
use acp_server_mcp::{CallError, Servers};
use serde_json::json;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::support::{GUARD, arguments, call, connect, one, options, scripted, text};

#[tokio::test]
async fn the_tools_of_all_servers_have_different_names() {
    let servers = connect(vec![scripted("b", ""), scripted("a", "")], &options()).await;
    let tools = servers.tools();
    let names: Vec<_> = tools.iter().map(|tool| &*tool.name).collect();
    assert_eq!(names.len(), 32);
    assert_eq!((names[0], names[16]), ("b__echo", "a__echo"));
    assert_eq!((names[14], &*tools[15].tool), ("b__env", "no object"));
    assert!(names[15].starts_with("b__no_object_"), "{}", names[15]);
    let echo = &tools[16];
    assert_eq!((&*echo.server, &*echo.tool), ("a", "echo"));
    assert_eq!(echo.title.as_deref(), Some("The title"));
    assert_eq!(echo.description.as_deref(), Some("Description of echo"));
    assert_eq!(echo.input_schema["properties"]["word"]["type"], "string");
    assert_eq!(echo.annotations.read_only, Some(true));
    assert_eq!(echo.annotations.open_world, Some(false));
    assert_eq!(echo.annotations.idempotent, None);
    servers.close().await;
}

#[tokio::test]
async fn a_result_becomes_content() {
    let servers = one("", &options()).await;
    let output = call(&servers, "everything", "").await.unwrap();
    let kinds = output.content.iter().map(|block| match block {
        ContentBlock::Text(_) => "text",
        ContentBlock::Image(_) => "image",
        ContentBlock::ResourceLink(_) => "link",
        _ => "other",
    });
    assert_eq!(kinds.collect::<Vec<_>>(), ["text", "image", "link"]);
    assert_eq!(output.structured, Some(json!({"number": 1})));
    assert!(!output.is_error);
    let failed = call(&servers, "fail", "no such file").await.unwrap();
    assert!(failed.is_error);
    assert_eq!(failed.content, [TextContent::new("no such file").into()]);
    let refused = call(&servers, "refuse", "no word").await.unwrap_err();
    let expected = "MCP server `a` failed the call of `refuse`: no word (-32602)";
    assert_eq!(refused.to_string(), expected);
    let name = servers.tools()[15].name.clone();
    let odd = servers.call(&name, arguments("", 0), std::future::pending());
    assert!(matches!(odd.await, Err(CallError::Failed { .. })));
    let unknown = call(&servers, "sing", "").await.unwrap_err();
    assert!(matches!(unknown, CallError::UnknownTool { .. }));
    servers.close().await;
}

#[tokio::test]
async fn a_server_learns_of_its_session() {
    let mut options = options();
    options.client = ("test-agent".to_owned(), "7".to_owned());
    options.role = Some("developer".to_owned());
    let cwd = tempfile::Builder::new()
        .prefix("project-")
        .tempdir()
        .unwrap();
    let named = vec![scripted("a", "")];
    let servers = Servers::connect_to(named, "session-1", cwd.path(), &options).await;
    let project = cwd.path().file_name().unwrap().to_str();
    let session = json!({"role": "developer", "project": project, "session_id": "session-1"});
    let told = json!(["test-agent", {"experimental": {"session": session}}]);
    assert_eq!(text(&servers, "client", 0).await, told.to_string());
    servers.close().await;
}

#[tokio::test]
async fn a_server_has_the_environment_of_the_agent_except_what_is_withheld() {
    let mut options = options();
    options.withheld_env = vec!["CARGO_MANIFEST_DIR".to_owned(), "CARGO_PKG_NAME".to_owned()];
    let mut server = scripted("a", "");
    let McpServer::Stdio(stdio) = &mut server else {
        unreachable!()
    };
    // The client may set it all the same.
    stdio.env.push(EnvVariable::new("CARGO_PKG_NAME", "mine"));
    let servers = connect(vec![server], &options).await;
    let mut values = Vec::new();
    for name in ["CARGO_PKG_VERSION", "CARGO_MANIFEST_DIR", "CARGO_PKG_NAME"] {
        values.push(call(&servers, "env", name).await.unwrap().text());
    }
    assert_eq!(values, [env!("CARGO_PKG_VERSION"), "(none)", "mine"]);
    servers.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn progress_is_reported_in_order_before_the_result() {
    let servers = one("", &options()).await;
    let reports = Arc::new(Mutex::new(Vec::new()));
    let reported = reports.clone();
    let output = servers.call_with_progress(
        "a__progress",
        arguments("", 200),
        std::future::pending(),
        move |progress| {
            assert_eq!(progress.total, Some(200.0));
            assert_eq!(progress.message.as_deref(), Some("going on"));
            reported.lock().unwrap().push(progress.progress);
        },
    );
    assert_eq!(output.await.unwrap().text(), "done");
    let expected: Vec<_> = (1..=200).map(f64::from).collect();
    assert_eq!(*reports.lock().unwrap(), expected);
    servers.close().await;
}

/// Waits until the server has been notified of so many cancelled requests.
async fn cancelled(servers: &Servers, count: &str) {
    let notified = async { while text(servers, "cancelled", 0).await != count {} };
    timeout(GUARD, notified)
        .await
        .expect("the server is not notified");
}

#[tokio::test]
async fn a_cancelled_call_returns_at_once_and_the_server_is_notified() {
    let servers = one("", &options()).await;
    let cancel = CancellationToken::new();
    let mut hanging = Box::pin(servers.call("a__hang", arguments("", 0), cancel.cancelled()));
    assert!(poll_once(&mut hanging).await.is_none());
    // Behind the first one: it is sent.
    call(&servers, "echo", "").await.unwrap();
    assert!(poll_once(&mut hanging).await.is_none());
    cancel.cancel();
    let error = poll_once(&mut hanging).await.unwrap().unwrap_err();
    assert_eq!(
        error.to_string(),
        "the call of `hang` of MCP server `a` was cancelled"
    );
    drop(hanging);
    cancelled(&servers, "1").await;
    // A call that nobody waits for any more is cancelled too.
    let mut hanging = Box::pin(servers.call("a__hang", arguments("", 0), std::future::pending()));
    assert!(poll_once(&mut hanging).await.is_none());
    call(&servers, "echo", "").await.unwrap();
    drop(hanging);
    cancelled(&servers, "2").await;
    servers.close().await;
}

/// Polls a future once.
async fn poll_once<F: Future + Unpin>(future: &mut F) -> Option<F::Output> {
    std::future::poll_fn(
        |context| match std::pin::Pin::new(&mut *future).poll(context) {
            std::task::Poll::Ready(output) => std::task::Poll::Ready(Some(output)),
            std::task::Poll::Pending => std::task::Poll::Ready(None),
        },
    )
    .await
}

#[tokio::test]
async fn a_call_without_an_answer_times_out_and_is_cancelled() {
    let mut options = options();
    options.call_timeout = Duration::from_millis(50);
    let servers = one("", &options).await;
    let error = call(&servers, "hang", "").await.unwrap_err();
    assert!(matches!(error, CallError::TimedOut { .. }), "{error}");
    let notified = async {
        // One that is too slow itself times out as well.
        while !call(&servers, "cancelled", "")
            .await
            .is_ok_and(|it| it.text() != "0")
        {}
    };
    timeout(GUARD, notified).await.unwrap();
    servers.close().await;
}

#[tokio::test]
async fn calls_run_at_the_same_time() {
    let servers = one("", &options()).await;
    let calls = (0..50).map(|number| {
        let servers = servers.clone();
        tokio::spawn(async move { call(&servers, "echo", &number.to_string()).await })
    });
    for (number, call) in calls.collect::<Vec<_>>().into_iter().enumerate() {
        assert_eq!(call.await.unwrap().unwrap().text(), number.to_string());
    }
    servers.close().await;
}

#[tokio::test]
async fn what_exceeds_the_limit_of_a_result_is_left_out() {
    let mut options = options();
    options.max_result_bytes = 1000;
    let servers = one("", &options).await;
    assert_eq!(text(&servers, "huge", 1000).await.len(), 1000);
    let cut = text(&servers, "huge", 5_000_000).await;
    assert!(cut.ends_with("x\n[4999000 bytes left out]"));
    servers.close().await;
}

#[tokio::test]
async fn tools_that_change_are_read_again() {
    let servers = one("", &options()).await;
    let has_late = || servers.tools().iter().any(|tool| tool.name == "a__late");
    assert!(!has_late());
    let mut seen = 0;
    timeout(GUARD, servers.changed(&mut seen)).await.unwrap();
    text(&servers, "grow", 0).await;
    while !has_late() {
        timeout(GUARD, servers.changed(&mut seen)).await.unwrap();
    }
    assert_eq!(servers.tools().len(), 17);
    servers.close().await;
}

#[tokio::test]
async fn a_server_has_a_limited_number_of_tools() {
    let mut options = options();
    options.max_tools = 3;
    let servers = one("", &options).await;
    assert_eq!(servers.tools().len(), 3);
    servers.close().await;
}
