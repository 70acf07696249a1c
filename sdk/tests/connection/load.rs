//! Many at once, and too much of everything: nobody starves and nothing grows.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use acp_sdk::{Error, Json, Result, v1::*};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};

use super::support::{TestAgent, TestClient, agent, descend, pair, update};

/// Streams numbered updates, as many as the prompt says.
struct Streamer;

impl Agent for Streamer {
    async fn new_session(&self, _: &AgentCx, _: NewSessionRequest) -> Result<NewSessionResponse> {
        Err(Error::auth_required())
    }
    async fn prompt(&self, cx: &AgentCx, req: PromptRequest) -> Result<PromptResponse> {
        let Some(ContentBlock::Text(text)) = req.prompt.first() else {
            return Err(Error::invalid_params("/prompt", "no text"));
        };
        for number in 0..text.text.parse().unwrap_or(0) {
            let text = format!("{number} {}", "x".repeat(500));
            cx.client()
                .session_update(update(&req.session_id, &text))
                .await?;
        }
        Ok(PromptResponse::new(StopReason::EndTurn))
    }
    async fn cancel(&self, _: &AgentCx, _: CancelNotification) -> Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn a_hundred_sessions_share_one_connection_fairly() {
    const SESSIONS: usize = 100;
    const UPDATES: u64 = 300;
    let (ours, theirs) = tokio::io::duplex(1 << 16);
    let (reader, writer) = tokio::io::split(ours);
    let _driver = tokio::spawn(acp_sdk::serve(Streamer, reader, writer));
    let (reader, mut writer) = tokio::io::split(theirs);
    for session in 0..SESSIONS {
        let prompt = [{ json!({"type": "text", "text": UPDATES.to_string()}) }];
        let params = json!({"sessionId": session.to_string(), "prompt": prompt});
        let request =
            json!({"jsonrpc": "2.0", "id": session, "method": "session/prompt", "params": params});
        writer
            .write_all(format!("{request}\n").as_bytes())
            .await
            .unwrap();
    }
    let mut lines = BufReader::new(reader).lines();
    let mut seen: BTreeMap<String, u64> = BTreeMap::new();
    let mut slowest_at_first_end = None;
    let mut ended = 0;
    while ended < SESSIONS {
        let line = lines.next_line().await.unwrap().unwrap();
        let message: Value = serde_json::from_str(&line).unwrap();
        if message["result"].is_object() {
            let slowest = seen.values().min().copied().unwrap_or(0);
            slowest_at_first_end.get_or_insert((seen.len(), slowest));
            ended += 1;
            continue;
        }
        let params = &message["params"];
        let session = params["sessionId"].as_str().unwrap().to_owned();
        let text = params["update"]["content"]["text"].as_str().unwrap();
        let next = seen.entry(session).or_default();
        let number: u64 = text.split(' ').next().unwrap().parse().unwrap();
        assert_eq!(number, *next, "the updates of a session come in order");
        *next += 1;
    }
    let (started, slowest) = slowest_at_first_end.unwrap();
    assert_eq!(
        started, SESSIONS,
        "every session has begun when the first ends"
    );
    assert!(
        slowest >= UPDATES / 2,
        "the slowest had only sent {slowest} of {UPDATES}"
    );
}

#[tokio::test]
async fn a_reader_that_stops_holds_up_ten_gigabytes_at_the_source() {
    /// Sends 10 GB in updates of 1 MB, of which it counts those that were taken.
    #[derive(Clone, Default)]
    struct Flood(Arc<AtomicU64>);
    impl Agent for Flood {
        async fn new_session(
            &self,
            _: &AgentCx,
            _: NewSessionRequest,
        ) -> Result<NewSessionResponse> {
            Err(Error::auth_required())
        }
        async fn prompt(&self, cx: &AgentCx, req: PromptRequest) -> Result<PromptResponse> {
            let note = update(&req.session_id, &"x".repeat(1 << 20));
            for _ in 0..10_240 / 100 {
                cx.client().session_update(note.clone()).await?;
                self.0.fetch_add(1, Ordering::Relaxed);
            }
            Ok(PromptResponse::new(StopReason::EndTurn))
        }
        async fn cancel(&self, _: &AgentCx, _: CancelNotification) -> Result<()> {
            Ok(())
        }
    }
    let subject = Flood::default();
    let (ours, theirs) = tokio::io::duplex(1 << 16);
    let (reader, writer) = tokio::io::split(ours);
    let driver = tokio::spawn(acp_sdk::serve(subject.clone(), reader, writer));
    let (mut output, mut input) = tokio::io::split(theirs);
    for id in 0..100 {
        let params = json!({"sessionId": id.to_string(), "prompt": []});
        let request =
            json!({"jsonrpc": "2.0", "id": id, "method": "session/prompt", "params": params});
        input
            .write_all(format!("{request}\n").as_bytes())
            .await
            .unwrap();
    }
    output.read_u8().await.unwrap();
    // Nothing else can run, so what was taken by now is all that is taken.
    for _ in 0..1000 {
        tokio::task::yield_now().await;
    }
    let taken = subject.0.load(Ordering::Relaxed);
    assert!(
        (1..=3).contains(&taken),
        "{taken} MB are held for a peer that does not read"
    );
    drop((output, input));
    let ended = driver.await.unwrap();
    assert!(ended.is_ok() || ended.is_err_and(|error| error.is_closed()));
    assert!(
        subject.0.load(Ordering::Relaxed) <= taken + 1,
        "the rest was never sent"
    );
}

#[tokio::test]
async fn a_million_lines_of_garbage_get_a_few_answers_and_are_over() {
    let (ours, theirs) = tokio::io::duplex(1 << 20);
    let (reader, writer) = tokio::io::split(ours);
    let driver = tokio::spawn(acp_sdk::serve(TestAgent::default(), reader, writer));
    let (mut output, mut input) = tokio::io::split(theirs);
    let writing = tokio::spawn(async move {
        let garbage = "{]\n".repeat(10_000);
        for _ in 0..100 {
            input.write_all(garbage.as_bytes()).await.unwrap();
        }
        input.shutdown().await.unwrap();
    });
    let mut answers = String::new();
    output.read_to_string(&mut answers).await.unwrap();
    writing.await.unwrap();
    driver.await.unwrap().unwrap();
    assert!((1..=32).contains(&answers.lines().count()), "{answers}");
}

#[test]
fn chains_of_handlers_need_no_deep_stack() {
    let run = || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(async {
            let (handle, _drivers) = pair(TestAgent::default(), TestClient::default());
            let params = Json::from(json!({"depth": 100}));
            descend(handle.peer(), Some(params)).await.unwrap()
        })
    };
    let small = std::thread::Builder::new().stack_size(512 << 10).spawn(run);
    assert_eq!(small.unwrap().join().unwrap().get(), "\"bottom\"");
}

#[tokio::test]
async fn deep_json_needs_no_deep_stack() {
    // Everywhere a message can be deep: params, a field, an error, a result, a batch.
    let deep = "[".repeat(10_000) + &"]".repeat(10_000);
    let lines = [
        format!(r#"{{"jsonrpc":"2.0","id":1,"method":"_alive","params":{deep}}}"#),
        format!(
            r#"{{"jsonrpc":"2.0","id":2,"method":"session/prompt","params":{{"sessionId":{deep},"prompt":[]}}}}"#
        ),
        format!(
            r#"{{"jsonrpc":"2.0","id":3,"method":"session/prompt","params":{{"sessionId":"s","prompt":{deep}}}}}"#
        ),
        format!(r#"{{"jsonrpc":"2.0","id":4,"error":{deep}}}"#),
        format!(r#"{{"jsonrpc":"2.0","id":5,"result":{deep}}}"#),
        format!(
            r#"{{"jsonrpc":"2.0","method":"session/cancel","params":{{"sessionId":"s","_meta":{deep}}}}}"#
        ),
        deep.clone(),
        "[".repeat(100_000),
    ];
    let (mut raw, _driver) = agent(TestAgent::default());
    let mut codes = Vec::new();
    for line in lines {
        raw.write(format!("{line}\n")).await;
    }
    raw.send(json!({"jsonrpc": "2.0", "id": "end", "method": "_alive"}))
        .await;
    loop {
        let answer = raw.expect().await;
        if answer["id"] == "end" {
            break;
        }
        codes.push((answer["id"].clone(), answer["error"]["code"].clone()));
    }
    let expected = [
        (json!(1), json!(null)),
        (json!(2), json!(-32602)),
        (json!(3), json!(-32602)),
        (json!(null), json!(-32600)),
        (json!(null), json!(-32700)),
    ];
    assert_eq!(codes, expected);
}

#[tokio::test]
async fn a_handler_that_never_returns_holds_nobody_up() {
    struct Stuck(Mutex<Option<tokio::sync::oneshot::Sender<()>>>);
    impl Agent for Stuck {
        async fn new_session(
            &self,
            _: &AgentCx,
            _: NewSessionRequest,
        ) -> Result<NewSessionResponse> {
            Ok(NewSessionResponse::new("s"))
        }
        async fn prompt(&self, _: &AgentCx, _: PromptRequest) -> Result<PromptResponse> {
            std::future::pending().await
        }
        async fn cancel(&self, _: &AgentCx, _: CancelNotification) -> Result<()> {
            if let Some(reached) = self.0.lock().unwrap().take() {
                let _ = reached.send(());
            }
            std::future::pending().await
        }
    }
    let (reached, arrival) = tokio::sync::oneshot::channel();
    let (ours, theirs) = tokio::io::duplex(1 << 16);
    let (reader, writer) = tokio::io::split(ours);
    let _driver = tokio::spawn(acp_sdk::serve(
        Stuck(Mutex::new(Some(reached))),
        reader,
        writer,
    ));
    let (reader, mut writer) = tokio::io::split(theirs);
    let stuck = concat!(
        r#"{"jsonrpc":"2.0","id":1,"method":"session/prompt","params":{"sessionId":"s","prompt":[]}}"#,
        "\n",
        r#"{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":"s"}}"#,
        "\n",
        r#"{"jsonrpc":"2.0","id":2,"method":"session/new","params":{"cwd":"/","mcpServers":[]}}"#,
        "\n",
    );
    writer.write_all(stuck.as_bytes()).await.unwrap();
    arrival.await.unwrap();
    let answer = BufReader::new(reader)
        .lines()
        .next_line()
        .await
        .unwrap()
        .unwrap();
    assert_eq!(
        answer,
        r#"{"jsonrpc":"2.0","id":2,"result":{"sessionId":"s"}}"#
    );
}
