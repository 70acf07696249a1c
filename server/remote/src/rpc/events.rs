//! A session's events as a subscription, and by long poll.

use std::sync::Arc;
use std::time::Duration;

use acp_sdk::Json;
use acp_sdk::v1::SessionId;
use acp_server::event::{Event, EventBody, TurnEvent};
use acp_server::usage;
use acp_server::{Events, Received, Session};
use jsonrpsee::core::RegisterMethodError;
use jsonrpsee::types::{ErrorObjectOwned, Params};
use jsonrpsee::{Extensions, PendingSubscriptionSink, RpcModule, SubscriptionSink};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::time::{Instant, timeout_at};

use super::context::{Answer, Context, parse, read, refusal};
use super::nodes;
use super::request_id::RequestId;
use super::typed_method::register as method;

/// The longest time that a long poll waits.
const LONGEST_WAIT: Duration = Duration::from_secs(60);

/// The most events of one answer to a long poll.
const MOST_EVENTS: usize = 1_000;

/// The most events that are read for one answer, including those that are left out of it.
const MOST_READ: usize = 20_000;

pub(super) fn register(module: &mut RpcModule<()>) -> Result<(), RegisterMethodError> {
    module.register_subscription(
        "session_subscribe",
        "session_event",
        "session_unsubscribe",
        async |params, pending, _, extensions| subscribe(params, pending, extensions).await,
    )?;
    method(module, "session_events", poll)
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Subscribe {
    session_id: SessionId,
    /// The last event that the client has.
    #[serde(default)]
    after: u64,
}

/// Sends the events after a number, and each further one, at the client's speed.
async fn subscribe(
    params: Params<'static>,
    pending: PendingSubscriptionSink,
    extensions: Extensions,
) {
    let opened = async {
        let context = Context::of(&extensions)?;
        let params: Subscribe = read(&params)?;
        // Of another node it is a poll.
        let session = match poll_elsewhere(&context, &params, Duration::ZERO).await {
            Some(polled) => polled.map(|_| None),
            None => context
                .session("session/load", &params.session_id)
                .await
                .map(Some),
        };
        session.map(|session| (context, session, params))
    };
    let (context, session, params) = match opened.await {
        Ok(opened) => opened,
        Err(error) => return pending.reject(error).await,
    };
    // The client may have gone.
    let Ok(sink) = pending.accept().await else {
        return;
    };
    let Some(session) = session else {
        return follow_elsewhere(&context, params, &sink).await;
    };
    let mut events = session.subscribe(params.after);
    loop {
        let event = tokio::select! {
            biased;
            event = events.next() => event.map(Some),
            () = session.closed() => Ok(None),
            () = sink.closed() => return,
        };
        let event = match event {
            Ok(Some(received)) => to_json(&session, &received).await.map(Some),
            Ok(None) => Ok(None),
            Err(error) => Err(error),
        };
        let (value, ended) = match event {
            Ok(Some(value)) => (value, false),
            // The session has left memory. Whoever subscribes again opens it.
            Ok(None) => (json!({ "type": "closed", "sessionId": session.id() }), true),
            Err(error) => (
                json!({ "type": "failed", "message": error.to_string() }),
                true,
            ),
        };
        let Ok(message) = serde_json::value::to_raw_value(&value) else {
            return;
        };
        if sink.send(message).await.is_err() || ended {
            return;
        }
    }
}

/// Polls a session that another node has; `None` if none has it.
async fn poll_elsewhere(
    context: &Context,
    of: &Subscribe,
    wait: Duration,
) -> Option<Answer<Polled>> {
    let params = json!({
        "sessionId": of.session_id,
        "after": of.after,
        "waitMs": wait.as_millis() as u64,
    });
    let params = Json::new(&params).ok()?;
    let polled = nodes::call(context, "session_events", &params).await?;
    Some(polled.and_then(|polled| parse(&polled)))
}

/// Sends the events of a session that another node has. Its end is that of the subscription.
async fn follow_elsewhere(context: &Context, mut of: Subscribe, sink: &SubscriptionSink) {
    loop {
        let polled = tokio::select! {
            polled = poll_elsewhere(context, &of, LONGEST_WAIT) => polled,
            () = sink.closed() => return,
        };
        let (events, ended) = match polled {
            Some(Ok(polled)) => {
                of.after = polled.last_event_id;
                (polled.events, false)
            }
            Some(Err(error)) => {
                let message = error.message();
                (vec![json!({ "type": "failed", "message": message })], true)
            }
            // Whoever subscribes again finds it.
            None => (
                vec![json!({ "type": "closed", "sessionId": of.session_id })],
                true,
            ),
        };
        for event in events {
            let Ok(message) = serde_json::value::to_raw_value(&event) else {
                return;
            };
            if sink.send(message).await.is_err() {
                return;
            }
        }
        if ended {
            return;
        }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Poll {
    session_id: SessionId,
    #[serde(default)]
    after: u64,
    /// How long to wait for a first event, in milliseconds.
    #[serde(default)]
    wait_ms: u64,
    /// Which events the answer has; absent: all.
    only: Option<Only>,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Only {
    /// The start and end of turns and child sessions, and questions with their answers.
    Turns,
}

impl Only {
    fn is_left_out(self, received: &Received) -> bool {
        let Self::Turns = self;
        let Received::Event(event) = received else {
            return false;
        };
        match &event.body {
            EventBody::Turn(event) => matches!(event, TurnEvent::ChildUpdate { .. }),
            EventBody::Update(_) | EventBody::Unknown(_) => true,
        }
    }
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Polled {
    session_id: SessionId,
    events: Vec<Value>,
    /// The cursor of the next poll.
    last_event_id: u64,
}

/// Answers with the events after a number; without any, waits for one.
async fn poll(context: Arc<Context>, params: Poll) -> Answer<Polled> {
    let session = context.session("session/load", &params.session_id).await?;
    let wait = Duration::from_millis(params.wait_ms).min(LONGEST_WAIT);
    // Even a timer that is over takes a millisecond.
    let deadline = (!wait.is_zero()).then(|| Instant::now() + wait);
    let mut events = session.subscribe(params.after);
    let mut polled = Polled {
        session_id: params.session_id,
        events: Vec::new(),
        last_event_id: params.after,
    };
    let (mut bytes, mut read) = (0, 0);
    let is_full = |polled: &Polled, bytes| {
        polled.events.len() >= MOST_EVENTS || bytes >= context.message_bytes / 4
    };
    while !is_full(&polled, bytes) && read < MOST_READ {
        let is_first = polled.events.is_empty();
        let deadline = deadline.filter(|_| is_first);
        let Some(received) = next(&mut events, &session, deadline).await? else {
            break;
        };
        polled.last_event_id = match &received {
            Received::Event(event) => event.number,
            Received::Gap(last) => *last,
        };
        read += 1;
        if params.only.is_some_and(|only| only.is_left_out(&received)) {
            tokio::task::consume_budget().await;
            continue;
        }
        let event = to_json(&session, &received).await;
        let event = event.map_err(|error| failed(&error))?;
        bytes += acp_sdk::json::encoded_len(&event);
        polled.events.push(event);
    }
    Ok(polled)
}

/// Returns the next event, waiting for it only with a deadline.
async fn next(
    events: &mut Events,
    session: &Session,
    deadline: Option<Instant>,
) -> Answer<Option<Received>> {
    let received = match deadline {
        None => events.next_now().await,
        Some(deadline) => tokio::select! {
            biased;
            received = timeout_at(deadline, events.next()) => match received {
                Ok(received) => received.map(Some),
                // Those that there are already, even without any time to wait.
                Err(_) => events.next_now().await,
            },
            () = session.closed() => Ok(None),
        },
    };
    received.map_err(|error| failed(&error))
}

fn failed(error: &acp_server::Error) -> ErrorObjectOwned {
    refusal(&acp_sdk::HandlerError::internal(error.to_string()))
}

/// Returns an event with its number, a question with the id to answer it by, and the end of a turn
/// with its duration and cost.
///
/// # Errors
///
/// The store's, at the end of a turn whose events are in no memory.
async fn to_json(session: &Session, received: &Received) -> acp_server::Result<Value> {
    let Event {
        number, time, body, ..
    } = match received {
        Received::Event(event) => event,
        Received::Gap(last) => return Ok(json!({ "type": "gap", "eventId": last })),
    };
    let mut value = match body {
        EventBody::Update(update) => json!({ "type": "update", "update": update }),
        EventBody::Turn(event) => of_turn(event),
        EventBody::Unknown(json) => json!({ "type": "unknown", "event": json }),
    };
    value["eventId"] = json!(number);
    if let Some(time) = time {
        value["time"] = json!(acp_server::internal::clock::text_of(*time));
    }
    if let EventBody::Turn(event) = body
        && let Some(question) = event.facts().question
    {
        let id = RequestId {
            session: session.id().clone(),
            question,
        };
        value["requestId"] = json!(id.to_string());
    }
    if let EventBody::Turn(TurnEvent::TurnEnded { turn, .. }) = body
        && let Some(turn) = usage::of_turn(session, *turn, *number).await?
    {
        value["durationMs"] = json!(turn.duration());
        value["costs"] = json!(turn.costs);
    }
    Ok(value)
}

fn of_turn(event: &TurnEvent) -> Value {
    let mut value = json!(event);
    if let Value::Object(members) = &mut value
        && let Some(kind) = members.remove("event")
    {
        members.insert("type".to_owned(), kind);
    }
    value
}

#[cfg(test)]
mod tests {
    use acp_reference_agent::Reference;
    use acp_server::Server;
    use futures_util::FutureExt as _;

    use super::*;
    use crate::EndpointSettings;
    use crate::caller::Caller;

    #[tokio::test]
    async fn a_poll_without_a_wait_is_answered_at_once() {
        let server = Server::new(Reference);
        let session = server.create_session("/w").await.unwrap();
        let caller = Caller::of(&axum::http::Extensions::new());
        let context = Context::new(server, "/rpc".into(), &EndpointSettings::default(), caller);
        let params = Poll {
            session_id: session.id().clone(),
            after: session.last_event(),
            wait_ms: 0,
            only: None,
        };
        let polled = poll(Arc::new(context), params).now_or_never();
        assert!(polled.unwrap().unwrap().events.is_empty());
    }
}
