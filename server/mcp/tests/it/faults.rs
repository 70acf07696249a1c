//! Servers that fail.

use std::time::Duration;

use acp_sdk::v1::{McpServerSse, McpServerStdio};
use acp_server_mcp::{CallError, Reconnect, ServerState};

use crate::support::{arguments, call, connect, one, options, ready, scripted, state, text};

/// Returns why a server has failed.
fn reason(state: ServerState) -> String {
    match state {
        ServerState::Failed { reason } => reason,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn servers_that_do_not_start_harm_no_other() {
    let nobody = McpServerStdio::new("gone", "/no/such/server", vec![], vec![]);
    let sse = McpServerSse::new("old", "http://localhost/sse", vec![]);
    let named = vec![
        scripted("a", ""),
        nobody.into(),
        scripted("broken", "broken"),
        sse.into(),
        scripted("a", ""),
    ];
    let servers = connect(named, &options()).await;
    let states = servers.states();
    let names: Vec<_> = states.iter().map(|server| &*server.name).collect();
    assert_eq!(names, ["a", "gone", "broken", "old", "a"]);
    let mut states = states.into_iter().map(|server| server.state);
    assert_eq!(states.next(), Some(ServerState::Ready { tools: 16 }));
    let reasons: Vec<_> = states.map(reason).collect();
    let expected = [
        "cannot be started: /no/such/server does not exist",
        "exited with code 3; standard error: the key is missing",
        "uses the transport `sse`, which is not supported. Configure it as `http`",
        "has the name of another server of the session",
    ];
    assert_eq!(reasons, expected);
    assert_eq!(
        call(&servers, "echo", "hello").await.unwrap().text(),
        "hello"
    );
    servers.close().await;
}

#[tokio::test]
async fn a_server_that_does_not_answer_fails() {
    let mut options = options();
    options.start_timeout = Duration::from_millis(100);
    let servers = one("silent", &options).await;
    let expected = "did not answer `initialize` within 100ms";
    assert_eq!(reason(servers.states()[0].state.clone()), expected);
    servers.close().await;
}

#[tokio::test]
async fn output_that_is_no_message_is_ignored() {
    let servers = one("", &options()).await;
    assert_eq!(text(&servers, "noise", 0).await, "heard");
    assert_eq!(
        call(&servers, "echo", "hello").await.unwrap().text(),
        "hello"
    );
    servers.close().await;
}

#[tokio::test]
async fn standard_error_is_read_and_its_end_is_kept() {
    let mut options = options();
    options.max_stderr_bytes = 60;
    options.restart = None;
    let servers = one("", &options).await;
    assert_eq!(text(&servers, "flood", 20_000).await, "flooded");
    let error = call(&servers, "die", "the last words")
        .await
        .unwrap_err()
        .to_string();
    let expected = "MCP server `a` ended during the call of `die`: exited with code 3; \
                    standard error: …";
    assert!(error.starts_with(expected), "{error}");
    assert!(error.ends_with(" | the last words"), "{error}");
    assert!(error.len() <= expected.len() + 60, "{error}");
    servers.close().await;
}

#[tokio::test]
async fn calls_fail_while_a_server_waits_for_its_restart() {
    let mut options = options();
    let hour = Duration::from_secs(3600);
    options.restart = Some(Reconnect::default().with_waits(hour, hour).with_limit(hour));
    let named = vec![scripted("a", ""), scripted("b", "")];
    let servers = connect(named, &options).await;
    let hanging = servers.call("a__hang", arguments("", 0), std::future::pending());
    let (hanging, dying) = tokio::join!(hanging, call(&servers, "die", "no memory"));
    for ended in [hanging, dying] {
        let CallError::Ended { server, reason, .. } = ended.unwrap_err() else {
            panic!();
        };
        let expected = "exited with code 3; standard error: no memory";
        assert_eq!((&*server, &*reason), ("a", expected));
    }
    let ServerState::Restarting {
        attempt: 1, wait, ..
    } = servers.states()[0].state.clone()
    else {
        panic!("{servers:?}");
    };
    assert!(wait > hour / 3 && wait <= hour);
    let error = call(&servers, "echo", "").await.unwrap_err();
    let expected = "cannot call `echo`: MCP server `a` exited with code 3; standard error: no \
                    memory; it is started again (attempt 1)";
    assert_eq!(error.to_string(), expected);
    assert_eq!(servers.tools().len(), 32, "those of both");
    let other = servers.call("b__echo", arguments("hello", 0), std::future::pending());
    assert_eq!(other.await.unwrap().text(), "hello");
    servers.close().await;
    assert_eq!(servers.states()[0].state, ServerState::Closed);
    let error = call(&servers, "echo", "").await.unwrap_err();
    assert!(matches!(error, CallError::UnknownTool { .. }), "{error}");
}

#[tokio::test]
async fn a_server_that_has_ended_is_started_again() {
    let servers = one("", &options()).await;
    for _ in 0..3 {
        call(&servers, "die", "again").await.unwrap_err();
        ready(&servers).await;
        assert_eq!(
            call(&servers, "echo", "hello").await.unwrap().text(),
            "hello"
        );
    }
    servers.close().await;
}

#[tokio::test]
async fn a_server_that_ends_over_and_over_fails() {
    let dir = tempfile::tempdir().unwrap();
    let mut options = options();
    let limit = Duration::from_millis(100);
    options.restart = options.restart.map(|restart| restart.with_limit(limit));
    let mode = format!("once:{}/started", dir.path().display());
    let servers = one(&mode, &options).await;
    call(&servers, "die", "for the first time")
        .await
        .unwrap_err();
    let failed = state(&servers, |state| {
        matches!(state, ServerState::Failed { .. })
    })
    .await;
    let expected = "exited with code 3; standard error: started again";
    assert_eq!(reason(failed), expected);
    assert!(servers.tools().is_empty());
    servers.close().await;
}

#[tokio::test]
async fn a_message_above_the_limit_ends_the_server() {
    let mut options = options();
    options.max_message_bytes = 100_000;
    let servers = one("", &options).await;
    let huge = servers.call("a__huge", arguments("", 200_000), std::future::pending());
    let error = huge.await.unwrap_err().to_string();
    assert!(
        error.contains("sent a message of more than 100000 bytes"),
        "{error}"
    );
    ready(&servers).await;
    assert_eq!(text(&servers, "huge", 90_000).await.len(), 90_000);
    servers.close().await;
}

#[tokio::test]
async fn a_server_that_reads_no_answers_is_ended() {
    let servers = one("", &options()).await;
    assert_eq!(text(&servers, "pings", 100).await, "sent");
    let pings = servers.call("a__pings", arguments("", 1_000_000), std::future::pending());
    let error = pings.await.unwrap_err().to_string();
    assert!(
        error.contains("sent requests without reading the answers"),
        "{error}"
    );
    ready(&servers).await;
    servers.close().await;
}
