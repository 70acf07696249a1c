//! Agents that die, break the protocol or do not react.

use std::time::Duration;

use acp_server::Server;
use acp_server_host::HostedError;
use serde_json::json;

use crate::client::{Client, Script, impatient, limits};

async fn error_of(client: &mut Client, prompt: &str) -> String {
    let answer = client.prompt(prompt).await;
    let message = answer["error"]["message"].as_str();
    message
        .unwrap_or_else(|| panic!("no error: {answer}"))
        .to_owned()
}

#[tokio::test]
async fn an_agent_that_dies_in_a_turn_is_started_again() {
    let script = Script::new();
    let agent = script.agent().env("CAN", "load").start().await.unwrap();
    let server = Server::new(agent);
    let mut client = Client::with_session(&server).await;
    let error = error_of(&mut client, "die").await;
    for part in [
        "agent.sh",
        "exited with code 9",
        "the disk is full",
        "started again",
    ] {
        assert!(error.contains(part), "{part:?} is not in {error:?}");
    }
    let last = client.before.last().unwrap();
    let failed =
        json!({ "sessionUpdate": "tool_call_update", "toolCallId": "c", "status": "failed" });
    assert_eq!(last["params"]["update"], failed, "the tool call stays open");

    assert_eq!(
        client.prompt("hello").await["result"]["stopReason"],
        "end_turn"
    );
    assert_eq!(client.said(), ["hi"], "the replay is in the log again");
    assert_eq!(script.starts().len(), 2);
    let loaded = &script.received("session/load")[0]["params"];
    let prompted = &script.received("session/prompt")[0]["params"];
    assert_eq!(loaded["sessionId"], prompted["sessionId"]);
}

#[tokio::test]
async fn a_killed_agent_is_started_again_at_the_next_prompt() {
    let script = Script::new();
    let agent = script
        .agent()
        .env("CAN", "resume load")
        .start()
        .await
        .unwrap();
    let server = Server::new(agent);
    let mut client = Client::with_session(&server).await;
    let id = client.begin_prompt("wait").await;
    client.update().await;
    let pid = rustix::process::Pid::from_raw(script.starts()[0].parse().unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    let answer = client.answer(id).await;
    let error = answer["error"]["message"].as_str().unwrap();
    assert!(error.contains("SIGKILL"), "{error}");
    client.prompt("hello").await;
    assert_eq!(client.said(), ["hi"]);
    assert_eq!(script.received("session/resume").len(), 1);
    assert_eq!(script.received("session/load").len(), 0, "it can resume");
}

#[tokio::test]
async fn an_agent_that_cannot_load_says_that_it_has_forgotten() {
    let script = Script::new();
    let (server, _agent) = script.server().await;
    let mut client = Client::with_session(&server).await;
    error_of(&mut client, "die").await;
    client.prompt("hello").await;
    let said = client.said();
    assert!(
        said.iter()
            .any(|text| text.contains("does not know what was said")),
        "{said:?}"
    );
    assert_eq!(said.last().unwrap(), "hi");
    assert_eq!(script.received("session/new").len(), 2);
    // From here on the new session is the one to load.
    client.prompt("hello").await;
    assert_eq!(client.said(), ["hi"]);
}

#[tokio::test]
async fn a_command_that_cannot_be_started_or_ends_is_an_error_at_once() {
    let missing = acp_server_host::HostedAgent::builder("/no/such/agent")
        .start()
        .await;
    let error = missing.unwrap_err();
    assert!(matches!(error, HostedError::Spawn(_)), "{error:?}");
    assert!(error.to_string().contains("/no/such/agent"), "{error}");

    let script = Script::new();
    let error = script
        .agent()
        .env("AT_START", "die")
        .start()
        .await
        .unwrap_err();
    let text = error.to_string();
    for part in ["exited with code 3", "first line | no luck today"] {
        assert!(text.contains(part), "{part:?} is not in {text:?}");
    }

    let error = script
        .agent()
        .env("AT_START", "flood")
        .start()
        .await
        .unwrap_err();
    assert!(error.to_string().contains("no messages"), "{error}");

    let mut short = limits();
    short.start_timeout = Duration::from_millis(300);
    let silent = script.agent().env("AT_START", "silent").limits(short);
    let error = silent.start().await.unwrap_err();
    assert!(matches!(error, HostedError::TimedOut { .. }), "{error:?}");

    let error = script
        .agent()
        .env("VERSION", "3")
        .start()
        .await
        .unwrap_err();
    assert!(
        matches!(error, HostedError::Version { version: 3, .. }),
        "{error:?}"
    );
}

#[tokio::test]
async fn an_agent_that_dies_again_and_again_is_given_up_for_a_while() {
    let script = Script::new();
    let mut few = limits();
    few.failures = 3;
    few.restart_delay = Duration::from_millis(1);
    few.max_restart_delay = Duration::from_secs(3600);
    // The delay after the third failure is one that no test waits for.
    few.restart_delay = Duration::from_millis(1);
    let agent = script.agent().limits(few).start().await.unwrap();
    let server = Server::new(agent);
    let mut client = Client::with_session(&server).await;
    for _ in 0..2 {
        assert!(error_of(&mut client, "die").await.contains("code 9"));
    }
    let error = loop {
        let error = error_of(&mut client, "die").await;
        if !error.contains("code 9") || error.contains("in a row") {
            break error;
        }
        assert!(script.starts().len() < 20, "it is started for ever");
    };
    assert!(error.contains("times in a row"), "{error}");
    assert!(error.contains("exited with code 9"), "{error}");
}

#[tokio::test]
async fn an_agent_that_breaks_the_protocol_is_ended() {
    let script = Script::new();
    let mut small = limits();
    small.message_bytes = 100_000;
    let agent = script.agent().limits(small).start().await.unwrap();
    let server = Server::new(agent);
    let mut client = Client::with_session(&server).await;
    let error = error_of(&mut client, "garbage").await;
    assert!(
        error.contains(r#"no "message"#) || error.contains("no messages"),
        "{error}"
    );
    let error = error_of(&mut client, "huge").await;
    assert!(error.contains("300000 bytes"), "{error}");
    client.prompt("hello").await;
    assert_eq!(client.said().last().unwrap(), "hi");
    assert_eq!(script.starts().len(), 3);
}

#[tokio::test]
async fn an_agent_that_ignores_a_cancellation_does_not_hang_the_session() {
    let script = Script::new();
    let agent = script.agent().env("CAN", "load").start().await.unwrap();
    let server = impatient(&agent);
    let mut client = Client::with_session(&server).await;
    let mut other = Client::with_session(&server).await;
    let others = other.begin_prompt("wait").await;
    other.update().await;
    let id = client.begin_prompt("stubborn").await;
    client.update().await;
    client.cancel().await;
    assert_eq!(client.answer(id).await["result"]["stopReason"], "cancelled");
    client.prompt("hello").await;
    assert_eq!(client.said(), ["hi"]);
    assert_eq!(script.starts().len(), 2, "in another process");
    // The turn of the other session goes on where it is.
    other.cancel().await;
    assert_eq!(
        other.answer(others).await["result"]["stopReason"],
        "cancelled"
    );
    other.prompt("hello").await;
    assert_eq!(other.said(), ["hi"]);
    assert_eq!(script.starts().len(), 2);
}

#[tokio::test]
async fn standard_error_that_nobody_reads_delays_nothing() {
    let script = Script::new();
    let (server, _agent) = script.server().await;
    let mut client = Client::with_session(&server).await;
    client.prompt("stderr").await;
    assert_eq!(client.said(), ["done"]);
}
