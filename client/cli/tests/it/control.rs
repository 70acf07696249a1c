//! `acp status` and `acp cancel` about a session that another `acp` uses.

use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use rustix::process::Signal;
use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;

use super::acp::Acp;
use super::agents::Home;
use super::pty::Terminal;
use super::script::script;
use crate::agent::within;

const AGENT: &str = r#"answer '{"protocolVersion":1,"agentCapabilities":{"loadSession":true}}'
    message; send '{"jsonrpc":"2.0","id":'"$id"',"result":{"sessionId":"s"}}'; prompt; say 'working\n'; message
    case $line in *session/cancel*) end cancelled;; esac; message"#;

async fn working(home: &Home) -> Acp {
    let mut command = home.command(&["run", "--deny-all", "--session", "work", "hi"]);
    command.args(["--", "sh", "-c", &script(AGENT)]);
    let mut acp = Acp::spawn(command);
    acp.printed("working").await;
    acp
}

fn socket(home: &Home) -> PathBuf {
    let folder = home.path("data/acp/sessions").read_dir().unwrap();
    let mut files = folder.map(|file| file.unwrap().path());
    files
        .find(|file| file.extension().is_some_and(|end| end == "sock"))
        .unwrap()
}

#[tokio::test]
async fn a_run_is_seen_and_cancelled_by_its_name() {
    let home = Home::new();
    let none = home.acp(&["status", "--session", "work"]).await;
    assert_eq!(none.code, Some(1), "{none:?}");
    assert!(
        none.stderr.contains("no acp uses the session \"work\""),
        "{none:?}"
    );
    let acp = working(&home).await;
    let seen = home.acp(&["status", "--session", "work"]).await;
    assert!(seen.stdout.starts_with("a turn of s runs for "), "{seen:?}");
    let seen = home
        .acp(&["status", "--session", "work", "--format", "json"])
        .await;
    let seen: Value = serde_json::from_str(&seen.stdout).unwrap();
    assert_eq!(
        (&seen["isRunning"], &seen["sessionId"]),
        (&Value::Bool(true), &"s".into())
    );
    let other = home
        .acp(&["cancel", "--session", "work", "--cwd", "/"])
        .await;
    assert_eq!(other.code, Some(1), "{other:?}");
    let cancelled = home.acp(&["cancel", "--session", "work"]).await;
    assert_eq!(cancelled.code, Some(0), "{cancelled:?}");
    let ended = acp.end().await;
    assert_eq!(ended.code, Some(130), "{ended:?}");
    assert!(
        ended.stderr.contains("cancelled by `acp cancel`"),
        "{ended:?}"
    );
    let gone = home.acp(&["cancel", "--session", "work"]).await;
    assert_eq!(gone.code, Some(1), "{gone:?}");
}

#[tokio::test]
async fn the_turn_of_a_chat_is_cancelled_and_the_chat_goes_on() {
    let agent = script(AGENT);
    let mut terminal = Terminal::acp(&["chat", "--session", "work", "--", "sh", "-c", &agent]);
    terminal.shows("› ").await;
    let idle = Acp::spawn(terminal.command(&["status", "--session", "work"]))
        .end()
        .await;
    assert!(
        idle.stdout.starts_with("no turn runs; process "),
        "{idle:?}"
    );
    let idle = Acp::spawn(terminal.command(&["cancel", "--session", "work"]))
        .end()
        .await;
    assert!(
        idle.stderr.contains("no turn of the session \"work\" runs"),
        "{idle:?}"
    );
    terminal.types("hi\r");
    terminal.shows("working").await;
    let cancelled = Acp::spawn(terminal.command(&["cancel", "--session", "work"]))
        .end()
        .await;
    assert_eq!(cancelled.code, Some(0), "{cancelled:?}");
    terminal.shows("cancelled after ").await;
    terminal.shows("› ").await;
    terminal.types("\u{4}");
    assert_eq!(terminal.code().await, Some(0));
}

/// What is no request gets no answer, costs no memory, and keeps nobody else out.
#[tokio::test]
async fn a_socket_answers_requests_alone() {
    let home = Home::new();
    let acp = working(&home).await;
    let socket = socket(&home);
    let folder = socket.parent().unwrap().metadata().unwrap();
    assert_eq!(folder.permissions().mode() & 0o777, 0o700);
    let silent = UnixStream::connect(&socket).await.unwrap();
    for request in ["prompt Go on\n", "status", "\u{0}\n", &"x".repeat(1 << 20)] {
        let mut stream = UnixStream::connect(&socket).await.unwrap();
        let mut answer = String::new();
        // The rest of what is too long is not read.
        let _ = within(stream.write_all(request.as_bytes())).await;
        let _ = stream.shutdown().await;
        let _ = within(stream.read_to_string(&mut answer)).await;
        assert_eq!(answer.is_empty(), request != "status", "{answer}");
    }
    drop(silent);
    let seen = home.acp(&["status", "--session", "work"]).await;
    assert_eq!(seen.code, Some(0), "{seen:?}");
    acp.signal(Signal::INT);
    assert_eq!(acp.end().await.code, Some(130));
    assert!(!socket.exists());
}

#[tokio::test]
async fn the_socket_of_a_killed_process_is_replaced() {
    let home = Home::new();
    let killed = working(&home).await;
    killed.signal(Signal::KILL);
    killed.end().await;
    let left = socket(&home);
    assert!(left.exists());
    let gone = home.acp(&["status", "--session", "work"]).await;
    assert!(gone.stderr.contains("no acp uses"), "{gone:?}");
    let acp = working(&home).await;
    let seen = home.acp(&["status", "--session", "work"]).await;
    assert_eq!(seen.code, Some(0), "{seen:?}");
    acp.signal(Signal::INT);
    acp.end().await;
}
