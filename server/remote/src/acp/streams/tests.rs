//! Which message goes to which stream, and when.

use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Wake;

use super::*;
use crate::nodes::Pace as _;

fn drain(streams: &Streams, name: &Name, reader: u64) -> Vec<String> {
    let mut texts = Vec::new();
    while let Taken::Item(item) = streams.take(name, reader, Waker::noop()) {
        texts.push(String::from_utf8(item.message.to_vec()).unwrap());
    }
    texts
}

/// Clients open no stream for a child session.
#[test]
fn a_message_of_a_child_session_is_in_the_stream_of_its_parent() {
    const UPDATE: &str = r#"{"method":"session/update","params":{"sessionId":"child","_meta":{"acp-sdk":{"eventId":3,"parentSessionId":"s"}}}}"#;
    const ASK: &str = r#"{"id":1,"method":"session/request_permission","params":{"sessionId":"child","_meta":{"acp-sdk":{"parentSessionId":"s"}}}}"#;
    let streams = Streams::new(EndpointSettings::default(), true);
    let own = Name::Session("s".into());
    let reader = streams.open(&own, None).unwrap();
    for message in [UPDATE, ASK] {
        streams.route(message.into()).unwrap();
    }
    assert_eq!(drain(&streams, &own, reader), [UPDATE, ASK]);
}

#[derive(Default)]
struct Woken(AtomicBool);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

fn update(number: u64) -> Bytes {
    let meta = format!(r#"{{"acp-sdk":{{"eventId":{number}}}}}"#);
    let params = format!(r#"{{"sessionId":"s","_meta":{meta}}}"#);
    format!(r#"{{"method":"session/update","params":{params}}}"#).into()
}

/// Streams of a client that has joined a session of another node.
fn joined_elsewhere() -> Arc<Streams> {
    let settings = EndpointSettings {
        stream_bytes: 100,
        ..EndpointSettings::default()
    };
    let streams = Streams::new(settings, true);
    assert!(streams.expect("1", "session/load", Some("s")));
    streams.route(r#"{"id":1,"result":{}}"#.into()).unwrap();
    streams
}

#[test]
fn updates_of_a_session_of_another_node_wait_for_its_reader() {
    const ASK: &str =
        r#"{"id":1,"method":"session/request_permission","params":{"sessionId":"s"}}"#;
    let streams = joined_elsewhere();
    let woken = Arc::new(Woken::default());
    let waker = Waker::from(woken.clone());
    let was_woken = || woken.0.swap(false, Ordering::Relaxed);
    assert!(streams.holds(&update(1), &waker), "nobody reads");
    assert!(!streams.holds(ASK.as_bytes(), &waker), "it is kept");
    assert!(!was_woken());
    let own = Name::Session("s".into());
    let reader = streams.open(&own, None).unwrap();
    assert!(was_woken());
    for number in [1, 2] {
        assert!(!streams.holds(&update(number), &waker));
        streams.route(update(number)).unwrap();
    }
    assert!(streams.holds(&update(3), &waker), "the reader is slow");
    assert!(!was_woken());
    assert_eq!(drain(&streams, &own, reader).len(), 2);
    assert!(was_woken());
    assert!(!streams.holds(&update(3), &waker));
    streams.close_reader(&own, reader);
    assert!(streams.holds(&update(3), &waker));
    streams.close();
    assert!(was_woken());
}

#[test]
fn answers_of_another_node_are_behind_its_updates() {
    let streams = joined_elsewhere();
    let connection = streams.open(&Name::Connection, None).unwrap();
    let own = Name::Session("s".into());
    let reader = streams.open(&own, None).unwrap();
    drain(&streams, &Name::Connection, connection);
    for (id, method) in [("2", "session/prompt"), ("3", "session/close")] {
        assert!(streams.expect(id, method, Some("s")));
        streams.route(update(1)).unwrap();
        let answer = format!(r#"{{"id":{id},"result":{{}}}}"#);
        streams.route(answer.clone().into()).unwrap();
        let sent = drain(&streams, &own, reader);
        assert_eq!(sent.len(), 2, "{method}");
        assert_eq!(sent[1], answer, "{method}");
    }
    // The client has left it, and may end its reader.
    assert!(streams.expect("4", "session/list", Some("s")));
    let answer = r#"{"id":4,"result":{}}"#;
    streams.route(answer.into()).unwrap();
    assert_eq!(drain(&streams, &Name::Connection, connection), [answer]);
}

#[test]
fn what_a_reader_of_another_nodes_session_was_sent_cannot_be_sent_again() {
    let streams = joined_elsewhere();
    let own = Name::Session("s".into());
    let reader = streams.open(&own, None).unwrap();
    streams.route(update(7)).unwrap();
    assert!(streams.can_continue(&own, "6".parse().ok()), "it waits");
    drain(&streams, &own, reader);
    assert!(!streams.can_continue(&own, "6".parse().ok()));
    assert!(streams.can_continue(&own, "7".parse().ok()));
    assert!(streams.can_continue(&own, None));
    assert!(streams.can_continue(&Name::Connection, "6".parse().ok()));
}

#[test]
fn what_a_reader_was_sent_of_a_replay_of_another_node_cannot_be_sent_again() {
    let streams = Streams::new(EndpointSettings::default(), true);
    let own = Name::Session("s".into());
    let reader = streams.open(&own, None).unwrap();
    assert!(streams.expect("1", "session/load", Some("s")));
    assert!(streams.can_continue(&own, "0".parse().ok()));
    streams.route(update(1)).unwrap();
    assert!(streams.can_continue(&own, "0".parse().ok()), "it waits");
    drain(&streams, &own, reader);
    assert!(!streams.can_continue(&own, "0".parse().ok()));
}

/// Its client may open the stream only then.
#[test]
fn a_replay_of_another_node_precedes_the_answer_where_nobody_reads_the_session() {
    let streams = Streams::new(EndpointSettings::default(), true);
    let connection = streams.open(&Name::Connection, None).unwrap();
    assert!(streams.expect("1", "session/resume", Some("s")));
    assert!(!streams.holds(&update(1), Waker::noop()));
    streams.route(update(1)).unwrap();
    let answer = r#"{"id":1,"result":{}}"#;
    streams.route(answer.into()).unwrap();
    let sent = drain(&streams, &Name::Connection, connection);
    assert_eq!(sent.len(), 2);
    assert_eq!(sent[1], answer);
    assert!(streams.holds(&update(2), Waker::noop()));
}

/// Two streams have no order between them.
#[test]
fn a_reader_that_comes_during_a_join_is_sent_what_follows_its_answer() {
    const UPDATE: &str = r#"{"method":"session/update","params":{"sessionId":"s"}}"#;
    const ANSWER: &str = r#"{"id":1,"result":{}}"#;
    for until in [Redirected::UntilRead, Redirected::UntilAnswered] {
        let streams = Streams::new(EndpointSettings::default(), true);
        assert!(streams.expect("1", "session/resume", Some("s")));
        streams.redirect_until("s", until);
        let connection = streams.open(&Name::Connection, None).unwrap();
        let own = Name::Session("s".into());
        streams.route(UPDATE.into()).unwrap();
        let reader = streams.open(&own, None).unwrap();
        for message in [UPDATE, ANSWER, UPDATE] {
            streams.route(message.into()).unwrap();
        }
        assert_eq!(
            drain(&streams, &Name::Connection, connection),
            [UPDATE, UPDATE, ANSWER],
            "{until:?}"
        );
        assert_eq!(drain(&streams, &own, reader), [UPDATE], "{until:?}");
    }
}
