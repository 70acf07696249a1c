//! The properties that fuzz targets and property tests check, as functions of bytes.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use serde_json::Value;
use serde_json::value::RawValue;
use tokio::io::AsyncWrite;

use crate::jsonrpc::{self, Incoming};
use crate::runtime::Json;
use crate::transcript::mask;
use crate::transport::{Frame, FrameDecoder, Framing};
use crate::v1::*;
use crate::{ConnectionBuilder, HandlerError, HandlerResult, Result};

/// Decodes the same frames whether `data` arrives in one piece or in pieces, none above the
/// limit. The first bytes of `data` select the pieces.
pub fn frames(data: &[u8]) {
    let Some(([limit, seed], input)) = data.split_first_chunk() else {
        return;
    };
    let (limit, mut step) = (usize::from(*limit), usize::from(*seed));
    let framing = [Framing::Auto, Framing::Lines, Framing::ContentLength][step % 3];
    let whole = cut(input, framing, limit, || input.len().max(1));
    let pieces = cut(input, framing, limit, || {
        // Any sequence will do that has small and large pieces.
        step = (step * 5 + 1) % 67;
        step + 1
    });
    assert_eq!(whole, pieces, "how the input is cut up must not matter");
    for text in whole.iter().filter_map(|frame| frame.as_ref().ok()) {
        assert!(!text.is_empty() && text.len() <= limit && text.trim_ascii() == &text[..]);
    }
}

fn cut(
    input: &[u8],
    framing: Framing,
    limit: usize,
    mut piece: impl FnMut() -> usize,
) -> Vec<Result<Vec<u8>, String>> {
    fn own(frame: Frame<'_>) -> Result<Vec<u8>, String> {
        match frame {
            Frame::Text(text) => Ok(text.to_vec()),
            Frame::TooLong(oversized) => Err(format!("{} bytes", oversized.bytes)),
            Frame::Bad(reason) => Err(reason),
        }
    }
    let mut frames = FrameDecoder::new(framing, limit);
    let (mut out, mut rest) = (Vec::new(), input);
    while !rest.is_empty() {
        let room = frames.room();
        let (now, later) = rest.split_at(piece().min(rest.len()).min(room.len()));
        room[..now.len()].copy_from_slice(now);
        frames.filled(now.len());
        rest = later;
        while let Some(frame) = frames.next() {
            out.push(own(frame));
        }
    }
    while let Some(frame) = frames.rest() {
        out.push(own(frame));
    }
    out
}

/// A line is classified as JSON-RPC defines it, and its masked form is JSON of the same shape
/// without its strings.
pub fn envelope(line: &[u8]) {
    let message = jsonrpc::read(line);
    let text = std::str::from_utf8(line).ok();
    let text = text.filter(|text| serde_json::from_str::<&RawValue>(text).is_ok());
    match (&message, text) {
        (Incoming::Invalid { code, .. }, Some(_)) => assert_eq!(*code, ErrorCode::INVALID_REQUEST),
        // An array is no message, whether it comes to its end or not.
        (Incoming::Invalid { code, .. }, None) if line.trim_ascii_start().starts_with(b"[") => {
            assert!([ErrorCode::PARSE_ERROR, ErrorCode::INVALID_REQUEST].contains(code));
        }
        (Incoming::Invalid { code, .. }, None) => assert_eq!(*code, ErrorCode::PARSE_ERROR),
        (_, None) => panic!("what is no JSON is no message"),
        (_, Some(text)) => {
            // Neither depth nor the size of numbers limits us, as they do a tree.
            if let Ok(tree) = serde_json::from_str::<Value>(text) {
                assert_eq!(kind(&tree), kind_of(&message), "{text}");
            }
        }
    }
    if let Some(text) = text {
        let shown = mask::everything(text);
        assert!(serde_json::from_str::<&RawValue>(&shown).is_ok(), "{shown}");
        assert_eq!(brackets(text), brackets(&shown), "{shown}");
        assert_eq!(
            mask::everything(&shown),
            shown,
            "masking twice changes nothing"
        );
    }
}

/// Returns the kind of message that a tree is.
fn kind(tree: &Value) -> &'static str {
    let has = |name: &str| tree.get(name).is_some();
    let has_method = tree.get("method").is_some_and(|method| !method.is_null());
    match (has_method, has("id"), has("result") || has("error")) {
        (true, true, _) => "request",
        (true, false, _) => "notification",
        // Without a result and an error it fails its call, unless params show that it is none.
        (false, true, answers) if !tree["id"].is_null() && (answers || !has("params")) => {
            "response"
        }
        (false, _, true) => "complaint",
        _ => "none",
    }
}

fn kind_of(message: &Incoming<'_>) -> &'static str {
    match message {
        Incoming::Request { .. } => "request",
        Incoming::Notification { .. } => "notification",
        Incoming::Response { .. } => "response",
        Incoming::UncorrelatedError { .. } => "complaint",
        Incoming::Invalid { .. } => "none",
    }
}

/// Returns the structure of a JSON text.
fn brackets(text: &str) -> String {
    let mut in_string = false;
    let mut escaped = false;
    let structure = text.chars().filter(|c| {
        if in_string {
            in_string = *c != '"' || escaped;
            escaped = *c == '\\' && !escaped;
            return false;
        }
        in_string = *c == '"';
        "{}[]:,".contains(*c)
    });
    structure.collect()
}

/// An agent reads `input` to its end without a panic, and answers every request once.
pub fn dispatch(input: &[u8]) {
    const MAX: usize = 4096;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build();
    let Ok(runtime) = runtime else { return };
    let sink = Sink::default();
    let output = sink.clone();
    let reader = std::io::Cursor::new(input.to_vec());
    runtime.block_on(async move {
        let driver = ConnectionBuilder::new()
            .max_message_bytes(MAX)
            .framing(Framing::Lines)
            .agent(Prober, (reader, sink));
        assert!(driver.await.is_ok(), "no input is an error of the streams");
    });
    let output = output
        .0
        .lock()
        .map(|bytes| bytes.clone())
        .unwrap_or_default();
    let answered = ids(&output, MAX * 100, |message| match message {
        Incoming::Response { id, .. } => Some(canonical(id)),
        Incoming::UncorrelatedError { .. } | Incoming::Notification { .. } => None,
        // The answer to a request whose id is null.
        Incoming::Invalid { code, .. } if *code == ErrorCode::INVALID_REQUEST => None,
        other => panic!("we wrote {other:?}"),
    });
    let asked = ids(input, MAX, |message| match message {
        Incoming::Request { id, .. } | Incoming::Invalid { id: Some(id), .. } => {
            Some(canonical(id)).filter(|id| id != "null")
        }
        _ => None,
    });
    let every = |counts: &Counts| counts.keys().cloned().collect::<Vec<_>>();
    assert_eq!(every(&asked), every(&answered), "every request is answered");
    for (id, asked) in asked {
        // A request whose id was still in use is refused under the id null.
        assert!(
            (1..=asked).contains(&answered[&id]),
            "{id}: {}",
            answered[&id]
        );
    }
}

type Counts = BTreeMap<String, usize>;

/// Returns an id with its escapes resolved.
fn canonical(id: &RawValue) -> String {
    match serde_json::from_str::<String>(id.get()) {
        Ok(text) => format!("{text:?}"),
        Err(_) => id.get().to_owned(),
    }
}

/// Counts how often `pick` finds each id in the lines of `bytes`.
fn ids(bytes: &[u8], max: usize, pick: impl Fn(&Incoming<'_>) -> Option<String>) -> Counts {
    let mut counts = Counts::new();
    for line in cut(bytes, Framing::Lines, max, || 64 << 10)
        .iter()
        .flatten()
    {
        if let Some(id) = pick(&jsonrpc::read(line)) {
            *counts.entry(id).or_default() += 1;
        }
    }
    counts
}

/// Collects written bytes.
#[derive(Clone, Default)]
struct Sink(Arc<Mutex<Vec<u8>>>);

impl AsyncWrite for Sink {
    fn poll_write(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<std::io::Result<usize>> {
        if let Ok(mut all) = self.0.lock() {
            all.extend_from_slice(bytes);
        }
        Poll::Ready(Ok(bytes.len()))
    }
    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Poll::Ready(Ok(()))
    }
    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

/// An agent that answers every request, with delays on request.
struct Prober;

impl Agent for Prober {
    async fn new_session(
        &self,
        _: &AgentContext,
        _: NewSessionRequest,
    ) -> HandlerResult<NewSessionResponse> {
        Ok(NewSessionResponse::new("s"))
    }

    async fn prompt(
        &self,
        cx: &AgentContext,
        request: PromptRequest,
    ) -> HandlerResult<PromptResponse> {
        for block in request.prompt {
            let update = SessionUpdate::AgentMessageChunk(ContentChunk::new(block));
            let note = SessionNotification::new(request.session_id.clone(), update);
            cx.client().session_update(note).await?;
        }
        cx.cancelled().await;
        Ok(PromptResponse::new(StopReason::Cancelled))
    }

    async fn cancel(&self, _: &AgentContext, _: CancelNotification) -> HandlerResult<()> {
        tokio::task::yield_now().await;
        Err(HandlerError::cancelled())
    }

    async fn ext_request(
        &self,
        _: &AgentContext,
        _: &str,
        params: Option<Json>,
    ) -> HandlerResult<Json> {
        tokio::task::yield_now().await;
        params.ok_or_else(|| HandlerError::invalid_params("", "nothing to repeat"))
    }
}

#[cfg(test)]
mod tests;
