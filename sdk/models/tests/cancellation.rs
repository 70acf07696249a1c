//! Cancellation: a request is answered exactly once, whatever races with its answer.

use acp_sdk::service::Service;
use acp_sdk::{ConnectionBuilder, Error, channel};
use serde_json::Value;
use shuttle::future::{block_on, spawn};
use shuttle::thread;

use crate::support::{Log, RawPeer, check, json, service, yield_times};

const REQUEST: &str = r#"{"jsonrpc":"2.0","id":1,"method":"_work"}"#;
const CANCEL: &str = r#"{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":1}}"#;

/// Works for a while, and ends early when it is cancelled.
fn worker() -> impl Service {
    service(|ctx, _| async move {
        let work = std::pin::pin!(yield_times(2));
        let cancelled = std::pin::pin!(ctx.cancelled());
        Ok(json(select(work, cancelled).await))
    })
}

/// Ends only when it is cancelled.
fn waiter() -> impl Service {
    service(|ctx, _| async move {
        yield_times(1).await;
        ctx.cancelled().await;
        Ok(json(true))
    })
}

/// Waits for the first of two futures; returns whether that was the second.
async fn select(
    mut first: impl Future<Output = ()> + Unpin,
    mut second: impl Future<Output = ()> + Unpin,
) -> bool {
    use std::pin::Pin;
    use std::task::Poll;

    std::future::poll_fn(|cx| {
        if Pin::new(&mut first).poll(cx).is_ready() {
            return Poll::Ready(false);
        }
        Pin::new(&mut second).poll(cx).map(|()| true)
    })
    .await
}

/// The peer cancels a request, uses its id again when it has the answer, and then goes.
#[test]
fn an_incoming_request_is_answered_once() {
    check(|| {
        let (near, far) = channel(1 << 10);
        let driver = ConnectionBuilder::new().open(worker(), near);
        let peer = driver.handle().clone();
        let driver = spawn(driver);
        let closing = thread::spawn(move || peer.close_output());
        let mut far = RawPeer(far);
        block_on(async {
            for _ in 0..2 {
                far.send(REQUEST).await;
                far.send(CANCEL).await;
                let answer = far.receive().await;
                let Some(answer) = answer else {
                    // The output was finished before; then no answer can be sent.
                    return;
                };
                assert_eq!(answer["id"], 1, "{answer}");
                assert!(answer["result"].is_boolean(), "{answer}");
            }
            far.close().await;
            let more = far.receive().await;
            assert!(more.is_none(), "answered twice: {more:?}");
        });
        drop(far);
        closing.join().unwrap();
        block_on(driver).unwrap().unwrap();
    });
}

/// The same while the input ends: the end cancels the handler too.
#[test]
fn an_incoming_request_is_answered_once_at_the_end() {
    check(|| {
        let (near, far) = channel(1 << 10);
        let driver = ConnectionBuilder::new().open(worker(), near);
        let driver = spawn(driver);
        let mut far = RawPeer(far);
        let mut answers = Vec::new();
        block_on(async {
            far.send(REQUEST).await;
            far.send(CANCEL).await;
            far.close().await;
            while let Some(answer) = far.receive().await {
                answers.push(answer);
            }
        });
        block_on(driver).unwrap().unwrap();
        assert_eq!(answers.len(), 1, "{answers:?}");
        assert!(answers[0]["result"].is_boolean(), "{answers:?}");
    });
}

/// The cancellation reaches a handler that begins to wait for it at the same moment.
#[test]
fn a_cancellation_wakes_the_handler() {
    check(|| {
        let (near, far) = channel(1 << 10);
        let driver = ConnectionBuilder::new().open(waiter(), near);
        let driver = spawn(driver);
        let mut far = RawPeer(far);
        block_on(async {
            far.send(REQUEST).await;
            far.send(CANCEL).await;
            assert_eq!(far.receive().await.expect("an answer")["result"], true);
            far.close().await;
        });
        block_on(driver).unwrap().unwrap();
    });
}

/// A caller gives up while the answer arrives and the connection is closed.
fn caller_races_with(closing: bool) {
    let (near, far) = channel(1 << 10);
    let driver = ConnectionBuilder::new().open(worker(), near);
    let peer = driver.handle().clone();
    let driver = spawn(driver);
    let seen = Log::default();
    let log = seen.clone();
    let mut far = RawPeer(far);
    let playing = spawn(async move {
        while let Some(message) = far.receive().await {
            if message["method"] == "$/cancel_request" {
                log.add(format!("cancel {}", message["params"]["requestId"]));
            } else {
                let id = &message["id"];
                log.add(format!("request {id}"));
                far.send(format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{id}}}"#))
                    .await;
            }
        }
    });

    let callers = [1, 2].map(|patience| {
        let peer = peer.clone();
        thread::spawn(move || {
            block_on(async {
                let call = Box::pin(peer.call_ext("_work", None));
                let mut result = None;
                let called = Box::pin(async { result = Some(call.await) });
                let limit = std::pin::pin!(yield_times(patience));
                select(called, limit).await;
                match result {
                    None | Some(Ok(_) | Err(Error::Closed(_))) => {}
                    Some(Err(error)) => panic!("{error}"),
                }
            });
        })
    });
    if closing {
        peer.close();
    }
    for caller in callers {
        caller.join().unwrap();
    }
    peer.close();
    block_on(driver).unwrap().unwrap();
    block_on(playing).unwrap();
    for id in 0..2 {
        let (cancels, requests) = (
            seen.count(&format!("cancel {id}")),
            seen.count(&format!("request {id}")),
        );
        assert!(cancels <= requests && requests <= 1, "{seen:?}");
        if cancels == 1 {
            let request = seen.position(&format!("request {id}"));
            assert!(request < seen.position(&format!("cancel {id}")), "{seen:?}");
        }
    }
}

#[test]
fn an_outgoing_request_is_answered_or_cancelled() {
    check(|| caller_races_with(false));
}

#[test]
fn an_outgoing_request_ends_with_the_connection() {
    check(|| caller_races_with(true));
}

/// A caller without a limit always gets its answer, or the reason of the end.
#[test]
fn no_caller_waits_for_ever() {
    check(|| {
        let (near, far) = channel(1 << 10);
        let driver = ConnectionBuilder::new().open(worker(), near);
        let peer = driver.handle().clone();
        let driver = spawn(driver);
        let mut far = RawPeer(far);
        let playing = spawn(async move {
            if let Some(request) = far.receive().await {
                let id = &request["id"];
                far.send(format!(r#"{{"jsonrpc":"2.0","id":{id},"result":null}}"#))
                    .await;
            }
            far.close().await;
            while far.receive().await.is_some() {}
        });
        let callers = [(); 2].map(|()| {
            let peer = peer.clone();
            thread::spawn(move || block_on(peer.call_ext("_work", None)))
        });
        let mut answered = 0;
        for caller in callers {
            match caller.join().unwrap() {
                Ok(result) => {
                    assert_eq!(result.get(), Value::Null.to_string());
                    answered += 1;
                }
                Err(Error::Closed(_)) => {}
                Err(error) => panic!("{error}"),
            }
        }
        assert!(answered <= 1);
        block_on(playing).unwrap();
        block_on(driver).unwrap().unwrap();
    });
}
