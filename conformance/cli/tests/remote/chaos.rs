//! Connections that are cut at random: the client's view is the log.
//!
//! `ACP_CHAOS_CUTS` sets how many connections of each client are cut (40), `ACP_CHAOS_SEED` repeats a
//! run.

use std::time::Duration;

use acp_client::Reconnect;
use acp_client::remote::RemoteAgent;
use acp_client::{Client, Error, Event, Events, Policy, Session};
use acp_sdk::v1::{SessionUpdate, StopReason};

use crate::host::{Host, SCHEMES, within};
use crate::proxy::Proxy;

fn cuts() -> u64 {
    let cuts = std::env::var("ACP_CHAOS_CUTS").ok();
    cuts.and_then(|cuts| cuts.parse().ok()).unwrap_or(40)
}

/// An agent behind the proxy, which is connected to again at once.
fn agent(proxy: &Proxy, scheme: &str) -> RemoteAgent {
    let (first, most) = (Duration::from_millis(1), Duration::from_millis(20));
    let agent = RemoteAgent::new(format!("{scheme}://localhost:{}/acp", proxy.port)).unwrap();
    agent.reconnect(Reconnect::default().with_waits(first, most))
}

async fn connect(agent: RemoteAgent) -> Client {
    let builder = Client::builder().permissions(Policy::ApproveAll);
    builder.connect_remote(agent).await.unwrap()
}

/// Calls until the call is not lost on the way. Prompts are not called like that.
async fn insist<T>(mut call: impl AsyncFnMut() -> acp_client::Result<T>) -> T {
    loop {
        match call().await {
            Err(Error::ConnectionLost { .. }) => {}
            answered => return answered.unwrap(),
        }
    }
}

/// A turn's updates as text, in which pieces of text are one.
fn append(view: &mut String, update: &SessionUpdate) {
    if let SessionUpdate::UserMessageChunk(_) = update {
        view.push_str("\n?");
    }
    let update = serde_json::to_value(update).unwrap();
    match update["content"]["text"].as_str() {
        Some(text) => view.push_str(text),
        None => view.push_str(&format!("\n{update}\n")),
    }
}

/// Returns the updates that are there.
fn updates(events: &mut Events) -> Vec<SessionUpdate> {
    let mut updates = Vec::new();
    while let Some(event) = events.next_ready() {
        match event.event {
            Event::Update(update) => updates.push(update),
            gap @ (Event::Gap(_) | Event::Missed(_)) => panic!("a gap: {gap:?}"),
            _ => {}
        }
    }
    updates
}

/// Prompts once. Returns why the turn ended; `None` if the agent never had the prompt.
async fn prompt(session: &Session, words: &str) -> Option<StopReason> {
    match session.prompt(words).await.unwrap().outcome().await {
        Ok(outcome) => Some(outcome.stop_reason),
        Err(Error::ConnectionLost { reason, .. }) => {
            assert!(
                reason.ends_with("it had sent nothing of the turn"),
                "{reason}"
            );
            None
        }
        Err(error) => panic!("{error}"),
    }
}

const WORDS: [&str; 6] = [
    "stream 200",
    "tool",
    "plan",
    "permission",
    "think",
    "stream 3",
];

async fn chaos(scheme: &str) {
    let host = Host::start().await;
    let proxy = Proxy::start(host.port, cuts()).await;
    let client = loop {
        let builder = Client::builder().permissions(Policy::ApproveAll);
        // Before it was connected, a client does not try again.
        if let Ok(client) = builder.connect_remote(agent(&proxy, scheme)).await {
            break client;
        }
    };
    let dir = std::env::temp_dir();
    let session = insist(async || client.new_session(&dir).await).await;
    let (mut events, mut view) = (session.events(), String::new());
    let mut prompts = 0;
    while !proxy.is_peaceful() || prompts < 5 {
        let words = WORDS[prompts % WORDS.len()];
        prompts += 1;
        if let Some(stop) = prompt(&session, words).await {
            assert_eq!(stop, StopReason::EndTurn);
        }
        for update in updates(&mut events) {
            append(&mut view, &update);
        }
    }
    assert_eq!(proxy.cuts(), cuts());
    for update in updates(&mut events) {
        append(&mut view, &update);
    }
    // Another client, whom nobody cuts, is sent the whole log.
    let other = connect(host.agent(scheme)).await;
    let loaded = other
        .load_session(session.id().clone(), &dir)
        .await
        .unwrap();
    let mut log = String::new();
    for update in updates(&mut loaded.events()) {
        if !matches!(update, SessionUpdate::UserMessageChunk(_)) {
            append(&mut log, &update);
        }
    }
    assert_eq!(
        view,
        log,
        "after {prompts} prompts and {} cuts",
        proxy.cuts()
    );
    within(client.shutdown()).await;
}

#[tokio::test]
async fn no_cut_is_noticed() {
    for scheme in SCHEMES {
        chaos(scheme).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn no_cut_is_noticed_on_four_threads() {
    for scheme in SCHEMES {
        chaos(scheme).await;
    }
}

#[tokio::test]
async fn a_turn_goes_on_while_its_client_is_away() {
    let host = Host::start().await;
    for scheme in SCHEMES {
        let proxy = Proxy::start(host.port, 0).await;
        let client = connect(agent(&proxy, scheme)).await;
        let session = client.new_session(std::env::temp_dir()).await.unwrap();
        let mut turn = session.prompt("slow").await.unwrap();
        assert!(within(turn.next()).await.is_some());
        for _ in 0..3 {
            proxy.cut_all();
            // What came after the cut comes by another connection.
            assert!(within(turn.next()).await.is_some());
        }
        // The cancellation reaches the turn that an earlier connection has begun.
        turn.cancel();
        let outcome = within(turn.outcome()).await.unwrap();
        assert_eq!(outcome.stop_reason, StopReason::Cancelled, "{scheme}");
        client.shutdown().await;
    }
}
