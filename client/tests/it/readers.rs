//! What waits for the readers of events: questions to a person, and outcomes that say so.

use std::time::Duration;

use acp_client::{
    Client, Decision, Event, Events, PermissionRequest, Permissions, Reason, Session, Turn,
};
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::agent::{Raw, TestAgent, connect, within};

/// Longer than `reader_timeout`.
const LONG: Duration = Duration::from_secs(11);

/// A person who allows everything that is shown.
struct Person;

impl Permissions for Person {
    async fn decide(&self, _: &PermissionRequest) -> Decision {
        Decision::Allow
    }

    fn in_order(&self) -> bool {
        true
    }
}

async fn session() -> (Client, Raw, Session) {
    let (client, mut raw) = Raw::connect(Client::builder().permissions(Person)).await;
    let (session, ()) = tokio::join!(
        client.new_session("/"),
        raw.answer("session/new", json!({"sessionId": "s"}))
    );
    (client, raw, session.unwrap())
}

/// Sends a prompt, and answers it with some text and a question.
async fn asked(session: &Session, raw: &mut Raw, texts: &[&str]) -> Turn {
    let turn = session.prompt("hi").await.unwrap();
    raw.next().await;
    for text in texts {
        raw.say("s", text).await;
    }
    let option = |id: &str| json!({"optionId": id, "name": id, "kind": id});
    let options = [option("allow_once"), option("reject_once")];
    let params = json!({"sessionId": "s", "toolCall": {"toolCallId": "c"}, "options": options});
    let method = "session/request_permission";
    raw.send(json!({"jsonrpc": "2.0", "id": "ask", "method": method, "params": params}))
        .await;
    turn
}

/// Awaits the answer to the question; returns the option.
async fn answer(raw: &mut Raw) -> Value {
    let mut answer = raw.next().await;
    assert_eq!(answer["id"], "ask", "{answer}");
    answer["result"]["outcome"]["optionId"].take()
}

fn reason(events: &mut Events) -> Option<Reason> {
    let mut events = std::iter::from_fn(|| events.next_ready());
    events.find_map(|event| match event.event {
        Event::Permission(answered) => answered.reason.map(|reason| *reason),
        _ => None,
    })
}

#[tokio::test(start_paused = true)]
async fn a_question_that_nobody_reads_is_rejected_in_time() {
    let (_client, mut raw, session) = session().await;
    let mut events = session.events();
    let _turn = asked(&session, &mut raw, &["text"]).await;
    assert_eq!(answer(&mut raw).await, "reject_once");
    let reason = reason(&mut events).expect("the reader learns why");
    assert_eq!(reason, Reason::NotRead(Duration::from_secs(10)));
    let expected = "the events before the request were not read for 10s, so nobody was asked";
    assert_eq!(reason.to_string(), expected);
}

/// The event of the answer has no place, and the answer does not wait for it.
#[tokio::test(start_paused = true)]
async fn a_question_is_answered_although_its_reader_has_no_room() {
    let (_client, mut raw, session) = session().await;
    let mut events = session.events();
    let text = "x".repeat(100_000);
    let mut turn = asked(&session, &mut raw, &[text.as_str(); 20]).await;
    turn.next_ready();
    // The connection holds the question for 30 s, behind updates that have no place.
    tokio::time::sleep(Duration::from_secs(30) + LONG).await;
    let answered = timeout(Duration::from_secs(1), answer(&mut raw)).await;
    assert_eq!(answered.unwrap(), "reject_once");
    drop(turn);
    assert!(events.next_ready().is_some());
}

/// A person who reads slowly is waited for.
#[tokio::test(start_paused = true)]
async fn a_question_waits_for_a_reader_that_goes_on() {
    let (_client, mut raw, session) = session().await;
    let mut events = session.events();
    let turn = asked(&session, &mut raw, &["one", "two"]).await;
    let mut outcome = std::pin::pin!(turn.outcome());
    assert!(timeout(LONG / 2, outcome.as_mut()).await.is_err());
    let reading = tokio::spawn(async move {
        while events.next().await.is_some() {
            tokio::time::sleep(LONG / 2).await;
        }
    });
    assert_eq!(answer(&mut raw).await, "allow_once");
    reading.abort();
}

#[tokio::test(start_paused = true)]
async fn an_outcome_may_wait_for_the_readers_of_events() {
    let client = connect(TestAgent::default(), Client::builder()).await;
    let session = within(client.new_session("/")).await.unwrap();
    let mut events = session.events();
    let turn = session.prompt("work").await.unwrap();
    let mut outcome = std::pin::pin!(turn.outcome_when_read());
    assert!(timeout(LONG / 2, outcome.as_mut()).await.is_err());
    loop {
        let event = within(events.next()).await.unwrap().event;
        if let Event::TurnEnded { .. } = event {
            break;
        }
    }
    let shown = timeout(LONG / 2, outcome.as_mut()).await;
    assert!(shown.is_err(), "the last event may be in work");
    let outcome = tokio::select! {
        event = events.next() => panic!("{event:?}"),
        outcome = outcome => outcome.unwrap(),
    };
    assert_eq!(outcome.text, "One.\n\nTwo.");

    // One that reads nothing is not waited for for ever, nor one that is gone.
    let turn = session.prompt("again").await.unwrap();
    let begun = tokio::time::Instant::now();
    assert_eq!(
        within(turn.outcome_when_read()).await.unwrap().text,
        "again"
    );
    assert_eq!(begun.elapsed(), Duration::from_secs(10));
    drop(events);
    let turn = session.prompt("again").await.unwrap();
    assert_eq!(
        within(turn.outcome_when_read()).await.unwrap().text,
        "again"
    );
    assert_eq!(begun.elapsed(), Duration::from_secs(10));
}
