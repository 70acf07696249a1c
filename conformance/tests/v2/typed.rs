//! `acp-client` with `acp-server` in both versions: applications see the same.

use std::sync::Arc;
use std::time::Duration;

use acp_client::{
    Client, Decision, Elicitation, Event, Events, Outcome, PermissionRequest, Permissions, Phase,
    Policy, Session, SessionContext,
};
use acp_reference_agent::Reference;
use acp_sdk::v1::{
    ContentBlock, CreateElicitationRequest, ElicitationAcceptAction, ElicitationAction,
    ElicitationContentValue, ProtocolVersion, SessionUpdate, StopReason, ToolCall,
};
use acp_server::{Link, Server};
use tokio::sync::Notify;

/// A guard against a hanging test; nothing waits this long when all is well.
const GUARD: Duration = Duration::from_secs(30);

async fn within<T>(future: impl IntoFuture<Output = T>) -> T {
    let result = tokio::time::timeout(GUARD, future).await;
    result.expect("it takes too long")
}

/// Accepts whatever is asked, with the name that a form may want.
struct Accept;

impl Elicitation for Accept {
    async fn ask(
        &self,
        _: Option<&SessionContext>,
        request: &CreateElicitationRequest,
    ) -> ElicitationAction {
        let acp_sdk::v1::ElicitationMode::Form(form) = &request.mode else {
            return ElicitationAction::Accept(ElicitationAcceptAction::new());
        };
        let fields = form.requested_schema.required.iter().flatten();
        let value = ElicitationContentValue::String("Ada".to_owned());
        let content = fields.map(|name| (name.clone(), value.clone())).collect();
        ElicitationAction::Accept(ElicitationAcceptAction::new().with_content(content))
    }
}

async fn connect(server: &Server, version: u16) -> Client {
    connect_with(server, version, Policy::ApproveAll).await
}

async fn connect_with(server: &Server, version: u16, permissions: impl Permissions) -> Client {
    let (ours, theirs) = tokio::io::duplex(1 << 16);
    let (reader, writer) = tokio::io::split(theirs);
    let agent = server.connection(Link::Stdio).every_version();
    tokio::spawn(acp_sdk::serve(agent, (reader, writer)));
    let builder = Client::builder()
        .permissions(permissions)
        .elicitation(Accept);
    let builder = match version {
        2 => builder.offer_v2(),
        _ => builder,
    };
    let (reader, writer) = tokio::io::split(ours);
    let client = within(builder.connect((reader, writer))).await.unwrap();
    assert_eq!(client.protocol_version(), ProtocolVersion::from(version));
    client
}

async fn say(session: &Session, prompt: &str) -> Outcome {
    let turn = within(session.prompt(prompt)).await.unwrap();
    within(turn.outcome()).await.unwrap()
}

/// A tool call without what the versions say differently: a diff is of a file or of its hunks.
fn shown(call: &ToolCall) -> (String, String, String, usize) {
    let text = |value: Option<&str>| value.unwrap_or_default().to_owned();
    (
        call.title.clone(),
        text(call.kind.as_ref().map(|kind| kind.as_str())),
        text(call.status.as_ref().map(|status| status.as_str())),
        call.content.len(),
    )
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn outcomes_are_the_same_in_both_versions() {
    let server = Reference::server().build();
    let mut sessions = Vec::new();
    for version in [1, 2] {
        let client = connect(&server, version).await;
        sessions.push(within(client.new_session("/")).await.unwrap());
    }
    let [first, second] = sessions.as_slice() else {
        panic!("there are two versions");
    };
    for prompt in [
        "Hello",
        "think",
        "plan",
        "call",
        "tool",
        "content",
        "permission",
        "elicit form",
        "usage",
        "commands",
        "title",
        "notice",
        "compact",
        "refuse",
        "stream 100",
        "meta",
    ] {
        let (one, two) = (say(first, prompt).await, say(second, prompt).await);
        assert_eq!(two.text, one.text, "{prompt}");
        assert_eq!(two.thoughts, one.thoughts, "{prompt}");
        assert_eq!(two.stop_reason, one.stop_reason, "{prompt}");
        assert_eq!(two.plan, one.plan, "{prompt}");
        let calls = |outcome: &Outcome| outcome.tool_calls.iter().map(shown).collect::<Vec<_>>();
        assert_eq!(calls(&two), calls(&one), "{prompt}");
        assert_eq!(two.cost(), one.cost(), "{prompt}");
    }
    let (one, two) = (first.settings(), second.settings());
    assert_eq!(two.commands, one.commands);
    assert_eq!(two.title, one.title);
    let turn = second.prompt("fail").await.unwrap();
    let error = within(turn.outcome()).await.unwrap_err().to_string();
    assert!(error.contains("failure"), "{error}");
}

/// The words of a history, each with who wrote it.
async fn history(client: &Client, id: &str) -> Vec<(bool, String)> {
    let session = within(client.load_session(id, "/")).await.unwrap();
    let (mut events, mut words): (Events, Vec<(bool, String)>) = (session.events(), Vec::new());
    while let Some(event) = within(events.next()).await {
        let (is_user, chunk) = match event.event {
            Event::HistoryEnd => break,
            Event::Update(SessionUpdate::UserMessageChunk(chunk)) => (true, chunk),
            Event::Update(SessionUpdate::AgentMessageChunk(chunk)) => (false, chunk),
            _ => continue,
        };
        assert_eq!(event.phase, Phase::Replayed);
        let ContentBlock::Text(text) = chunk.content else {
            continue;
        };
        match words.last_mut() {
            Some((last, words)) if *last == is_user => words.push_str(&text.text),
            _ => words.push((is_user, text.text)),
        }
    }
    words
}

#[tokio::test]
async fn a_history_is_the_same_in_both_versions() {
    let server = Reference::server().build();
    let client = connect(&server, 2).await;
    let session = within(client.new_session("/")).await.unwrap();
    for prompt in ["one", "tool", "two"] {
        say(&session, prompt).await;
    }
    let id = session.id().clone();
    let listed = within(client.list_sessions(None)).await.unwrap();
    assert!(listed.iter().any(|listed| listed.session_id == id));
    drop((session, client));
    let first = history(&connect(&server, 1).await, id.as_str()).await;
    let second = history(&connect(&server, 2).await, id.as_str()).await;
    assert_eq!(second, first);
    assert_eq!(first[0], (true, "one".to_owned()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_turn_is_cancelled_and_the_next_one_runs() {
    let server = Reference::server().build();
    let client = connect(&server, 2).await;
    let session = within(client.new_session("/")).await.unwrap();
    let mut turn = session.prompt("slow").await.unwrap();
    within(turn.next()).await.unwrap();
    turn.cancel();
    let outcome = within(turn.outcome()).await.unwrap();
    assert_eq!(outcome.stop_reason, StopReason::Cancelled);
    // Cancelled before the agent has accepted it, or at any moment after.
    for _ in 0..50 {
        let turn = within(session.prompt("slow")).await.unwrap();
        turn.cancel();
        let outcome = within(turn.outcome()).await.unwrap();
        assert_eq!(outcome.stop_reason, StopReason::Cancelled);
    }
    let before = say(&session, "Hello").await;
    assert_eq!(before.stop_reason, StopReason::EndTurn);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_turns_of_another_client_are_no_turns_of_this_one() {
    let server = Reference::server().build();
    let gate = Arc::new(Notify::new());
    let one = connect(&server, 2).await;
    let two = connect_with(&server, 2, Gate(gate.clone())).await;
    let first = within(one.new_session("/")).await.unwrap();
    let second = within(two.resume_session(first.id().clone(), "/"))
        .await
        .unwrap();
    let mut events = first.events();
    let other = second.prompt("permission").await.unwrap();
    // It works for the other client, and waits for its answer, when this one prompts.
    loop {
        let event = within(events.next()).await.unwrap();
        assert_eq!(event.turn, None);
        if let Event::Update(SessionUpdate::Unknown(update)) = &event.event
            && update
                .get("state")
                .is_some_and(|state| state.get() == "\"requires_action\"")
        {
            break;
        }
    }
    let turn = first.prompt("Hello").await.unwrap();
    gate.notify_one();
    assert_eq!(
        within(other.outcome()).await.unwrap().stop_reason,
        StopReason::EndTurn
    );
    let outcome = within(turn.outcome()).await.unwrap();
    assert_eq!(outcome.stop_reason, StopReason::EndTurn);
    let alone = say(&within(one.new_session("/")).await.unwrap(), "Hello").await;
    assert!(outcome.text.ends_with(&alone.text), "{:?}", outcome.text);
}

/// Allows what it is asked when it is opened.
struct Gate(Arc<Notify>);

impl Permissions for Gate {
    async fn decide(&self, _: &PermissionRequest) -> Decision {
        self.0.notified().await;
        Decision::Allow
    }
}
