//! The end of the output: nothing that was accepted is lost, nothing is accepted afterwards.

use acp_sdk::{ConnectionBuilder, Peer, channel};
use shuttle::future::{block_on, spawn};
use shuttle::thread;

use crate::support::{Log, RawPeer, check, json, service, yield_times};

/// What ends the output.
#[derive(Clone, Copy, PartialEq)]
enum End {
    Finish,
    Close,
    Eof,
}

/// Two senders race with the end while a request is in progress whose handler sends too.
fn senders_race_with(end: End, high_water: usize) {
    let (near, far) = channel(1 << 10);
    let accepted = Log::default();
    let from_handler = accepted.clone();
    let service = service(move |ctx, _| {
        let accepted = from_handler.clone();
        async move {
            yield_times(1).await;
            send(ctx.peer(), "handler", 0, &accepted).await;
            Ok(json("answered"))
        }
    });
    let builder = ConnectionBuilder::new().high_water_bytes(high_water);
    let driver = builder.open(service, near);
    let peer = driver.handle().clone();
    let driver = spawn(driver);

    let senders = ["a", "b"].map(|sender| {
        let (peer, accepted) = (peer.clone(), accepted.clone());
        thread::spawn(move || {
            let mut refused = false;
            for number in 0..2 {
                let sent = block_on(send(&peer, sender, number, &accepted));
                assert!(!(refused && sent), "accepted after it was refused");
                refused |= !sent;
            }
        })
    });
    let ending = thread::spawn(move || match end {
        End::Finish => peer.close_output(),
        End::Close => peer.close(),
        End::Eof => {}
    });

    let received = Log::default();
    let log = received.clone();
    let mut far = RawPeer(far);
    let receiving = spawn(async move {
        far.send(r#"{"jsonrpc":"2.0","id":7,"method":"_ask"}"#)
            .await;
        if end == End::Eof {
            far.close().await;
        }
        while let Some(message) = far.receive().await {
            log.add(match message["method"].as_str() {
                Some(method) => format!("{method} {}", message["params"]),
                None => format!("response {}", message["id"]),
            });
        }
    });

    let ended = block_on(driver).expect("the driver does not panic");
    assert!(ended.is_ok(), "{ended:?}");
    block_on(receiving).expect("the peer does not panic");
    for task in senders.into_iter().chain([ending]) {
        task.join().expect("the thread does not panic");
    }
    for sender in ["a", "b", "handler"] {
        let of = |log: &Log| -> Vec<String> {
            let entries = log.entries().into_iter();
            entries.filter(|entry| entry.starts_with(sender)).collect()
        };
        assert_eq!(of(&received), of(&accepted), "written and accepted");
    }
    if end == End::Eof {
        // The request was read before the end, so it is answered before the output closes.
        assert_eq!(received.count("response 7"), 1);
    }
}

/// Sends a notification; returns whether it was accepted.
async fn send(peer: &Peer, sender: &str, number: u64, accepted: &Log) -> bool {
    let sent = peer.notify_ext(sender, Some(&json(number))).await.is_ok();
    if sent {
        accepted.add(format!("{sender} {number}"));
    }
    sent
}

#[test]
fn nothing_accepted_is_lost_when_the_output_is_finished() {
    check(|| senders_race_with(End::Finish, 1 << 10));
}

#[test]
fn nothing_accepted_is_lost_when_the_connection_is_closed() {
    check(|| senders_race_with(End::Close, 1 << 10));
}

#[test]
fn nothing_accepted_is_lost_at_the_end_of_the_input() {
    check(|| senders_race_with(End::Eof, 1 << 10));
}

/// Every sender waits for capacity, and the end wakes all that wait.
#[test]
fn no_sender_waits_for_ever() {
    check(|| senders_race_with(End::Finish, 1));
    check(|| senders_race_with(End::Close, 1));
}
