//! No process of a server outlives its session.

use std::process::Stdio;

use acp_server_mcp::ServerState;
use tokio::io::{AsyncBufReadExt as _, BufReader};

use crate::support::{Lifeline, command, connect, in_shell, options, ready, scripted};

/// Ignores `SIGTERM` and has a child in its group.
const STUBBORN: &str = "trap '' TERM; sleep 1000 & exec \"$@\"";

#[tokio::test]
async fn closing_ends_all_processes_of_the_servers() {
    let lifeline = Lifeline::new();
    let named = vec![
        in_shell("a", "", &lifeline.tie("exec \"$@\"")),
        in_shell("b", "deaf", &lifeline.tie(STUBBORN)),
    ];
    let servers = connect(named, &options()).await;
    let is_ready = |state| matches!(state, ServerState::Ready { .. });
    assert!(
        servers
            .states()
            .into_iter()
            .all(|server| is_ready(server.state))
    );
    servers.close().await;
    lifeline.all_dead().await;
}

#[tokio::test]
async fn dropping_the_last_handle_ends_the_servers() {
    let lifeline = Lifeline::new();
    let named = vec![in_shell("a", "deaf", &lifeline.tie(STUBBORN))];
    let servers = connect(named, &options()).await;
    ready(&servers).await;
    drop(servers.clone());
    ready(&servers).await;
    drop(servers);
    lifeline.all_dead().await;
}

#[tokio::test]
async fn a_server_that_connects_does_not_hold_up_the_end() {
    let mut options = options();
    options.open_timeout = std::time::Duration::from_millis(1);
    let servers = connect(vec![scripted("a", "silent")], &options).await;
    assert_eq!(servers.states()[0].state, ServerState::Connecting);
    servers.close().await;
    assert_eq!(servers.states()[0].state, ServerState::Closed);
}

/// The variable with the script of the server of [`agent`].
const SCRIPT: &str = "SCRIPT_OF_THE_SERVER";

#[tokio::test]
#[ignore = "the program of the next test"]
async fn agent() {
    if let Ok(script) = std::env::var(SCRIPT) {
        let named = vec![in_shell("a", "deaf", &script)];
        let servers = connect(named, &options()).await;
        ready(&servers).await;
        eprintln!("ready");
        std::future::pending::<()>().await;
    }
}

#[tokio::test]
async fn killing_the_agent_ends_all_processes_of_the_servers() {
    let lifeline = Lifeline::new();
    let mut command = command();
    *command.last_mut().unwrap() = "ending::agent".to_owned();
    let mut agent = tokio::process::Command::new(&command[0])
        .args(&command[1..])
        .env(SCRIPT, lifeline.tie("sleep 1000 & exec \"$@\""))
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(agent.stderr.take().unwrap()).lines();
    while lines.next_line().await.unwrap().unwrap() != "ready" {}
    agent.kill().await.unwrap();
    lifeline.all_dead().await;
}
