//! A random schedule, and the comparison at its end.

use std::sync::Arc;
use std::time::Duration;

use acp_sdk::HandlerResult;
use acp_sdk::v1::*;
use acp_server::event::{Event, EventBody, TurnEvent};
use acp_server::store::{MemoryStore, Store};
use acp_server::{Handler, Limits, Phase, Policies, Received, Server, Turn};
use serde_json::Value;

use crate::client::{Attached, Version};
use crate::dice::Dice;
use crate::neutral;

/// Streams as many chunks as the prompt says, asks for a permission now and then.
struct Chatter;

impl Handler for Chatter {
    type State = u64;

    async fn prompt(&self, prompts: &mut u64, turn: Turn) -> HandlerResult<StopReason> {
        *prompts += 1;
        let text = turn.prompt_text();
        let chunks: u64 = text.split_once(' ').unwrap().1.parse()?;
        for number in 0..chunks {
            turn.send_text(format!("{text} #{number}")).await?;
            if number % 7 == 3 {
                turn.send_thought(format!("{text} ?{number}")).await?;
            }
            if number % 5 == 0 {
                tokio::task::yield_now().await;
            }
            if number == 11 {
                let call = turn.tool_call(text.as_str(), ToolKind::Execute).await?;
                turn.ask_permission(&call).await?;
                call.complete("").await?;
            }
        }
        Ok(StopReason::EndTurn)
    }
}

fn server(store: &Arc<MemoryStore>) -> Server {
    let mut limits = Limits::default();
    // Small, so that slow clients read from the store.
    limits.log.memory_events = 8;
    limits.log.uncommitted_bytes = 512;
    limits.log.page_bytes = 700;
    limits.queued_prompts = 1000;
    let mut policies = Policies::default();
    policies.cancel_deadline = Duration::from_millis(50);
    Server::builder(Chatter)
        .store(store.clone() as Arc<dyn Store>)
        .limits(limits)
        .policies(policies)
        .build()
}

pub struct Schedule {
    seed: u64,
    dice: Dice,
    store: Arc<MemoryStore>,
    server: Server,
    session: SessionId,
    clients: Vec<Attached>,
    names: u64,
    prompts: tokio::task::JoinSet<()>,
}

impl Schedule {
    pub async fn run(seed: u64) {
        let store = Arc::new(MemoryStore::new());
        let server = server(&store);
        let session = server.create_session("/").await.unwrap().id().clone();
        let mut schedule = Self {
            seed,
            dice: Dice::new(seed),
            store,
            server,
            session,
            clients: Vec::new(),
            names: 0,
            prompts: tokio::task::JoinSet::new(),
        };
        for _ in 0..60 {
            schedule.step().await;
        }
        schedule.compare().await;
    }

    async fn step(&mut self) {
        match self.dice.roll(12) {
            0 | 1 if self.clients.len() < 5 => {
                let last = self
                    .server
                    .session(&self.session)
                    .await
                    .unwrap()
                    .last_event();
                let since = self.dice.roll(last + 2);
                self.attach(since).await;
            }
            2 if !self.clients.is_empty() => {
                let at = self.dice.pick(self.clients.len());
                self.clients.swap_remove(at).disconnect().await;
            }
            3 if !self.clients.is_empty() => {
                // Comes back where it was.
                let at = self.dice.pick(self.clients.len());
                let client = self.clients.swap_remove(at);
                let seen = client.seen();
                client.disconnect().await;
                self.attach(seen).await;
            }
            4..=7 => self.prompt().await,
            8 if !self.clients.is_empty() => {
                let at = self.dice.pick(self.clients.len());
                self.clients[at].agent.cancel(&self.session).await;
            }
            9 if !self.clients.is_empty() => {
                let at = self.dice.pick(self.clients.len());
                let reads = *self.clients[at].reading.borrow();
                self.clients[at].reading.send_replace(!reads);
            }
            10 if self.dice.roll(4) == 0 => self.restart().await,
            _ => {
                for _ in 0..self.dice.roll(20) {
                    tokio::task::yield_now().await;
                }
            }
        }
    }

    async fn attach(&mut self, since: u64) {
        self.names += 1;
        let name = format!("c{}", self.names);
        let version = self.version();
        let client = (name, version);
        let client = Attached::new(&self.server, &self.session, client, since).await;
        self.clients.push(client);
    }

    #[cfg(feature = "v2")]
    fn version(&mut self) -> Version {
        match self.dice.roll(2) {
            0 => Version::V1,
            _ => Version::V2,
        }
    }

    #[cfg(not(feature = "v2"))]
    fn version(&mut self) -> Version {
        Version::V1
    }

    async fn prompt(&mut self) {
        let chunks = self.dice.roll(40);
        if self.clients.is_empty() || self.dice.roll(6) == 0 {
            let session = self.server.session(&self.session).await.unwrap();
            let block = ContentBlock::Text(TextContent::new(format!("injected:1 {chunks}")));
            session.prompt(vec![block]).unwrap();
            return;
        }
        let at = self.dice.pick(self.clients.len());
        let text = self.clients[at].next_text(chunks);
        let agent = self.clients[at].agent.clone();
        self.prompts.spawn(agent.prompt(self.session.clone(), text));
        tokio::task::yield_now().await;
    }

    /// The server ends, gracefully or not, and another one takes the session over.
    async fn restart(&mut self) {
        let mut cursors = Vec::new();
        if self.dice.roll(2) == 0 {
            self.server.shutdown().await;
        }
        for client in std::mem::take(&mut self.clients) {
            cursors.push(client.seen());
            client.disconnect().await;
        }
        // Turns of the old server may still run: their commits are refused from now on.
        self.server = server(&self.store);
        for since in cursors {
            self.attach(since).await;
        }
    }

    async fn compare(mut self) {
        let session = self.server.session(&self.session).await.unwrap();
        if self.clients.is_empty() {
            // Somebody must answer permissions.
            self.attach(0).await;
        }
        for client in &self.clients {
            client.reading.send_replace(true);
        }
        // Each is answered, or its client has gone.
        while self.prompts.join_next().await.is_some() {}
        let seed = self.seed;
        let idle = || session.phase() == Phase::Idle;
        until(idle, || {
            format!("seed {seed}: {:?} does not become idle", session)
        })
        .await;
        let log = log(&session).await;
        for client in &self.clients {
            let expected = expected(&log, client);
            let arrived = || client.view.lock().unwrap().updates.len() >= expected.len();
            let missing = || {
                let view = &client.view.lock().unwrap().updates;
                let first = expected.iter().zip(view).position(|(a, b)| a != b);
                let (name, version) = (&client.name, client.version);
                let (since, until) = (client.since, client.replayed);
                let first = first.unwrap_or(view.len());
                format!(
                    "seed {seed}: {name} ({version:?}) since {since}, replayed {until}, has {} of {}; at {first} {:?}, not {:?}",
                    view.len(),
                    expected.len(),
                    view.get(first),
                    expected.get(first),
                )
            };
            until(arrived, missing).await;
            let same = client.view.lock().unwrap().updates == expected;
            assert!(same, "{}", missing());
        }
    }
}

/// What a client must have been sent.
fn expected(log: &[Event], client: &Attached) -> Vec<(u64, Value)> {
    let own = format!("{}:", client.name);
    let events = log.iter().filter(|event| event.number > client.since);
    let seen = events.filter_map(|event| {
        let body = match client.version {
            Version::V1 => neutral::for_v1(&event.body)?,
            #[cfg(feature = "v2")]
            Version::V2 => return Some((event.number, neutral::for_v2(&event.body))),
        };
        // In version 1 a client that prompts is not sent its own words, except by a replay.
        let text = body["content"]["text"].as_str().unwrap_or_default();
        let said = body["sessionUpdate"] == "user_message_chunk" && text.starts_with(&own);
        (!said || event.number <= client.replayed).then_some((event.number, body))
    });
    seen.collect()
}

/// The events of a session, and that its numbers have no hole and its turns an end.
async fn log(session: &acp_server::Session) -> Vec<Event> {
    let (mut history, mut events, mut last) = (session.history(), Vec::new(), 0);
    let mut running = None;
    while let Some(received) = history.next().await.unwrap() {
        let Received::Event(event) = received else {
            panic!("a gap: {received:?}");
        };
        assert_eq!(event.number, last + 1);
        last = event.number;
        match &event.body {
            EventBody::Turn(TurnEvent::TurnStarted { turn, .. }) => {
                assert_eq!(running.replace(*turn), None, "two turns at once");
            }
            EventBody::Turn(TurnEvent::TurnEnded { turn, .. }) => {
                assert_eq!(running.take(), Some(*turn), "an end without a turn");
            }
            _ => {}
        }
        events.push(event);
    }
    assert_eq!(running, None, "a turn without an end");
    events
}

/// Waits until a condition holds; fails with a description of the state after a while.
async fn until(condition: impl Fn() -> bool, state: impl Fn() -> String) {
    let limit = tokio::time::Instant::now() + Duration::from_secs(10);
    while !condition() {
        assert!(tokio::time::Instant::now() < limit, "{}", state());
        tokio::task::yield_now().await;
    }
}
