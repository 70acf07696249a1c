//! Updates that name their prompt: a client distinguishes the turn of another one from its own.

use acp_client::{
    Client, ClientBuilder, Decision, Event, PermissionRequest, Permissions, Session, SessionEvent,
};
use acp_sdk::v1::{ContentBlock, SessionUpdate};
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};

use crate::agent::{Raw, said, within};

/// Passes each question on, with the sender of its answer.
struct Asking(mpsc::UnboundedSender<oneshot::Sender<Decision>>);

impl Permissions for Asking {
    async fn decide(&self, _: &PermissionRequest) -> Decision {
        let (answer, answered) = oneshot::channel();
        self.0.send(answer).unwrap();
        answered.await.unwrap_or(Decision::Reject)
    }
}

/// An agent with the session `s`, which names the prompts of its updates or not.
async fn session(names: bool) -> (Client, Raw, Session) {
    session_with(Client::builder(), names).await
}

async fn session_with(builder: ClientBuilder, names: bool) -> (Client, Raw, Session) {
    let capabilities = json!({"_meta": {"acp-sdk": {"eventId": true, "promptId": names}}});
    let hello = json!({"protocolVersion": 1, "agentCapabilities": capabilities});
    let (client, mut raw) = Raw::connect_saying(builder, hello).await;
    let (session, ()) = tokio::join!(
        client.new_session("/"),
        raw.answer("session/new", json!({"sessionId": "s"}))
    );
    (client, raw, session.unwrap())
}

async fn say(raw: &mut Raw, text: &str, ours: Value) {
    update_of(raw, json!(said(text)), ours).await;
}

async fn update_of(raw: &mut Raw, update: Value, ours: Value) {
    let params = json!({"sessionId": "s", "update": update, "_meta": {"acp-sdk": ours}});
    raw.send(json!({"jsonrpc": "2.0", "method": "session/update", "params": params}))
        .await;
}

/// Returns the text of an update, its turn and the id of its prompt.
fn text(event: &SessionEvent) -> Option<(String, Option<u64>, Option<&str>)> {
    let Event::Update(SessionUpdate::AgentMessageChunk(chunk)) = &event.event else {
        return None;
    };
    let ContentBlock::Text(text) = &chunk.content else {
        return None;
    };
    Some((text.text.clone(), event.turn, event.prompt_id.as_deref()))
}

#[tokio::test]
async fn a_prompt_that_waits_behind_another_turn_gets_its_own_answer() {
    let (_client, mut raw, session) = session(true).await;
    let mut events = session.events();
    let turn = session.prompt("mine").await.unwrap();
    let prompt = raw.next().await;
    let mine = prompt["params"]["_meta"]["acp-sdk"]["promptId"].clone();
    assert!(mine.is_string(), "{prompt}");
    say(
        &mut raw,
        "theirs",
        json!({"eventId": 1, "promptId": "turn-1"}),
    )
    .await;
    say(&mut raw, "outside", json!({"eventId": 2})).await;
    say(&mut raw, "mine", json!({"eventId": 3, "promptId": mine})).await;
    let result = json!({"stopReason": "end_turn"});
    raw.send(json!({"jsonrpc": "2.0", "id": prompt["id"], "result": result}))
        .await;
    let outcome = within(turn.outcome()).await.unwrap();
    assert_eq!(outcome.text, "mine");

    let events: Vec<_> = std::iter::from_fn(|| events.next_ready()).collect();
    let others = events.iter().filter(|event| event.is_of_another_prompt());
    assert_eq!(others.count(), 1);
    let seen: Vec<_> = events.iter().filter_map(text).collect();
    let expected = [
        ("theirs".to_owned(), None, Some("turn-1")),
        ("outside".to_owned(), None, None),
        ("mine".to_owned(), Some(1), mine.as_str()),
    ];
    assert_eq!(seen, expected);

    let next = session.prompt("again").await.unwrap();
    let again = raw.next().await;
    assert_ne!(again["params"]["_meta"]["acp-sdk"]["promptId"], mine);
    drop(next);
}

/// A question about the tool call of another client's turn, which is asked here because that client
/// has gone, is not answered by cancelling the own turn.
#[tokio::test]
async fn a_question_belongs_to_the_turn_of_its_tool_call() {
    let (asked, mut questions) = mpsc::unbounded_channel();
    let builder = Client::builder().permissions(Asking(asked));
    let (_client, mut raw, session) = session_with(builder, true).await;
    let mut events = session.events();
    let turn = session.prompt("mine").await.unwrap();
    let prompt = raw.next().await;
    let mine = prompt["params"]["_meta"]["acp-sdk"]["promptId"].clone();
    for (call, prompt_id) in [("theirs", json!("turn-1")), ("mine", mine)] {
        let update = json!({"sessionUpdate": "tool_call", "toolCallId": call, "title": call});
        update_of(&mut raw, update, json!({"promptId": prompt_id})).await;
        let options = json!([{"optionId": "yes", "name": "Yes", "kind": "allow_once"}]);
        let params =
            json!({"sessionId": "s", "toolCall": {"toolCallId": call}, "options": options});
        let method = "session/request_permission";
        raw.send(json!({"jsonrpc": "2.0", "id": call, "method": method, "params": params}))
            .await;
    }
    let theirs = within(questions.recv()).await.unwrap();
    let _own = within(questions.recv()).await.unwrap();
    turn.cancel();
    assert_eq!(raw.next().await["method"], "session/cancel");
    let cancelled = raw.next().await;
    assert_eq!(cancelled["id"], "mine");
    assert_eq!(cancelled["result"]["outcome"]["outcome"], "cancelled");
    theirs.send(Decision::Allow).unwrap();
    let allowed = raw.next().await;
    assert_eq!(allowed["id"], "theirs");
    assert_eq!(allowed["result"]["outcome"]["optionId"], "yes");

    let answered =
        std::iter::from_fn(|| events.next_ready()).filter_map(|event| match event.event {
            Event::Permission(answered) => Some((answered.question.title?, event.turn)),
            _ => None,
        });
    let expected = [("mine".to_owned(), Some(1)), ("theirs".to_owned(), None)];
    assert_eq!(answered.collect::<Vec<_>>(), expected);
}

#[tokio::test]
async fn an_agent_that_names_no_prompts_is_sent_no_ids() {
    let (_client, mut raw, session) = session(false).await;
    let turn = session.prompt("mine").await.unwrap();
    let prompt = raw.next().await;
    assert!(prompt["params"].get("_meta").is_none(), "{prompt}");
    // It is the only turn that this client knows of.
    say(&mut raw, "one", json!({"eventId": 1, "promptId": "other"})).await;
    say(&mut raw, "two", json!({"eventId": "two", "promptId": 7})).await;
    let result = json!({"stopReason": "end_turn"});
    raw.send(json!({"jsonrpc": "2.0", "id": prompt["id"], "result": result}))
        .await;
    assert_eq!(within(turn.outcome()).await.unwrap().text, "onetwo");
}

/// The key of a prompt is its id. Agents that do not announce it get none.
#[tokio::test]
async fn a_prompt_has_a_key_for_an_agent_that_honors_keys() {
    for (honors, switched_off) in [(true, false), (true, true), (false, false)] {
        let ours = json!({"promptId": true, "idempotencyKey": honors});
        let capabilities = json!({"_meta": {"acp-sdk": ours}});
        let hello = json!({"protocolVersion": 1, "agentCapabilities": capabilities});
        let builder = match switched_off {
            true => Client::builder().without_idempotency_keys(),
            false => Client::builder(),
        };
        let (client, mut raw) = Raw::connect_saying(builder, hello).await;
        let (session, ()) = tokio::join!(
            client.new_session("/"),
            raw.answer("session/new", json!({"sessionId": "s"}))
        );
        let session = session.unwrap();
        let _turn = session.prompt("hi").await.unwrap();
        let answer = json!({"stopReason": "end_turn"});
        let params = raw.params("session/prompt", answer).await;
        let ours = &params["_meta"]["acp-sdk"];
        assert!(ours["promptId"].is_string(), "{params}");
        let key = match honors && !switched_off {
            true => &ours["promptId"],
            false => &Value::Null,
        };
        assert_eq!(&ours["idempotencyKey"], key);
    }
}
