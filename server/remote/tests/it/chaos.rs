//! Connections that are cut at random: what a client has seen in the end is the log. Its questions are
//! answered, its input for a turn is delivered once, and its prompts run once, although it sends those
//! that are not answered again.
//!
//! `ACP_CHAOS_CUTS` sets how often each client is cut (40), `ACP_CHAOS_SEED` repeats a run.

use std::collections::{BTreeMap, BTreeSet};

use acp_reference_agent::Reference;
use acp_server::event::{EventBody, TurnEvent};
use acp_server::{Received, Server};
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

const WORDS: [&str; 8] = [
    "stream 200",
    "tool",
    "plan",
    "hello",
    "think",
    "stream 3",
    "steer 2",
    "permission",
];

impl Random {
    fn word(&mut self) -> &'static str {
        WORDS[self.below(WORDS.len() as u64) as usize]
    }
}

/// What a message asks of its client.
enum Wanted {
    /// The permission with this id.
    Permission(Value),
    /// Input for the turn of this prompt.
    Input(String),
}

impl Wanted {
    fn by(message: &Value) -> Option<Self> {
        if message["method"] == "session/request_permission" {
            return Some(Self::Permission(message["id"].clone()));
        }
        let text = message["params"]["update"]["content"]["text"].as_str()?;
        let turn = message["params"]["_meta"]["acp-sdk"]["promptId"].as_str()?;
        let asks = text.contains("Say more.\n");
        asks.then(|| Self::Input(turn.to_owned()))
    }
}

fn allowed(id: &Value) -> String {
    let outcome = json!({ "outcome": "selected", "optionId": "allow" });
    json!({ "jsonrpc": "2.0", "id": id, "result": { "outcome": outcome } }).to_string()
}

/// The two pieces of input that the turn of a prompt waits for.
fn names(turn: &str) -> [String; 2] {
    [0, 1].map(|number| format!("{turn}/{number}"))
}

fn steer(session: &str, name: &str) -> Value {
    let prompt = json!([{ "type": "text", "text": name }]);
    json!({ "sessionId": session, "prompt": prompt, "promptId": name })
}

fn prompt(session: &str, key: &str, word: &str) -> Value {
    let prompt = json!([{ "type": "text", "text": word }]);
    let meta = json!({ "acp-sdk": { "idempotencyKey": key } });
    json!({ "sessionId": session, "prompt": prompt, "_meta": meta })
}

/// Each key has one turn, however often its prompt was sent.
async fn assert_ran_once(host: &Host, session: &str, keys: BTreeSet<String>) {
    let session = host.server.session(&session.into()).await.unwrap();
    let mut history = session.history();
    let mut ran = Vec::new();
    while let Some(Received::Event(event)) = history.next().await.unwrap() {
        if let EventBody::Turn(TurnEvent::TurnStarted { prompt, .. }) = event.body {
            ran.extend(prompt);
        }
    }
    ran.sort();
    assert!(ran.iter().eq(&keys), "ran {ran:?}, sent {keys:?}");
}

/// Input is delivered once, however often it was sent.
fn assert_delivered_once(log: &BTreeMap<u64, Value>, turns: &BTreeSet<String>) {
    let texts = log.values().map(|event| {
        let text = event["params"]["update"]["content"]["text"].as_str();
        text.unwrap_or_default()
    });
    let said: String = texts.collect();
    for name in turns.iter().flat_map(|turn| names(turn)) {
        let count = said.matches(&format!("You said: {name}\n")).count();
        assert_eq!(count, 1, "{name}");
    }
}

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
    /// Returns what the event wants of the client.
    fn see(&mut self, event: Event) -> Option<Wanted> {
        let wanted = Wanted::by(&event.data);
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
        wanted
    }
}

/// A client that answers questions and gives turns input.
struct Chatting<'a> {
    client: Client<'a>,
    session: String,
    view: View,
    /// The requests that are to be answered.
    asked: Vec<u64>,
    /// The prompts whose turns were given input.
    steered: BTreeSet<String>,
    /// The requests with each piece of input, and with each prompt by its key.
    inputs: BTreeMap<String, Vec<u64>>,
    prompts: BTreeMap<String, (&'static str, Vec<u64>)>,
}

impl Chatting<'_> {
    /// Sends a prompt, maybe again.
    async fn prompt(&mut self, key: &str) {
        let (word, ids) = self.prompts.get_mut(key).unwrap();
        let params = prompt(&self.session, key, word);
        let id = self.client.send("session/prompt", params).await;
        ids.push(id);
        self.asked.push(id);
    }

    /// Returns the key of the latest prompt, if it has no answer.
    fn unanswered(&self) -> Option<String> {
        let latest = format!("key-{}", self.prompts.len().checked_sub(1)?);
        let (_, ids) = &self.prompts[&latest];
        let is_answered = self.view.answers.contains_key(ids.last()?);
        (!is_answered).then_some(latest)
    }

    async fn see(&mut self, event: Event, random: &mut Random) {
        match self.view.see(event) {
            Some(Wanted::Permission(id)) => {
                let answer = allowed(&id);
                self.client.send_raw(&answer, Some(&self.session)).await;
            }
            Some(Wanted::Input(turn)) => {
                for name in names(&turn) {
                    for _ in 0..=random.below(3) {
                        let params = steer(&self.session, &name);
                        let id = self.client.send("_acp-sdk/session/steer", params).await;
                        self.asked.push(id);
                        self.inputs.entry(name.clone()).or_default().push(id);
                    }
                }
                assert!(self.steered.insert(turn));
            }
            None => {}
        }
    }
}

async fn server_sent_events() {
    let host = Host::start(Server::new(Reference), &EndpointSettings::default()).await;
    let mut random = Random::new();
    let client = Client::connect(&host).await;
    let mut connection = client.stream(None, None).await;
    let session = client.new_session(&mut connection).await;
    let mut chat = Chatting {
        client,
        session,
        view: View::default(),
        asked: Vec::new(),
        steered: BTreeSet::new(),
        inputs: BTreeMap::new(),
        prompts: BTreeMap::new(),
    };
    let mut cursor: Option<String> = None;
    for _ in 0..cuts() {
        for _ in 0..random.below(3) {
            let key = format!("key-{}", chat.prompts.len());
            chat.prompts.insert(key.clone(), (random.word(), vec![]));
            chat.prompt(&key).await;
            // No more than wait behind a running turn.
            if chat.asked.len() - chat.view.answers.len() > 10 {
                break;
            }
        }
        if let Some(key) = chat.unanswered() {
            chat.prompt(&key).await;
        }
        let session = chat.session.clone();
        let mut stream: Open = chat.client.stream(Some(&session), cursor.as_deref()).await;
        let length = random.below(150);
        for _ in 0..length {
            if chat.view.answers.len() == chat.asked.len() {
                break;
            }
            let event = stream.event().await.unwrap();
            cursor = Some(event.id.clone());
            chat.see(event, &mut random).await;
        }
    }
    let session = chat.session.clone();
    let mut stream = chat.client.stream(Some(&session), cursor.as_deref()).await;
    while chat.view.answers.len() < chat.asked.len() {
        let event = stream.event().await.unwrap();
        chat.see(event, &mut random).await;
    }
    let view = &chat.view;
    for (id, answer) in &view.answers {
        assert!(answer["error"].is_null(), "{id}: {answer}");
    }
    for (name, ids) in &chat.inputs {
        let first = &view.answers[&ids[0]]["result"];
        assert_eq!(first["outcome"], "injected", "{name}");
        for id in ids {
            assert_eq!(view.answers[id]["result"], *first, "{name}");
        }
    }
    for (key, (_, ids)) in &chat.prompts {
        let first = &view.answers[&ids[0]]["result"];
        for id in ids {
            assert_eq!(view.answers[id]["result"], *first, "{key}");
        }
    }
    assert_ran_once(&host, &session, chat.prompts.keys().cloned().collect()).await;
    let log = log(&host, &session).await;
    // Only the latest turns name their prompt in a replay.
    let without_prompt = |events: &BTreeMap<u64, Value>| {
        let mut events = events.clone();
        for event in events.values_mut() {
            event["params"]["_meta"]["acp-sdk"]["promptId"].take();
        }
        events
    };
    let (events, expected) = (without_prompt(&view.events), without_prompt(&log));
    for (number, event) in &expected {
        assert_eq!(events.get(number), Some(event), "event {number}");
    }
    assert_eq!(events.len(), expected.len());
    assert_delivered_once(&log, &chat.steered);
}

/// A client whose socket is cut: another one each time, which sends again what was not answered.
struct Reconnecting {
    socket: Socket,
    session: String,
    last: u64,
    seen: BTreeMap<u64, Value>,
    steered: BTreeSet<String>,
    /// Input whose answer was not received, by the id of the request that has it now.
    unanswered: BTreeMap<u64, String>,
    /// The same with prompts and their keys. One without an id was refused, because too many wait.
    prompts: Vec<(Option<u64>, String, &'static str)>,
}

impl Reconnecting {
    async fn prompt(&mut self, key: String, word: &'static str) {
        let params = prompt(&self.session, &key, word);
        let id = self.socket.send("session/prompt", params).await;
        self.prompts.push((Some(id), key, word));
    }

    /// Sends a prompt again that was refused, unless several wait.
    async fn prompt_refused(&mut self) {
        let is_refused = |(id, ..): &(Option<u64>, String, &str)| id.is_none();
        let refused = self.prompts.iter().position(is_refused);
        let waiting = self.prompts.iter().filter(|prompt| !is_refused(prompt));
        if let Some(refused) = refused.filter(|_| waiting.count() < 8) {
            let (_, key, word) = self.prompts.remove(refused);
            self.prompt(key, word).await;
        }
    }

    /// Records the answer to a prompt.
    fn answered(&mut self, message: &Value) {
        let id = message["id"].as_u64();
        let of = |(asked, ..): &(Option<u64>, String, &str)| asked.is_some() && *asked == id;
        let Some(index) = self.prompts.iter().position(of) else {
            return;
        };
        match message["result"]["stopReason"].as_str() {
            Some(stop) => {
                assert_eq!(stop, "end_turn", "{message}");
                self.prompts.remove(index);
            }
            None => {
                assert_eq!(message["error"]["code"], -32600, "{message}");
                self.prompts[index].0 = None;
            }
        }
    }

    async fn see(&mut self, message: &Value) {
        if message["method"].is_null() {
            self.answered(message);
        }
        if let Some(number) = event_id(message) {
            let last = self.last;
            assert!(number > last, "event {number} came after {last}");
            self.last = number;
            self.seen.insert(number, message.clone());
        } else if message["method"].is_null()
            && let Some(name) = message["id"]
                .as_u64()
                .and_then(|id| self.unanswered.remove(&id))
        {
            assert_eq!(
                message["result"]["outcome"], "injected",
                "{name}: {message}"
            );
        }
        match Wanted::by(message) {
            Some(Wanted::Permission(id)) => self.socket.text(allowed(&id)).await,
            Some(Wanted::Input(turn)) if self.steered.insert(turn.clone()) => {
                for name in names(&turn) {
                    self.steer(name).await;
                }
            }
            _ => {}
        }
    }

    async fn steer(&mut self, name: String) {
        let params = steer(&self.session, &name);
        let id = self.socket.send("_acp-sdk/session/steer", params).await;
        self.unanswered.insert(id, name);
    }

    /// Is cut, and goes on with another socket.
    async fn reconnect(&mut self, host: &Host) {
        self.socket = Socket::connect(host).await;
        let resume = json!({ "sessionId": self.session, "sinceEventId": self.last });
        let (updates, answer) = self.socket.call("_acp-sdk/session/resume", resume).await;
        assert_eq!(answer["result"]["truncated"], false, "{answer}");
        // The ids are those of the former socket.
        for name in std::mem::take(&mut self.unanswered).into_values() {
            self.steer(name).await;
        }
        for (_, key, word) in std::mem::take(&mut self.prompts) {
            self.prompt(key, word).await;
        }
        for update in &updates {
            self.see(update).await;
        }
    }
}

async fn web_sockets() {
    let host = Host::start(Server::new(Reference), &EndpointSettings::default()).await;
    let mut random = Random::new();
    let mut socket = Socket::connect(&host).await;
    let session = socket.new_session().await;
    let mut client = Reconnecting {
        socket,
        session: session.clone(),
        last: 0,
        seen: BTreeMap::new(),
        steered: BTreeSet::new(),
        unanswered: BTreeMap::new(),
        prompts: Vec::new(),
    };
    let mut keys = BTreeSet::new();
    for cut in 0..cuts() {
        let key = format!("key-{cut}");
        keys.insert(key.clone());
        client.prompt(key, random.word()).await;
        let id = client.prompts.last().and_then(|(id, ..)| *id);
        for _ in 0..random.below(100) {
            let message = client.socket.receive().await.unwrap();
            client.see(&message).await;
            if message["id"].as_u64() == id && message["method"].is_null() {
                break;
            }
        }
        client.reconnect(&host).await;
    }
    while !client.prompts.is_empty() {
        client.prompt_refused().await;
        let message = client.socket.receive().await.unwrap();
        client.see(&message).await;
    }
    let resume = json!({ "sessionId": session, "sinceEventId": client.last });
    // Answered once all that is missing was sent.
    for update in client
        .socket
        .call("_acp-sdk/session/resume", resume)
        .await
        .0
    {
        if event_id(&update).is_none_or(|number| number > client.last) {
            client.see(&update).await;
        }
    }
    assert!(client.unanswered.is_empty(), "{:?}", client.unanswered);
    assert_ran_once(&host, &session, keys).await;
    let seen = client.seen;
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
    let log = log(&host, &session).await;
    assert_delivered_once(&log, &client.steered);
    assert_eq!(words(seen), words(log));
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
