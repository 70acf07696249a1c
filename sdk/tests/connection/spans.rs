//! The spans of requests: one each, with all that is needed to find it in a log.
//!
//! These tests need a runtime of one thread: the subscriber belongs to the thread.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::{Arc, Mutex};

use serde_json::json;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

use super::support::{TestAgent, TestClient, agent, client, pair, prompt};

type Fields = BTreeMap<&'static str, String>;

/// Keeps the fields of every span, and the spans that events stood in.
#[derive(Clone, Default)]
struct Recorder {
    spans: Arc<Mutex<Vec<Fields>>>,
    entered: Arc<Mutex<Vec<u64>>>,
    events_in: Arc<Mutex<Vec<u64>>>,
}

struct Collect<'a>(&'a mut Fields);

impl Visit for Collect<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.0.insert(field.name(), format!("{value:?}"));
    }
    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.insert(field.name(), value.to_owned());
    }
}

impl Subscriber for Recorder {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with("acp_sdk::request") || metadata.target() == "test"
    }
    fn new_span(&self, span: &Attributes<'_>) -> Id {
        let mut fields = Fields::new();
        span.record(&mut Collect(&mut fields));
        let mut spans = self.spans.lock().unwrap();
        spans.push(fields);
        Id::from_u64(spans.len() as u64)
    }
    fn record(&self, span: &Id, values: &Record<'_>) {
        let index = span.into_u64() as usize - 1;
        values.record(&mut Collect(&mut self.spans.lock().unwrap()[index]));
    }
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn event(&self, _: &Event<'_>) {
        let span = self.entered.lock().unwrap().last().copied();
        self.events_in.lock().unwrap().extend(span);
    }
    fn enter(&self, span: &Id) {
        self.entered.lock().unwrap().push(span.into_u64());
    }
    fn exit(&self, _: &Id) {
        self.entered.lock().unwrap().pop();
    }
}

impl Recorder {
    /// The fields of each span; durations are checked to be there and left out.
    fn spans(&self) -> Vec<String> {
        let text = |fields: &Fields| {
            assert!(fields["duration_us"].parse::<u64>().unwrap() < 60_000_000);
            let rest = fields.iter().filter(|(name, _)| **name != "duration_us");
            rest.map(|(name, value)| format!("{name}={value}"))
                .collect::<Vec<_>>()
                .join(" ")
        };
        self.spans.lock().unwrap().iter().map(text).collect()
    }
}

/// Records the spans of this thread from now on.
///
/// Tracing may decide that a span is disabled while another test, without a subscriber, uses it for
/// the first time. So requests in both directions come first, until one of them is recorded.
async fn record() -> (Recorder, tracing::subscriber::DefaultGuard) {
    for _ in 0..100 {
        let recorder = Recorder::default();
        let guard = tracing::subscriber::set_default(recorder.clone());
        tracing::callsite::rebuild_interest_cache();
        let (handle, _drivers) = pair(TestAgent::default(), TestClient::default());
        handle.prompt(prompt("s", "log")).await.unwrap();
        let recorded = recorder.spans.lock().unwrap().len();
        drop((handle, _drivers, guard));
        if recorded > 0 {
            let recorder = Recorder::default();
            let guard = tracing::subscriber::set_default(recorder.clone());
            tracing::callsite::rebuild_interest_cache();
            return (recorder, guard);
        }
    }
    panic!("tracing records no span of this thread");
}

#[tokio::test]
async fn requests_of_the_peer_have_a_span_each() {
    let (recorder, _guard) = record().await;
    let (mut raw, _driver) = agent(TestAgent::default());
    let prompt = |text: &str| json!({"sessionId": "s", "prompt": [{"type": "text", "text": text}]});
    for (id, method, params) in [
        (json!("a"), "session/prompt", prompt("log")),
        (json!(-2), "session/prompt", prompt("panic")),
        (json!(3), "session/prompt", json!({})),
        (json!(4), "no/such", json!(null)),
    ] {
        raw.send(json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}))
            .await;
        while raw.expect().await["id"] != id {}
    }
    assert_eq!(
        recorder.spans(),
        [
            r#"direction=in id="a" method=session/prompt outcome=ok session=s"#,
            "code=-32603 direction=in id=-2 method=session/prompt outcome=error session=s",
            "code=-32602 direction=in id=3 method=session/prompt outcome=error",
            "code=-32601 direction=in id=4 method=no/such outcome=error",
        ]
    );
    assert_eq!(
        *recorder.events_in.lock().unwrap(),
        [1],
        "the handler's log"
    );
}

#[tokio::test]
async fn requests_to_the_peer_have_a_span_each() {
    let (recorder, _guard) = record().await;
    let (handle, mut raw, driver) = client(TestClient::default());
    let calls: Vec<_> = (0..4)
        .map(|_| {
            let handle = handle.clone();
            tokio::spawn(async move { handle.prompt(prompt("s", "x")).await })
        })
        .collect();
    for _ in &calls {
        raw.expect().await;
    }
    raw.send(json!({"jsonrpc": "2.0", "id": 0, "result": {"stopReason": "end_turn"}}))
        .await;
    raw.send(json!({"jsonrpc": "2.0", "id": 1, "error": {"code": -32000, "message": "who?"}}))
        .await;
    calls[2].abort();
    assert_eq!(raw.expect().await["method"], "$/cancel_request");
    raw.close_writing().await;
    driver.await.unwrap().unwrap();
    for call in calls {
        let _ = call.await;
    }
    let call = "method=session/prompt outcome";
    assert_eq!(
        recorder.spans(),
        [
            format!("direction=out id=0 {call}=ok session=s"),
            format!("code=-32000 direction=out id=1 {call}=error session=s"),
            format!("direction=out id=2 {call}=dropped session=s"),
            format!("direction=out id=3 {call}=closed session=s"),
        ]
    );
}
