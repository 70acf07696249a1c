//! Many at once, and too much of everything: nobody starves and nothing grows.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use acp_sdk::{ConnectionBuilder, Error, Json, Result, v1::*};
use serde_json::{Value, json};
use tokio::io::{
    AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream,
};

use super::support::{TestAgent, TestClient, agent, chunk, descend, pair, prompt, update};

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

/// A client that pauses reading when a few notifications wait, and a raw agent.
async fn small_client(watcher: &TestClient) -> (AgentHandle, DuplexStream, AbortOnDrop) {
    let (ours, theirs) = tokio::io::duplex(1 << 16);
    let (reader, writer) = tokio::io::split(ours);
    let connection = ConnectionBuilder::new().max_queued_bytes(50_000);
    let (handle, driver) = connection.client(watcher.clone(), reader, writer);
    (handle, theirs, AbortOnDrop(tokio::spawn(driver)))
}

struct AbortOnDrop(tokio::task::JoinHandle<Result<()>>);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Writes messages one by one, so that reading can pause between them.
async fn write_one_by_one(stream: &mut DuplexStream, messages: impl Iterator<Item = Value>) {
    for message in messages {
        let line = format!("{message}\n");
        stream.write_all(line.as_bytes()).await.unwrap();
        for _ in 0..5 {
            tokio::task::yield_now().await;
        }
    }
}

/// Far above what anything here takes, for a test that hangs should say so.
async fn within<T>(future: impl Future<Output = T>) -> T {
    let limit = std::time::Duration::from_secs(30);
    tokio::time::timeout(limit, future).await.expect("it hangs")
}

#[tokio::test]
async fn a_handler_that_waits_behind_too_much_gives_up() {
    let watcher = TestClient::default();
    let (_handle, mut stream, _driver) = small_client(&watcher).await;
    // Its handler calls the agent, whose answer would stand behind all the rest.
    write_one_by_one(&mut stream, [chunk("s", "call")].into_iter()).await;
    let rest = (0..300).map(|number| chunk("s", &number.to_string()));
    within(async {
        write_one_by_one(&mut stream, rest).await;
        while watcher.texts().len() < 300 {
            tokio::task::yield_now().await;
        }
    })
    .await;
    let expected: Vec<String> = (0..300).map(|number| number.to_string()).collect();
    assert_eq!(watcher.texts(), expected, "only the one that called failed");
}

#[tokio::test]
async fn reading_goes_on_as_soon_as_the_queue_is_short_enough() {
    let watcher = TestClient::default();
    let (handle, mut stream, _driver) = small_client(&watcher).await;
    let call = tokio::spawn(async move { handle.prompt(prompt("b", "go")).await });
    let answer = json!({"jsonrpc": "2.0", "id": 0, "result": {"stopReason": "end_turn"}});
    let slow = (0..100).map(|_| chunk("a", "slow"));
    stream.read_u8().await.unwrap();
    write_one_by_one(&mut stream, slow.chain([answer])).await;
    assert!(!call.is_finished(), "reading pauses before the answer");
    within(async {
        while !call.is_finished() {
            watcher.gate.notify_one();
            tokio::task::yield_now().await;
        }
    })
    .await;
    assert!(call.await.unwrap().is_ok());
    // Some twenty wait, and reading need not wait for all of them.
    let handled = watcher.texts().len();
    assert!(
        handled <= 5,
        "{handled} were handled before reading went on"
    );
}

#[tokio::test]
async fn more_requests_at_once_than_agreed_are_refused() {
    let subject = TestAgent::default();
    let (ours, theirs) = tokio::io::duplex(1 << 16);
    let (reader, writer) = tokio::io::split(ours);
    let connection = ConnectionBuilder::new().max_requests(2);
    let (_client, driver) = connection.agent(subject.clone(), reader, writer);
    let _driver = AbortOnDrop(tokio::spawn(driver));
    let (reader, mut writer) = tokio::io::split(theirs);
    let mut lines = BufReader::new(reader).lines();
    for id in 0..3 {
        let text = json!({"type": "text", "text": "hang"});
        let params = json!({"sessionId": "s", "prompt": [text]});
        let request =
            json!({"jsonrpc": "2.0", "id": id, "method": "session/prompt", "params": params});
        writer
            .write_all(format!("{request}\n").as_bytes())
            .await
            .unwrap();
    }
    let refusal: Value = serde_json::from_str(&lines.next_line().await.unwrap().unwrap()).unwrap();
    assert_eq!(
        (&refusal["id"], &refusal["error"]["code"]),
        (&json!(2), &json!(-32603))
    );
    let message = "session/prompt is refused: 2 requests are in progress";
    assert_eq!(refusal["error"]["message"], message);
    // With one of them gone there is room again.
    let more = concat!(
        r#"{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":1}}"#,
        "\n",
    );
    writer.write_all(more.as_bytes()).await.unwrap();
    assert!(
        lines
            .next_line()
            .await
            .unwrap()
            .unwrap()
            .contains("cancelled")
    );
    let ping = r#"{"jsonrpc":"2.0","id":3,"method":"_alive"}"#;
    writer
        .write_all(format!("{ping}\n").as_bytes())
        .await
        .unwrap();
    assert!(lines.next_line().await.unwrap().unwrap().contains("yes"));
}

#[tokio::test]
async fn ten_thousand_calls_hear_of_the_end() {
    let watcher = TestClient::default();
    let (ours, theirs) = tokio::io::duplex(1 << 16);
    let (reader, writer) = tokio::io::split(ours);
    let (handle, driver) = acp_sdk::connect(watcher, reader, writer);
    let driver = tokio::spawn(driver);
    let mut calls = tokio::task::JoinSet::new();
    for _ in 0..10_000 {
        let handle = handle.clone();
        calls.spawn(async move { handle.prompt(prompt("s", "x")).await });
    }
    // Many are on their way, and many wait for room, when the agent goes.
    let mut theirs = BufReader::new(theirs).lines();
    for _ in 0..1_000 {
        theirs.next_line().await.unwrap().unwrap();
    }
    drop(theirs);
    while let Some(call) = within(calls.join_next()).await {
        assert!(call.unwrap().unwrap_err().is_closed());
    }
    let _ = within(driver).await.unwrap();
}

#[tokio::test]
async fn a_storm_of_cancels_leaves_one_answer_for_each_of_ten_thousand() {
    const REQUESTS: usize = 10_000;
    let (ours, theirs) = tokio::io::duplex(1 << 16);
    let (reader, writer) = tokio::io::split(ours);
    let _agent = AbortOnDrop(tokio::spawn(acp_sdk::serve(
        TestAgent::default(),
        reader,
        writer,
    )));
    let (reader, mut writer) = tokio::io::split(theirs);
    let writing = tokio::spawn(async move {
        let hang = r#"{"sessionId":"s","prompt":[{"type":"text","text":"hang"}]}"#;
        for id in 0..REQUESTS {
            // The one before and the one after, which is not there yet, and twice itself.
            let mut lines = format!(
                "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"session/prompt\",\"params\":{hang}}}\n"
            );
            for id in [id as i64 - 1, id as i64 + 1, id as i64, id as i64] {
                lines += &format!(
                    "{{\"jsonrpc\":\"2.0\",\"method\":\"$/cancel_request\",\"params\":{{\"requestId\":{id}}}}}\n"
                );
            }
            writer.write_all(lines.as_bytes()).await.unwrap();
        }
        writer
    });
    let mut lines = BufReader::new(reader).lines();
    let mut answered = vec![false; REQUESTS];
    for _ in 0..REQUESTS {
        let line = within(lines.next_line()).await.unwrap().unwrap();
        let answer: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(answer["result"]["stopReason"], "cancelled", "{answer}");
        let id = answer["id"].as_u64().unwrap() as usize;
        assert!(!std::mem::replace(&mut answered[id], true), "{id} twice");
    }
    // Nothing more is said of them: the next answer is to the next request.
    let mut writer = writing.await.unwrap();
    let ping = "{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"_alive\"}\n";
    writer.write_all(ping.as_bytes()).await.unwrap();
    let pong = within(lines.next_line()).await.unwrap().unwrap();
    assert!(pong.contains("yes"), "{pong}");
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
