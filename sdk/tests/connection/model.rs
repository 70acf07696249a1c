//! Random conversations in random pieces, held against what a few lines of model say.
//!
//! `PROPTEST_CASES` sets how many; the default is small, for every commit runs them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use acp_sdk::{HandlerResult, v1::*};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::support::{TestAgent, chunk, prompt};

const IDS: [&str; 6] = ["0", "1", "-1", "\"1\"", "\"a/b\"", "18446744073709551616"];

/// Something a client writes.
#[derive(Debug, Clone)]
enum Line {
    Ping(&'static str),
    Unknown(&'static str),
    BadParams(&'static str),
    /// Ends only when it is cancelled or the input ends.
    Hang(&'static str),
    Cancel(&'static str),
    NoVersion(&'static str),
    IncomingNotification,
    Stray,
    Garbage,
    Batch,
    Blank,
}

fn line() -> impl Strategy<Value = Line> {
    let id = || select(&IDS[..]);
    prop_oneof![
        3 => id().prop_map(Line::Ping),
        1 => id().prop_map(Line::Unknown),
        1 => id().prop_map(Line::BadParams),
        3 => id().prop_map(Line::Hang),
        2 => id().prop_map(Line::Cancel),
        1 => id().prop_map(Line::NoVersion),
        1 => Just(Line::IncomingNotification),
        1 => Just(Line::Stray),
        2 => Just(Line::Garbage),
        1 => Just(Line::Batch),
        1 => Just(Line::Blank),
    ]
}

impl Line {
    fn text(&self) -> String {
        let request = |id: &str, method: &str, params: &str| {
            format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#)
        };
        let hang = r#"{"sessionId":"s","prompt":[{"type":"text","text":"hang"}]}"#;
        match self {
            Self::Ping(id) => request(id, "_alive", "null"),
            Self::Unknown(id) => request(id, "no\\/such", "{}"),
            Self::BadParams(id) => request(id, "session/prompt", "{}"),
            Self::Hang(id) => request(id, "session/prompt", hang),
            Self::Cancel(id) => format!(
                r#"{{"jsonrpc":"2.0","method":"$/cancel_request","params":{{"requestId":{id}}}}}"#
            ),
            Self::NoVersion(id) => format!(r#"{{"id":{id},"method":"_alive"}}"#),
            Self::IncomingNotification => r#"{"jsonrpc":"2.0","method":"_note"}"#.to_owned(),
            Self::Stray => r#"{"jsonrpc":"2.0","id":0,"result":{}}"#.to_owned(),
            Self::Garbage => "{garbage".to_owned(),
            Self::Batch => "[]".to_owned(),
            Self::Blank => "  \t\r".to_owned(),
        }
    }
}

/// What the agent must answer.
#[derive(Debug, Default)]
struct Model {
    /// In this order; ids as text.
    at_once: Vec<(String, i64)>,
    /// Prompts that end with `cancelled`, at any time.
    cancelled: BTreeSet<String>,
    running: BTreeSet<&'static str>,
    complaints: u32,
}

impl Model {
    fn new() -> Self {
        Self {
            complaints: 32,
            ..Self::default()
        }
    }

    /// Takes a line, unless what becomes of it depends on when a task runs.
    fn takes(&mut self, line: &Line) -> bool {
        let (Line::Ping(id) | Line::Unknown(id) | Line::BadParams(id) | Line::Hang(id)) = line
        else {
            return self.takes_other(line);
        };
        if self.cancelled.contains(*id) {
            return false;
        }
        self.complaints = (self.complaints + 1).min(32);
        if self.running.contains(id) {
            self.complain(-32600);
            return true;
        }
        match line {
            Line::Ping(_) => self.at_once.push(((*id).to_owned(), 0)),
            Line::Unknown(_) => self.at_once.push(((*id).to_owned(), -32601)),
            Line::BadParams(_) => self.at_once.push(((*id).to_owned(), -32602)),
            _ => {
                self.running.insert(id);
            }
        }
        true
    }

    fn takes_other(&mut self, line: &Line) -> bool {
        match line {
            Line::Cancel(id) if self.running.remove(id) => {
                self.cancelled.insert((*id).to_owned());
                self.complaints = (self.complaints + 1).min(32);
            }
            Line::NoVersion(id) => self.at_once.push(((*id).to_owned(), -32600)),
            Line::Garbage => self.complain(-32700),
            Line::Batch => self.complain(-32600),
            Line::Blank => {}
            _ => self.complaints = (self.complaints + 1).min(32),
        }
        true
    }

    fn complain(&mut self, code: i64) {
        if self.complaints > 0 {
            self.complaints -= 1;
            self.at_once.push(("null".to_owned(), code));
        }
    }

    fn ends(mut self) -> (Vec<(String, i64)>, BTreeSet<String>) {
        self.cancelled
            .extend(self.running.iter().map(|id| (*id).to_owned()));
        (self.at_once, self.cancelled)
    }
}

fn run<T>(test: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(test)
}

/// Writes `bytes` in pieces of these sizes, over and over.
async fn write_in_pieces(
    mut writer: impl tokio::io::AsyncWrite + Unpin,
    bytes: &[u8],
    pieces: &[usize],
) {
    let mut rest = bytes;
    for piece in pieces.iter().cycle() {
        let (now, later) = rest.split_at((*piece).min(rest.len()));
        writer.write_all(now).await.unwrap();
        tokio::task::yield_now().await;
        rest = later;
        if rest.is_empty() {
            return;
        }
    }
}

/// The id as text, and the code or 0.
fn answered(line: &str) -> (String, i64, Value) {
    #[derive(serde::Deserialize)]
    struct Answer<'a> {
        #[serde(borrow)]
        id: Option<&'a serde_json::value::RawValue>,
        #[serde(default)]
        result: Value,
        #[serde(default)]
        error: Value,
    }
    let answer: Answer<'_> = serde_json::from_str(line).unwrap();
    let id = answer.id.map_or("null", |id| id.get());
    let code = answer.error["code"].as_i64().unwrap_or(0);
    (id.to_owned(), code, answer.result)
}

fn cases(default: u32) -> ProptestConfig {
    let cases = std::env::var("PROPTEST_CASES")
        .ok()
        .and_then(|cases| cases.parse().ok());
    ProptestConfig {
        cases: cases.unwrap_or(default),
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

proptest! {
    #![proptest_config(cases(64))]

    #[test]
    fn an_agent_answers_as_the_model_says(
        lines in vec(line(), 0..80),
        pieces in vec(1_usize..300, 1..8),
        pipe in 1_usize..2000,
    ) {
        let mut model = Model::new();
        let input: String = lines
            .iter()
            .filter(|line| model.takes(line))
            .map(|line| line.text() + "\n")
            .collect();
        let (at_once, cancelled) = model.ends();
        let output = run(async {
            let (ours, theirs) = tokio::io::duplex(pipe);
            let (reader, writer) = tokio::io::split(ours);
            let driver = tokio::spawn(acp_sdk::serve(TestAgent::default(), (reader, writer)));
            let (mut reader, mut writer) = tokio::io::split(theirs);
            let writing = async {
                write_in_pieces(&mut writer, input.as_bytes(), &pieces).await;
                writer.shutdown().await.unwrap();
            };
            let mut output = String::new();
            let (_, read) = tokio::join!(writing, reader.read_to_string(&mut output));
            read.unwrap();
            driver.await.unwrap().unwrap();
            output
        });
        let mut seen = Vec::new();
        let mut ended = Vec::new();
        for line in output.lines() {
            let (id, code, result) = answered(line);
            if result["stopReason"] == "cancelled" {
                ended.push(id);
            } else {
                seen.push((id, code));
            }
        }
        prop_assert_eq!(seen, at_once);
        ended.sort();
        prop_assert_eq!(ended, cancelled.into_iter().collect::<Vec<_>>());
    }
}

/// Something an agent writes to a client that has one prompt open in each of some sessions.
#[derive(Debug, Clone)]
enum Said {
    /// In this session, and its handler yields so often.
    Update(usize, usize),
    Answer(usize),
}

/// Handles updates at the pace that their text states.
#[derive(Clone, Default)]
struct Pacer(Arc<Mutex<BTreeMap<String, Vec<String>>>>);

impl Client for Pacer {
    async fn request_permission(
        &self,
        _: &ClientContext,
        _: RequestPermissionRequest,
    ) -> HandlerResult<RequestPermissionResponse> {
        Err(acp_sdk::HandlerError::cancelled())
    }

    async fn session_update(
        &self,
        _: &ClientContext,
        note: SessionNotification,
    ) -> HandlerResult<()> {
        let SessionUpdate::AgentMessageChunk(ContentChunk {
            content: ContentBlock::Text(text),
            ..
        }) = note.update
        else {
            return Ok(());
        };
        let pace = text
            .text
            .split(' ')
            .next_back()
            .and_then(|pace| pace.parse().ok());
        for _ in 0..pace.unwrap_or(0) {
            tokio::task::yield_now().await;
        }
        let session = note.session_id.to_string();
        self.0
            .lock()
            .unwrap()
            .entry(session)
            .or_default()
            .push(text.text);
        Ok(())
    }
}

const SESSIONS: usize = 3;

proptest! {
    #![proptest_config(cases(64))]

    #[test]
    fn a_client_hears_what_was_said_before_an_answer(
        said in vec(prop_oneof![
            4 => (0..SESSIONS, 0_usize..4).prop_map(|(session, pace)| Said::Update(session, pace)),
            1 => (0..SESSIONS).prop_map(Said::Answer),
        ], 0..40),
        pieces in vec(1_usize..400, 1..8),
    ) {
        let mut before: BTreeMap<usize, Vec<String>> = BTreeMap::new();
        let mut expected: BTreeMap<usize, Vec<String>> = BTreeMap::new();
        let mut bytes = String::new();
        let answer = |session: usize| json!({"jsonrpc": "2.0", "id": session, "result": {"stopReason": "end_turn"}});
        for (number, said) in said.iter().enumerate() {
            let message = match said {
                Said::Update(session, pace) => {
                    let text = format!("{number} {pace}");
                    before.entry(*session).or_default().push(text.clone());
                    chunk(&session.to_string(), &text)
                }
                Said::Answer(session) => {
                    // A second answer is nobody's.
                    let heard = before.get(session).cloned().unwrap_or_default();
                    expected.entry(*session).or_insert(heard);
                    answer(*session)
                }
            };
            bytes += &format!("{message}\n");
        }
        for session in 0..SESSIONS {
            let heard = before.get(&session).cloned().unwrap_or_default();
            expected.entry(session).or_insert(heard);
            bytes += &format!("{}\n", answer(session));
        }
        let (heard, all) = run(async {
            let pacer = Pacer::default();
            let (ours, theirs) = tokio::io::duplex(1 << 16);
            let (reader, writer) = tokio::io::split(ours);
            let driver = acp_sdk::connect(pacer.clone(), (reader, writer));
            let handle = driver.handle().clone();
            let driver = tokio::spawn(driver);
            // The requests go out in the order of the sessions, so ids and sessions agree.
            let calls: Vec<_> = (0..SESSIONS)
                .map(|session| {
                    let (handle, pacer) = (handle.clone(), pacer.clone());
                    tokio::spawn(async move {
                        let session = session.to_string();
                        handle.prompt(prompt(&session, "go")).await.unwrap();
                        let heard = pacer.0.lock().unwrap();
                        heard.get(&session).cloned().unwrap_or_default()
                    })
                })
                .collect();
            let (mut reader, mut writer) = tokio::io::split(theirs);
            // Answers to requests that were not made yet would be nobody's.
            let mut asked = 0;
            while asked < SESSIONS {
                asked += usize::from(reader.read_u8().await.unwrap() == b'\n');
            }
            write_in_pieces(&mut writer, bytes.as_bytes(), &pieces).await;
            let mut heard = Vec::new();
            for call in calls {
                heard.push(call.await.unwrap());
            }
            writer.shutdown().await.unwrap();
            driver.await.unwrap().unwrap();
            (heard, pacer.0.lock().unwrap().clone())
        });
        for (session, heard) in heard.iter().enumerate() {
            let expected = &expected[&session];
            prop_assert!(heard.starts_with(expected), "{:?} before {:?}", expected, heard);
            let said = before.get(&session).cloned().unwrap_or_default();
            let all = all.get(&session.to_string()).cloned().unwrap_or_default();
            prop_assert_eq!(all, said);
        }
    }
}
