//! This crate's command with a store on disk, killed again and again under a client of `acp-client`
//! that starts it anew: the client's view is the log.
//!
//! `ACP_KILL_ROUNDS` sets the number of rounds (default 8).

use std::time::Duration;

use acp_client::{AgentCommand, Client, Error, Event, Events, Reconnect};
use acp_sdk::v1::SessionUpdate;
use tempfile::tempdir;

use crate::within;

/// Takes the events that are there: adds the numbers of updates that are not the user's words.
/// Fails at a gap.
fn numbers(events: &mut Events, seen: &mut Vec<u64>) {
    while let Some(event) = events.next_ready() {
        match event.event {
            Event::Update(SessionUpdate::UserMessageChunk(_)) => {}
            Event::Update(_) => seen.extend(event.number),
            gap @ (Event::Gap(_) | Event::Missed(_)) => panic!("a gap: {gap:?}"),
            _ => {}
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_follows_an_agent_that_is_killed_again_and_again() {
    let rounds = std::env::var("ACP_KILL_ROUNDS");
    let rounds: usize = rounds.map_or(8, |rounds| rounds.parse().unwrap());
    let folder = tempdir().unwrap();
    let wait = Duration::from_millis(10);
    let agent = AgentCommand::new(env!("CARGO_BIN_EXE_acp-server"))
        .arg("--store")
        .arg(folder.path().join("sessions.db"))
        .restart(Reconnect::default().with_waits(wait, wait));
    let client = within(Client::builder().spawn(agent.clone()))
        .await
        .unwrap();
    let session = within(client.new_session(folder.path())).await.unwrap();
    let mut events = session.events();
    let mut seen = Vec::new();
    let (mut whole, mut cut) = (0, 0);
    for round in 0..rounds {
        let mut turn = session.prompt("stream 200").await.unwrap();
        // Somewhere in the turn.
        for _ in 0..round * 10 {
            within(turn.next()).await;
        }
        client.process().unwrap().kill();
        match within(turn.outcome()).await {
            Ok(_) => whole += 1,
            Err(Error::ConnectionLost { .. } | Error::Sdk(_)) => cut += 1,
            Err(other) => panic!("{other}"),
        }
        numbers(&mut events, &mut seen);
    }
    // The last death may not have been noticed yet.
    let last = loop {
        let turn = session.prompt("the end").await.unwrap();
        match within(turn.outcome()).await {
            Err(Error::ConnectionLost { .. }) => {}
            answered => break answered.unwrap(),
        }
    };
    assert_eq!(last.text, "the end");
    numbers(&mut events, &mut seen);
    assert_eq!(whole + cut, rounds);
    within(client.shutdown()).await.unwrap();
    // Another client reads the log from its beginning.
    let client = within(Client::builder().spawn(agent)).await.unwrap();
    let id = session.id().clone();
    let loaded = within(client.load_session(id, folder.path()))
        .await
        .unwrap();
    let mut log = Vec::new();
    numbers(&mut loaded.events(), &mut log);
    assert_eq!(seen, log);
    assert!(seen.len() > rounds, "{seen:?}");
    within(client.shutdown()).await.unwrap();
}
