//! Order: the notifications of a session are handled one after the other, and a response resolves
//! its call after the notifications that the peer wrote before it.

use std::sync::Arc;

use acp_sdk::service::Service;
use acp_sdk::v1::{PromptRequest, methods};
use acp_sdk::{ConnectionBuilder, Context, channel};
use serde_json::Value;
use shuttle::future::{block_on, spawn};

use crate::support::{Log, RawPeer, check, json, service, yield_times};

fn notification(session: &str, number: u64) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","method":"_n","params":{{"sessionId":"{session}","n":{number}}}}}"#
    )
}

fn response(request: &Value, result: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":{},"result":{result}}}"#,
        request["id"]
    )
}

/// Records begin and end of each notification. The handler of number 0 calls the peer.
async fn handle(ctx: Context, params: Value, log: Log) {
    let (session, number) = (params["sessionId"].as_str().unwrap(), &params["n"]);
    log.add(format!("begin {session} {number}"));
    if *number == 0 {
        let called = ctx.peer().call_ext("_nested", None).await;
        log.add(format!("nested {}", called.is_ok()));
    } else {
        yield_times(2).await;
    }
    log.add(format!("end {session} {number}"));
}

/// Returns a service whose handlers record what they handle, and return null.
fn recording(log: &Log) -> impl Service {
    let log = log.clone();
    service(move |ctx, params| {
        let log = log.clone();
        async move {
            handle(ctx, params, log).await;
            Ok(json(Value::Null))
        }
    })
}

/// Answers a prompt of session `a` between notifications, and a nested call whenever it comes.
async fn play(mut far: RawPeer, first: u64) {
    let mut answered = 0;
    // Notification 0 makes one call more.
    let calls = if first == 0 { 3 } else { 2 };
    while answered < calls {
        let request = far.receive().await.expect("a request");
        if request["method"] == "session/prompt" {
            for message in [notification("a", first), notification("b", 10)] {
                far.send(message).await;
            }
            far.send(notification("a", first + 1)).await;
            far.send(response(&request, r#"{"stopReason":"end_turn"}"#))
                .await;
            far.send(notification("a", first + 2)).await;
        } else {
            far.send(response(&request, "null")).await;
        }
        answered += 1;
    }
    far.close().await;
    while far.receive().await.is_some() {}
}

fn calls_and_notifications(first: u64) {
    let (near, far) = channel(1 << 12);
    let log = Log::default();
    let service = recording(&log);
    let driver = ConnectionBuilder::new().open(service, near);
    let peer = driver.handle().clone();
    let driver = spawn(driver);
    let playing = spawn(play(RawPeer(far), first));

    // A call that names no session waits for the notifications of all.
    let (other, resolved) = (peer.clone(), log.clone());
    let call = spawn(async move {
        other.call_ext("_any", None).await.unwrap();
        resolved.add("any resolved");
    });
    let prompt = PromptRequest::new("a", Vec::new());
    block_on(peer.call::<methods::Prompt>(&prompt)).unwrap();
    log.add("prompt resolved");
    // While the handler of number 0 has a call open, its session holds no response.
    let before = if first == 0 { 0..0 } else { first..first + 2 };
    for number in before {
        let end = log.position(&format!("end a {number}"));
        assert!(end < log.position("prompt resolved"), "{log:?}");
    }
    block_on(call).unwrap();
    block_on(playing).unwrap();
    block_on(driver).unwrap().unwrap();

    // Each one was handled, one after the other.
    let of_a: Vec<String> = log.entries();
    let of_a: Vec<&String> = of_a.iter().filter(|entry| entry.contains(" a ")).collect();
    let expected: Vec<String> = (first..first + 3)
        .flat_map(|number| [format!("begin a {number}"), format!("end a {number}")])
        .collect();
    assert_eq!(of_a, expected.iter().collect::<Vec<_>>());
    assert_eq!(log.count("end b 10"), 1);
}

#[test]
fn a_response_follows_the_notifications_before_it() {
    check(|| calls_and_notifications(1));
}

#[test]
fn a_handler_that_calls_the_peer_is_not_waited_for_by_its_own_response() {
    check(|| calls_and_notifications(0));
}

fn request(id: u64, session: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"_r","params":{{"sessionId":"{session}","n":{id}}}}}"#
    )
}

/// Requests begin in the order of arrival, behind the notifications before them and before those
/// after them. Records only begin and end, for the handlers are the same.
#[test]
fn requests_begin_in_the_order_of_arrival() {
    check(|| {
        let (near, far) = channel(1 << 12);
        let log = Log::default();
        let service = recording(&log);
        let driver = ConnectionBuilder::new().open(service, near);
        let driver = spawn(driver);
        let mut far = RawPeer(far);
        block_on(async {
            for message in [
                notification("a", 1),
                request(2, "a"),
                request(3, "a"),
                notification("a", 4),
                request(5, "a"),
            ] {
                far.send(message).await;
            }
            for _ in 0..3 {
                assert!(far.receive().await.is_some());
            }
            far.close().await;
            assert!(far.receive().await.is_none());
        });
        block_on(driver).unwrap().unwrap();
        let begun: Vec<String> = log.entries();
        let begun: Vec<&String> = begun
            .iter()
            .filter(|entry| entry.starts_with("begin"))
            .collect();
        let expected: Vec<String> = (1..=5).map(|n| format!("begin a {n}")).collect();
        assert_eq!(begun, expected.iter().collect::<Vec<_>>());
        assert!(
            log.position("end a 1") < log.position("begin a 2"),
            "{log:?}"
        );
        assert!(
            log.position("end a 4") < log.position("begin a 5"),
            "{log:?}"
        );
    });
}

/// Whoever makes room in a full queue wakes the reader: the second notification waits for a request
/// behind it, so a lost wake-up is a deadlock.
#[test]
fn a_paused_reader_reads_on() {
    check(|| {
        let (near, far) = channel(1 << 12);
        let gate = Arc::new(tokio::sync::Notify::new());
        let service = service(move |_, params: Value| {
            let gate = gate.clone();
            async move {
                match params["n"].as_u64() {
                    Some(1) => yield_times(1).await,
                    Some(2) => gate.notified().await,
                    _ => gate.notify_one(),
                }
                Ok(json(Value::Null))
            }
        });
        let driver = ConnectionBuilder::new()
            .max_queued_bytes(1)
            .open(service, near);
        let driver = spawn(driver);
        let mut far = RawPeer(far);
        block_on(async {
            for message in [notification("a", 1), notification("a", 2), request(3, "b")] {
                far.send(message).await;
            }
            assert!(far.receive().await.is_some());
            far.close().await;
            assert!(far.receive().await.is_none());
        });
        block_on(driver).unwrap().unwrap();
    });
}
