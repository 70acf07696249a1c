//! Connections that are cut at random: what a client has seen in the end is the log.
//!
//! `ACP_CHAOS_CUTS` sets how often each client is cut (40), `ACP_CHAOS_SEED` repeats a run.

use std::collections::BTreeMap;

use acp_reference_agent::Reference;
use acp_server::Server;
use acp_server_remote::EndpointSettings;
use serde_json::{Value, json};

use crate::http::{Client, Event, Host, Open};
use crate::websocket::{Socket, event_id};

/// Numbers that follow from a seed: a linear congruence is random enough.
struct Random(u64);

impl Random {
    fn new() -> Self {
        let seed = std::env::var("ACP_CHAOS_SEED").ok();
        let seed = seed.and_then(|seed| seed.parse().ok());
        let seed = seed.unwrap_or_else(|| getrandom::u64().unwrap());
        eprintln!("ACP_CHAOS_SEED={seed}");
        Self(seed)
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005);
        self.0 = self.0.wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}

fn cuts() -> u64 {
    let cuts = std::env::var("ACP_CHAOS_CUTS").ok();
    cuts.and_then(|cuts| cuts.parse().ok()).unwrap_or(40)
}

const WORDS: [&str; 6] = ["stream 200", "tool", "plan", "hello", "think", "stream 3"];

/// What a new client is sent of a session, by event number.
async fn log(host: &Host, session: &str) -> BTreeMap<u64, Value> {
    let mut socket = Socket::connect(host).await;
    let resume = json!({ "sessionId": session, "sinceEventId": 0 });
    let (updates, _) = socket.call("_acp-sdk/session/resume", resume).await;
    let own = |update: &&Value| update["params"]["update"]["sessionUpdate"] != "user_message_chunk";
    // The client knows its own words.
    let updates = updates.iter().filter(own);
    let numbered = updates.filter_map(|update| Some((event_id(update)?, update.clone())));
    numbered.collect()
}

/// Events of a stream in order; those that are answers by the id of their request.
#[derive(Default)]
struct View {
    last: u64,
    events: BTreeMap<u64, Value>,
    answers: BTreeMap<u64, Value>,
}

impl View {
    fn see(&mut self, event: Event) {
        if let Some(number) = event_id(&event.data) {
            assert!(
                number > self.last,
                "event {number} came after {}",
                self.last
            );
            assert_eq!(event.id, number.to_string());
            self.last = number;
            self.events.insert(number, event.data);
        } else if event.data["method"].is_null() {
            let id = event.data["id"].as_u64().unwrap();
            let before = self.answers.insert(id, event.data);
            assert_eq!(before, None, "the answer to {id} came twice");
        }
    }
}

async fn server_sent_events() {
    let host = Host::start(Server::new(Reference), &EndpointSettings::default()).await;
    let mut random = Random::new();
    let client = Client::connect(&host).await;
    let mut connection = client.stream(None, None).await;
    let session = client.new_session(&mut connection).await;
    let mut view = View::default();
    let mut cursor: Option<String> = None;
    let mut asked = Vec::new();
    for _ in 0..cuts() {
        for _ in 0..random.below(3) {
            let word = WORDS[random.below(6) as usize];
            asked.push(client.prompt(&session, word).await);
            // No more than wait behind a running turn.
            if asked.len() - view.answers.len() > 10 {
                break;
            }
        }
        let mut stream: Open = client.stream(Some(&session), cursor.as_deref()).await;
        let length = random.below(150);
        for _ in 0..length {
            if view.answers.len() == asked.len() {
                break;
            }
            let event = stream.event().await.unwrap();
            cursor = Some(event.id.clone());
            view.see(event);
        }
    }
    let mut stream = client.stream(Some(&session), cursor.as_deref()).await;
    while view.answers.len() < asked.len() {
        view.see(stream.event().await.unwrap());
    }
    for (id, answer) in &view.answers {
        assert!(answer["error"].is_null(), "{id}: {answer}");
    }
    let log = log(&host, &session).await;
    for (number, event) in &log {
        assert_eq!(view.events.get(number), Some(event), "event {number}");
    }
    for (number, event) in &view.events {
        assert_eq!(log.get(number), Some(event), "event {number}");
    }
}

async fn web_sockets() {
    let host = Host::start(Server::new(Reference), &EndpointSettings::default()).await;
    let mut random = Random::new();
    let mut socket = Socket::connect(&host).await;
    let session = socket.new_session().await;
    let mut seen = BTreeMap::new();
    let mut last = 0;
    let mut see = |message: &Value, last: &mut u64| {
        if let Some(number) = event_id(message) {
            assert!(number > *last, "event {number} came after {last}");
            *last = number;
            seen.insert(number, message.clone());
        }
    };
    for _ in 0..cuts() {
        let prompt = json!([{ "type": "text", "text": WORDS[random.below(6) as usize] }]);
        let params = json!({ "sessionId": session, "prompt": prompt });
        let id = socket.send("session/prompt", params).await;
        for _ in 0..random.below(100) {
            let message = socket.receive().await.unwrap();
            see(&message, &mut last);
            if message["id"] == id {
                break;
            }
        }
        drop(socket);
        socket = Socket::connect(&host).await;
        let resume = json!({ "sessionId": session, "sinceEventId": last });
        let (updates, answer) = socket.call("_acp-sdk/session/resume", resume).await;
        assert_eq!(answer["result"]["truncated"], false, "{answer}");
        for update in &updates {
            see(update, &mut last);
        }
    }
    let handle = host.server.session(&session.as_str().into()).await.unwrap();
    let mut events = handle.subscribe(last);
    while handle.phase() != acp_server::Phase::Idle {
        events.next().await.unwrap();
    }
    let resume = json!({ "sessionId": session, "sinceEventId": last });
    // Answered once all that is missing was sent.
    for update in socket.call("_acp-sdk/session/resume", resume).await.0 {
        if event_id(&update) > Some(last) {
            see(&update, &mut last);
        }
    }
    // A socket was another client each time, which is sent what an earlier one said. Chunks may be
    // joined in another way, so texts are compared.
    let words = |updates: BTreeMap<u64, Value>| {
        let updates = updates.into_values();
        let own =
            |update: &Value| update["params"]["update"]["sessionUpdate"] != "user_message_chunk";
        let texts = updates.filter(own).map(|update| {
            let update = &update["params"]["update"];
            let text = update["content"]["text"].as_str();
            text.map_or_else(|| update.to_string(), str::to_owned)
        });
        texts.collect::<String>()
    };
    assert_eq!(words(seen), words(log(&host, &session).await));
}

#[tokio::test]
async fn no_cut_of_a_stream_loses_or_doubles_anything() {
    server_sent_events().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn no_cut_of_a_stream_loses_or_doubles_anything_on_four_threads() {
    server_sent_events().await;
}

#[tokio::test]
async fn no_cut_of_a_web_socket_loses_or_doubles_anything() {
    web_sockets().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn no_cut_of_a_web_socket_loses_or_doubles_anything_on_four_threads() {
    web_sockets().await;
}
