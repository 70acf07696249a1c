//! What is to happen only once an answer is on its way.

use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Waker};

use acp_sdk::{HandlerError, HandlerResult, v1::*};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream};

use super::support::update;

/// Keeps something through each prompt, and tells when the client has its answer.
#[derive(Clone, Default)]
struct Keeper {
    dropped: Arc<AtomicBool>,
    /// What the handlers knew of their requests, which outlives them here.
    known: Arc<Mutex<Vec<AgentContext>>>,
}

struct Kept(Arc<AtomicBool>);

impl Drop for Kept {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl Agent for Keeper {
    async fn new_session(
        &self,
        _: &AgentContext,
        _: NewSessionRequest,
    ) -> HandlerResult<NewSessionResponse> {
        Err(HandlerError::auth_required())
    }

    async fn prompt(&self, cx: &AgentContext, req: PromptRequest) -> HandlerResult<PromptResponse> {
        cx.keep_until_answered(Kept(self.dropped.clone()));
        self.known.lock().unwrap().push(cx.clone());
        let (client, answered) = (cx.client().clone(), cx.answered());
        let session = req.session_id.clone();
        tokio::spawn(async move {
            answered.await;
            let _ = client.session_update(update(&session, "after")).await;
        });
        let text = match req.prompt.first() {
            Some(ContentBlock::Text(text)) => text.text.as_str(),
            _ => "",
        };
        match text {
            "fail" => return Err(HandlerError::auth_required()),
            "panic" => panic!("a fault in the agent"),
            "much" => {
                // The second one stays behind the first, and the answer behind it.
                for _ in 0..2 {
                    let much = update(&req.session_id, &"x".repeat(200_000));
                    cx.client().session_update(much).await?;
                }
            }
            _ => tokio::task::yield_now().await,
        }
        Ok(PromptResponse::new(StopReason::EndTurn))
    }

    async fn cancel(&self, cx: &AgentContext, _: CancelNotification) -> HandlerResult<()> {
        // Nothing is answered here, so there is nothing to wait for.
        cx.keep_until_answered(Kept(self.dropped.clone()));
        cx.answered().await;
        cx.client()
            .session_update(update(&"s".into(), "noted"))
            .await?;
        Ok(())
    }
}

fn serve(keeper: &Keeper) -> BufReader<DuplexStream> {
    let (ours, theirs) = tokio::io::duplex(1 << 12);
    let (reader, writer) = tokio::io::split(theirs);
    tokio::spawn(acp_sdk::serve(keeper.clone(), (reader, writer)));
    BufReader::new(ours)
}

async fn say(stream: &mut BufReader<DuplexStream>, message: Value) {
    let line = format!("{message}\n");
    stream.write_all(line.as_bytes()).await.unwrap();
}

fn prompt(text: &str) -> Value {
    let params = json!({"sessionId": "s", "prompt": [{"type": "text", "text": text}]});
    json!({"jsonrpc": "2.0", "id": 1, "method": "session/prompt", "params": params})
}

/// The next message in a word: its text, or `answer`.
async fn heard(stream: &mut BufReader<DuplexStream>) -> String {
    let mut line = String::new();
    stream.read_line(&mut line).await.unwrap();
    let message: Value = serde_json::from_str(&line).unwrap();
    let text = message["params"]["update"]["content"]["text"].as_str();
    text.unwrap_or("answer").to_owned()
}

async fn what_is_kept_outlasts_the_wait_for_room() {
    let keeper = Keeper::default();
    let mut stream = serve(&keeper);
    say(&mut stream, prompt("much")).await;
    // Nothing else can run, so the handler has ended and its answer waits.
    for _ in 0..1000 {
        tokio::task::yield_now().await;
    }
    assert!(!keeper.dropped.load(Ordering::Relaxed));
    for _ in 0..2 {
        assert_eq!(heard(&mut stream).await.len(), 200_000);
    }
    assert_eq!(heard(&mut stream).await, "answer");
    assert_eq!(heard(&mut stream).await, "after");
    assert!(keeper.dropped.load(Ordering::Relaxed));
}

async fn however_a_request_ends_what_comes_after_follows_its_answer() {
    for text in ["", "fail", "panic"] {
        let keeper = Keeper::default();
        let mut stream = serve(&keeper);
        say(&mut stream, prompt(text)).await;
        assert_eq!(heard(&mut stream).await, "answer", "{text}");
        assert_eq!(heard(&mut stream).await, "after", "{text}");
        assert!(keeper.dropped.load(Ordering::Relaxed), "{text}");
        // What is kept after that is not kept.
        let late = Arc::<AtomicBool>::default();
        let cx = keeper.known.lock().unwrap().pop().unwrap();
        cx.keep_until_answered(Kept(late.clone()));
        assert!(late.load(Ordering::Relaxed), "{text}");
    }
}

async fn a_notification_keeps_nothing_and_waits_for_nothing() {
    let keeper = Keeper::default();
    let mut stream = serve(&keeper);
    let params = json!({"sessionId": "s"});
    say(
        &mut stream,
        json!({"jsonrpc": "2.0", "method": "session/cancel", "params": params}),
    )
    .await;
    assert_eq!(heard(&mut stream).await, "noted");
    assert!(keeper.dropped.load(Ordering::Relaxed));
}

/// Says something as it is dropped.
struct Parting(ClientHandle);

impl Drop for Parting {
    fn drop(&mut self) {
        let saying = pin!(self.0.session_update(update(&"s".into(), "parting")));
        let _ = saying.poll(&mut Context::from_waker(Waker::noop()));
    }
}

/// Ends in every way, with something kept.
struct Departing;

impl Agent for Departing {
    async fn new_session(
        &self,
        _: &AgentContext,
        _: NewSessionRequest,
    ) -> HandlerResult<NewSessionResponse> {
        Err(HandlerError::auth_required())
    }
    async fn prompt(&self, cx: &AgentContext, req: PromptRequest) -> HandlerResult<PromptResponse> {
        cx.keep_until_answered(Parting(cx.client().clone()));
        let text = match req.prompt.first() {
            Some(ContentBlock::Text(text)) => text.text.as_str(),
            _ => "",
        };
        match text {
            "fail" => Err(HandlerError::auth_required()),
            "panic" => panic!("a fault in the agent"),
            _ => Ok(PromptResponse::new(StopReason::EndTurn)),
        }
    }
    async fn cancel(&self, _: &AgentContext, _: CancelNotification) -> HandlerResult<()> {
        Ok(())
    }
}

async fn however_a_request_ends_its_answer_is_there_before_what_it_kept_is_dropped() {
    for text in ["", "fail", "panic"] {
        let (ours, theirs) = tokio::io::duplex(1 << 12);
        let (reader, writer) = tokio::io::split(theirs);
        let _agent = tokio::spawn(acp_sdk::serve(Departing, (reader, writer)));
        let mut stream = BufReader::new(ours);
        say(&mut stream, prompt(text)).await;
        assert_eq!(heard(&mut stream).await, "answer", "{text}");
        assert_eq!(heard(&mut stream).await, "parting", "{text}");
    }
}

crate::on_every_runtime!(
    what_is_kept_outlasts_the_wait_for_room,
    however_a_request_ends_what_comes_after_follows_its_answer,
    a_notification_keeps_nothing_and_waits_for_nothing,
    however_a_request_ends_its_answer_is_there_before_what_it_kept_is_dropped,
);
