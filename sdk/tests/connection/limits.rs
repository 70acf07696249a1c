//! Too much of everything: what is held has a limit, and below it things go on.
//!
//! These tests need a runtime of one thread: nothing else runs between two turns of the test, which shows what is taken at most.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use acp_sdk::{ConnectionBuilder, HandlerError, HandlerResult, v1::*};
use serde_json::{Value, json};
use tokio::io::{
    AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream,
};
use tokio::time::timeout;

use super::support::{AbortOnDrop, TestAgent, TestClient, chunk, prompt, update, within};

#[tokio::test]
async fn a_reader_that_stops_holds_up_ten_gigabytes_at_the_source() {
    /// Sends 10 GB in updates of 1 MB, of which it counts those that were taken.
    #[derive(Clone, Default)]
    struct Flood(Arc<AtomicU64>);
    impl Agent for Flood {
        async fn new_session(
            &self,
            _: &AgentContext,
            _: NewSessionRequest,
        ) -> HandlerResult<NewSessionResponse> {
            Err(HandlerError::auth_required())
        }
        async fn prompt(
            &self,
            cx: &AgentContext,
            req: PromptRequest,
        ) -> HandlerResult<PromptResponse> {
            let note = update(&req.session_id, &"x".repeat(1 << 20));
            for _ in 0..10_240 / 100 {
                cx.client().session_update(note.clone()).await?;
                self.0.fetch_add(1, Ordering::Relaxed);
            }
            Ok(PromptResponse::new(StopReason::EndTurn))
        }
        async fn cancel(&self, _: &AgentContext, _: CancelNotification) -> HandlerResult<()> {
            Ok(())
        }
    }
    let subject = Flood::default();
    let (ours, theirs) = tokio::io::duplex(1 << 16);
    let (reader, writer) = tokio::io::split(ours);
    let driver = tokio::spawn(acp_sdk::serve(subject.clone(), (reader, writer)));
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
    let driver = tokio::spawn(acp_sdk::serve(TestAgent::default(), (reader, writer)));
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

#[tokio::test(start_paused = true)]
async fn a_peer_that_asks_without_reading_is_not_read_for_long() {
    let (ours, theirs) = tokio::io::duplex(1 << 16);
    let (reader, writer) = tokio::io::split(ours);
    let driver = tokio::spawn(acp_sdk::serve(TestAgent::default(), (reader, writer)));
    let (output, mut input) = tokio::io::split(theirs);
    let request = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"session/prompt\",\"params\":[]}\n";
    let (mut asked, mut written) = (0, 0);
    // In whole requests, of which the last may be cut where there was no more room.
    while let Ok(bytes) = timeout(
        Duration::from_secs(1),
        input.write(&request.as_bytes()[written..]),
    )
    .await
    {
        written += bytes.unwrap();
        if written == request.len() {
            (asked, written) = (asked + 1, 0);
        }
        assert!(asked < 100_000, "it reads on and on");
    }
    let rest = async move {
        input
            .write_all(&request.as_bytes()[written..])
            .await
            .unwrap();
        input.shutdown().await.unwrap();
    };
    let answers = async move {
        let mut lines = BufReader::new(output).lines();
        let mut count = 0;
        while let Some(line) = lines.next_line().await.unwrap() {
            assert!(line.contains("-32602"), "{line}");
            count += 1;
        }
        count
    };
    let ((), answered) = within(async { tokio::join!(rest, answers) }).await;
    assert_eq!(
        answered,
        asked + 1,
        "what was read is answered, and reading goes on"
    );
    within(driver).await.unwrap().unwrap();
}

/// A client that pauses reading when a few notifications wait, and a raw agent.
async fn small_client(watcher: &TestClient) -> (AgentHandle, DuplexStream, AbortOnDrop) {
    let (ours, theirs) = tokio::io::duplex(1 << 16);
    let (reader, writer) = tokio::io::split(ours);
    let connection = ConnectionBuilder::new().max_queued_bytes(50_000);
    let driver = connection.client(watcher.clone(), (reader, writer));
    let handle = driver.handle().clone();
    (handle, theirs, AbortOnDrop(tokio::spawn(driver)))
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
    // The agent need not go on with what nobody waits for.
    let mut lines = BufReader::new(stream).lines();
    let mut next = async || within(lines.next_line()).await.unwrap().unwrap();
    assert!(next().await.contains("_down"));
    let params = "\"method\":\"$/cancel_request\",\"params\":{\"requestId\":0}";
    let cancel = next().await;
    assert!(cancel.contains(params), "{cancel}");
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
    let driver = connection.agent(subject.clone(), (reader, writer));
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
    let message = "session/prompt refused: 2 requests are in progress";
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
