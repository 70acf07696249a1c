//! When processes end: idle, old, too large, and with all that they have started.

use std::time::Duration;

use acp_server::Server;
use acp_server_host::{HostedAgent, HostedLimits};
use serde_json::json;

use crate::client::{Client, Script, gone, impatient, limits, runs};

/// A time in which nothing can be done that a test awaits.
const SHORT: Duration = Duration::from_millis(20);

async fn hosted(script: &Script, can: &str, limits: HostedLimits) -> (Server, HostedAgent) {
    let agent = script.agent().env("CAN", can).limits(limits);
    let agent = agent.start().await.unwrap();
    (Server::new(agent.clone()), agent)
}

fn idle(after: Duration) -> HostedLimits {
    let mut limits = limits();
    limits.idle_timeout = after;
    limits
}

/// Waits until unused processes with these limits have ended, several times over.
async fn passed(limits: &HostedLimits) {
    for _ in 0..3 {
        let script = Script::new();
        let (_server, _agent) = hosted(&script, "load", limits.clone()).await;
        gone(&script.starts()[0]).await;
    }
}

#[tokio::test]
async fn an_idle_process_ends_and_its_session_comes_back() {
    for (can, method) in [("load", "session/load"), ("resume", "session/resume")] {
        let script = Script::new();
        let (server, _agent) = hosted(&script, can, idle(SHORT)).await;
        let mut client = Client::with_session(&server).await;
        client.prompt("hello").await;
        gone(script.starts().last().unwrap()).await;
        let before = script.received(method).len();
        client.prompt("hello").await;
        assert_eq!(client.said(), ["hi"], "{can}");
        assert_eq!(script.received(method).len(), before + 1);
        assert_eq!(script.received("session/new").len(), 1);
        client.close().await;
        client.load().await;
        let said = client.said();
        assert_eq!(said, ["before the answer", "hello", "hi", "hello", "hi"]);
    }
}

#[tokio::test]
async fn a_process_that_is_used_is_not_idle() {
    let limits = idle(SHORT);
    for prompt in ["wait", "permission", "read"] {
        let script = Script::new();
        let (server, _agent) = hosted(&script, "load", limits.clone()).await;
        let offered = json!({ "fs": { "readTextFile": true } });
        let mut client = Client::offering(&server, offered).await;
        client.create().await;
        client.skip_greeting().await;
        client.begin_prompt(prompt).await;
        while client.next().await["method"] == "session/update" && prompt != "wait" {}
        passed(&limits).await;
        let starts = script.starts();
        assert!(
            runs(starts.last().unwrap()),
            "it ended in the turn {prompt:?}"
        );
    }
}

#[tokio::test]
async fn a_process_is_not_ended_while_a_session_is_opened_or_a_user_logs_in() {
    let limits = idle(SHORT);
    for (method, params) in [
        ("session/new", json!({ "cwd": "/w", "mcpServers": [] })),
        ("authenticate", json!({ "methodId": "key" })),
    ] {
        let script = Script::new();
        let agent = script.agent().env("HOLD", method).limits(limits.clone());
        let server = Server::new(agent.start().await.unwrap());
        let mut client = Client::attach(&server).await;
        client.begin(method, params).await;
        while script.received(method).is_empty() {
            tokio::time::sleep(SHORT).await;
        }
        passed(&limits).await;
        let starts = script.starts();
        assert!(runs(starts.last().unwrap()), "it ended during {method}");
    }
}

#[tokio::test]
async fn a_process_with_an_open_terminal_is_not_idle() {
    let limits = idle(SHORT);
    let script = Script::new();
    let (server, _agent) = hosted(&script, "load", limits.clone()).await;
    let mut client = Client::offering(&server, json!({ "terminal": true })).await;
    client.create().await;
    client.skip_greeting().await;
    let turn = client.begin_prompt("terminal").await;
    let create = client.next().await;
    assert_eq!(create["method"], "terminal/create");
    let created = json!({ "terminalId": "t" });
    client
        .send(json!({ "jsonrpc": "2.0", "id": create["id"], "result": created }))
        .await;
    client.answer(turn).await;
    passed(&limits).await;
    assert!(runs(script.starts().last().unwrap()), "its command is lost");
}

#[tokio::test]
async fn a_process_whose_sessions_would_be_lost_is_not_ended() {
    let mut limits = idle(SHORT);
    limits.max_age = SHORT;
    let script = Script::new();
    let (server, _agent) = hosted(&script, "", limits.clone()).await;
    let mut client = Client::with_session(&server).await;
    let process = script.starts().pop().unwrap();
    passed(&limits).await;
    assert!(runs(&process), "its session was lost");
    client.close().await;
    gone(&process).await;
}

#[tokio::test]
async fn an_old_process_is_replaced_after_its_turn() {
    let mut limits = limits();
    limits.idle_timeout = Duration::ZERO;
    limits.max_age = SHORT;
    let script = Script::new();
    let (server, _agent) = hosted(&script, "load", limits.clone()).await;
    let mut client = Client::with_session(&server).await;
    let turn = client.begin_prompt("wait").await;
    client.update().await;
    let process = script.starts().pop().unwrap();
    passed(&limits).await;
    assert!(runs(&process), "it ended in a turn");
    client.cancel().await;
    let answer = client.answer(turn).await;
    assert_eq!(answer["result"]["stopReason"], "cancelled");
    gone(&process).await;
    client.prompt("hello").await;
    assert_eq!(client.said(), ["hi"]);
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_process_that_uses_too_much_memory_is_ended_with_all_that_it_started() {
    let mut limits = limits();
    limits.max_memory = 20 << 20;
    limits.memory_interval = SHORT;
    let script = Script::new();
    let (server, _agent) = hosted(&script, "load", limits).await;
    let mut client = Client::with_session(&server).await;
    client.prompt("hello").await;
    let answer = client.prompt("grow").await;
    let error = answer["error"]["message"].as_str().unwrap();
    for part in [
        "agent.sh",
        "MiB of memory",
        "max_memory) is 20 MiB",
        "started again",
    ] {
        assert!(error.contains(part), "{part:?} is not in {error:?}");
    }
    script.all_gone().await;
    client.prompt("hello").await;
    assert_eq!(client.said(), ["hi"]);
    assert_eq!(script.starts().len(), 2);
}

/// Processes that have left the group of their agent end with it, whatever ends it.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_process_ends_with_what_has_left_its_group() {
    // With the agent.
    let script = Script::new();
    let agent = script.agent().env("CHILD", "1").start().await.unwrap();
    let server = Server::new(agent.clone());
    assert!(runs(&script.children()[0]));
    server.shutdown().await;
    agent.shutdown().await;
    assert!(!runs(&script.children()[0]), "shut down");
    assert!(!runs(&script.starts()[0]), "shut down");

    // When it is dropped, and when its start fails.
    let script = Script::new();
    let agent = script.agent().env("CHILD", "1").start().await.unwrap();
    drop(agent);
    script.all_gone().await;
    for at_start in ["die", "flood"] {
        let script = Script::new();
        let agent = script.agent().env("CHILD", "1").env("AT_START", at_start);
        agent.start().await.unwrap_err();
        assert_eq!(script.children().len(), 1);
        script.all_gone().await;
    }

    // When it is idle.
    let script = Script::new();
    let agent = script.agent().env("CHILD", "1").limits(idle(SHORT));
    let _agent = agent.start().await.unwrap();
    script.all_gone().await;

    // When it dies, and when it ignores a cancellation.
    for prompt in ["die", "stubborn"] {
        let script = Script::new();
        let agent = script.agent().env("CHILD", "1").start().await.unwrap();
        let server = impatient(&agent);
        let mut client = Client::with_session(&server).await;
        let turn = client.begin_prompt(prompt).await;
        client.update().await;
        client.cancel().await;
        client.answer(turn).await;
        script.all_gone().await;
    }
}

/// A program that ends after the shutdown would leave behind what is being ended.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_shutdown_waits_for_processes_that_are_being_ended() {
    let script = Script::new();
    let agent = script.agent().env("CHILD", "1").start().await.unwrap();
    let server = impatient(&agent);
    let mut client = Client::with_session(&server).await;
    let turn = client.begin_prompt("stubborn").await;
    client.update().await;
    client.cancel().await;
    let answer = client.answer(turn).await;
    assert_eq!(answer["result"]["stopReason"], "cancelled");
    server.shutdown().await;
    agent.shutdown().await;
    for pid in script.starts().iter().chain(&script.children()) {
        assert!(!runs(pid), "it still runs after the shutdown");
    }
}
