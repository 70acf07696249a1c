//! Many at once on one connection: sessions, calls, cancellations; each gets what is its own.

use std::collections::BTreeMap;
use std::sync::Mutex;

use acp_sdk::{HandlerError, HandlerResult, v1::*};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};

use super::support::{AbortOnDrop, TestAgent, TestClient, client, prompt, update, within};

/// Streams numbered updates, as many as the prompt says.
struct Streamer;

impl Agent for Streamer {
    async fn new_session(
        &self,
        _: &AgentContext,
        _: NewSessionRequest,
    ) -> HandlerResult<NewSessionResponse> {
        Err(HandlerError::auth_required())
    }
    async fn prompt(&self, cx: &AgentContext, req: PromptRequest) -> HandlerResult<PromptResponse> {
        let Some(ContentBlock::Text(text)) = req.prompt.first() else {
            return Err(HandlerError::invalid_params("/prompt", "no text"));
        };
        for number in 0..text.text.parse().unwrap_or(0) {
            let text = format!("{number} {}", "x".repeat(500));
            cx.client()
                .session_update(update(&req.session_id, &text))
                .await?;
        }
        Ok(PromptResponse::new(StopReason::EndTurn))
    }
    async fn cancel(&self, _: &AgentContext, _: CancelNotification) -> HandlerResult<()> {
        Ok(())
    }
}

#[tokio::test]
async fn a_hundred_sessions_share_one_connection_fairly() {
    const SESSIONS: usize = 100;
    const UPDATES: u64 = 300;
    let (ours, theirs) = tokio::io::duplex(1 << 16);
    let (reader, writer) = tokio::io::split(ours);
    let _driver = tokio::spawn(acp_sdk::serve(Streamer, (reader, writer)));
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
async fn ten_thousand_calls_hear_of_the_end() {
    let watcher = TestClient::default();
    let (ours, theirs) = tokio::io::duplex(1 << 16);
    let (reader, writer) = tokio::io::split(ours);
    let driver = acp_sdk::connect(watcher, (reader, writer));
    let handle = driver.handle().clone();
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
        (reader, writer),
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

#[tokio::test(start_paused = true)]
async fn a_hundred_thousand_calls_dropped_at_once_are_all_cancelled() {
    const CALLS: usize = 100_000;
    let (handle, mut raw, _driver) = client(TestClient::default());
    let mut calls = tokio::task::JoinSet::new();
    for _ in 0..CALLS {
        let handle = handle.clone();
        calls.spawn(async move { handle.ext_request("_x", None).await });
    }
    for id in 0..CALLS {
        let request = format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"_x\"}}\n");
        assert_eq!(within(raw.line()).await, request);
    }
    drop(calls);
    let mut cancelled = vec![false; CALLS];
    for _ in 0..CALLS {
        let line = within(raw.line()).await;
        let params = line.split_once("\"$/cancel_request\",\"params\":{\"requestId\":");
        let id = params.and_then(|(_, rest)| rest.strip_suffix("}}\n")?.parse::<usize>().ok());
        let id = id.unwrap_or_else(|| panic!("{line}"));
        assert!(!std::mem::replace(&mut cancelled[id], true), "{id} twice");
    }
    // That much to say has not stopped the reader for good.
    let call = tokio::spawn(async move { handle.ext_request("_y", None).await });
    assert_eq!(within(raw.expect()).await["id"], CALLS);
    raw.send(json!({"jsonrpc": "2.0", "id": CALLS, "result": 1}))
        .await;
    assert_eq!(within(call).await.unwrap().unwrap().get(), "1");
}

#[tokio::test]
async fn a_handler_that_never_returns_holds_nobody_up() {
    struct Stuck(Mutex<Option<tokio::sync::oneshot::Sender<()>>>);
    impl Agent for Stuck {
        async fn new_session(
            &self,
            _: &AgentContext,
            _: NewSessionRequest,
        ) -> HandlerResult<NewSessionResponse> {
            Ok(NewSessionResponse::new("s"))
        }
        async fn prompt(
            &self,
            _: &AgentContext,
            _: PromptRequest,
        ) -> HandlerResult<PromptResponse> {
            std::future::pending().await
        }
        async fn cancel(&self, _: &AgentContext, _: CancelNotification) -> HandlerResult<()> {
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
        (reader, writer),
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
