//! Input that clients send during a turn.

use std::sync::Arc;

use acp_sdk::extensions::{
    AgentHandleExt, SteerFallback, SteerOutcome, SteerRefusal, SteerSessionRequest,
    SteerSessionResponse,
};
use acp_sdk::v1::*;
use acp_server::store::{MemoryStore, StoreErrorKind};
use acp_server::{
    AgentInfo, Handler, HandlerResult, Input, Limits, Opening, Server, ServerBuilder, Settings,
    Steered, Turn,
};
use acp_store_tests::faults::{Fault, FaultyStore, Gate, Operation, When};
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;

use super::{Guest, texts};
use crate::editor::{soon, text};

/// Repeats the input that it takes: as many as `take N` says; `look` only what waits when it may go on, and
/// `glance` only begins to. `wait` takes none.
struct Steerable {
    go_on: Arc<Semaphore>,
    steering: bool,
}

impl Steerable {
    fn server() -> (ServerBuilder, Arc<Semaphore>) {
        let go_on = Arc::new(Semaphore::new(0));
        let steerable = Self {
            go_on: go_on.clone(),
            steering: true,
        };
        (Server::builder(steerable), go_on)
    }
}

impl Handler for Steerable {
    type State = ();

    fn info(&self) -> AgentInfo {
        match self.steering {
            true => AgentInfo::default().steering(),
            false => AgentInfo::default(),
        }
    }

    async fn prompt(&self, (): &mut (), turn: Turn) -> HandlerResult<StopReason> {
        let said = turn.prompt_text();
        turn.send_text(format!("begins {said}")).await?;
        match said.split_once(' ') {
            Some(("take", count)) => {
                for _ in 0..count.parse().unwrap() {
                    let input = turn.steered().await?;
                    turn.send_text(format!("took {}", input.text())).await?;
                }
            }
            _ if said == "look" => {
                self.go_on.acquire().await.unwrap().forget();
                while let Some(input) = turn.steered_now().await? {
                    turn.send_text(format!("found {}", input.text())).await?;
                }
            }
            // Takes it and does not wait for the commit.
            _ if said == "glance" => {
                self.go_on.acquire().await.unwrap().forget();
                tokio::select! {
                    biased;
                    input = turn.steered_now() => panic!("{input:?}"),
                    () = std::future::ready(()) => {}
                }
            }
            _ if said == "wait" => tokio::select! {
                _ = turn.cancelled() => {}
                permit = self.go_on.acquire() => permit.unwrap().forget(),
            },
            _ => {}
        }
        turn.send_text("ends").await?;
        Ok(StopReason::EndTurn)
    }
}

fn request(session: &SessionId, said: &str) -> SteerSessionRequest {
    SteerSessionRequest::new(session.clone(), text(said))
}

fn or_queue(session: &SessionId, said: &str) -> SteerSessionRequest {
    request(session, said).with_otherwise(SteerFallback::Queue)
}

impl Guest {
    fn steer(
        &self,
        request: SteerSessionRequest,
    ) -> JoinHandle<acp_sdk::Result<SteerSessionResponse>> {
        let agent = self.agent.clone();
        tokio::spawn(async move { agent.steer_session(request).await })
    }

    async fn steered(&self, request: SteerSessionRequest) -> SteerSessionResponse {
        let answer = soon("the answer", self.steer(request)).await;
        answer.unwrap().unwrap()
    }

    /// Waits until the server has read everything that was sent before.
    async fn round_trip(&self) {
        let list = ListSessionsRequest::new();
        self.agent.list_sessions(list).await.unwrap();
    }
}

fn refused(answer: &SteerSessionResponse) -> SteerRefusal {
    assert_eq!(answer.outcome, SteerOutcome::Refused, "{answer:?}");
    answer.reason.clone().unwrap()
}

/// The words of messages of user and agent.
fn words(guest: &Guest) -> Vec<String> {
    let texts = texts(&guest.editor.take());
    texts.into_iter().map(|(_, text)| text).collect()
}

#[tokio::test]
async fn a_turn_takes_input_and_all_clients_see_it_at_one_place() {
    let (builder, _) = Steerable::server();
    let server = builder.build();
    let (one, two, id) = Guest::pair(&server).await;
    let turn = one.start(&id, "take 2");
    one.editor.until("agent_message_chunk begins").await;
    let answer = two.steered(request(&id, "left")).await;
    assert_eq!(answer.outcome, SteerOutcome::Injected);
    let named = request(&id, "right").with_prompt_id("name".to_owned());
    let second = one.steered(named).await;
    assert_eq!(second.outcome, SteerOutcome::Injected);
    assert_ne!(second.message_id, answer.message_id);
    assert_eq!(turn.await.unwrap().unwrap(), StopReason::EndTurn);

    // A client is not sent its own words.
    two.editor.until("agent_message_chunk ends").await;
    let log = one.editor.take();
    let seen = texts(&log).into_iter().map(|(_, text)| text);
    let expected = ["begins take 2", "left", "took left", "took right", "ends"];
    assert_eq!(seen.collect::<Vec<_>>(), expected);
    let expected = [
        "take 2",
        "begins take 2",
        "took left",
        "right",
        "took right",
        "ends",
    ];
    assert_eq!(words(&two), expected);
    let left = log
        .iter()
        .find(|entry| entry["params"]["update"]["content"]["text"] == "left");
    let left = &left.unwrap()["params"];
    assert_eq!(left["update"]["sessionUpdate"], "user_message_chunk");
    assert_eq!(left["update"]["messageId"], answer.message_id.unwrap());
    assert_eq!(left["update"]["_meta"]["acp-sdk"]["steered"], true);
    assert_eq!(
        left["_meta"]["acp-sdk"]["eventId"],
        answer.event_id.unwrap()
    );

    let late = Guest::new(&server).await;
    late.load(&id).await;
    let expected = [
        "take 2",
        "begins take 2",
        "left",
        "took left",
        "right",
        "took right",
        "ends",
    ];
    assert_eq!(words(&late), expected);
}

#[tokio::test]
async fn an_agent_without_steering_says_so() {
    let go_on = Arc::new(Semaphore::new(0));
    let steering = false;
    let server = Server::new(Steerable {
        go_on: go_on.clone(),
        steering,
    });
    let one = Guest::new(&server).await;
    let id = one.create().await;
    let turn = one.start(&id, "wait");
    one.editor.until("agent_message_chunk begins").await;
    let answer = one.steered(request(&id, "left")).await;
    assert_eq!(refused(&answer), SteerRefusal::NotSupported);
    let answer = one.steered(or_queue(&id, "later")).await;
    assert_eq!(answer.outcome, SteerOutcome::Queued);
    go_on.add_permits(1);
    turn.await.unwrap().unwrap();
    one.editor.until("agent_message_chunk begins later").await;
}

#[tokio::test]
async fn what_a_turn_does_not_take_is_answered_at_its_end() {
    let (builder, go_on) = Steerable::server();
    let server = builder.build();
    let one = Guest::new(&server).await;
    let id = one.create().await;
    let turn = one.start(&id, "wait");
    one.editor.until("agent_message_chunk begins").await;
    let refuses = one.steer(request(&id, "left"));
    let queues = one.steer(or_queue(&id, "later").with_prompt_id("q".to_owned()));
    one.round_trip().await;
    assert!(!refuses.is_finished() && !queues.is_finished());
    go_on.add_permits(1);
    let answer = refuses.await.unwrap().unwrap();
    assert_eq!(refused(&answer), SteerRefusal::TurnEnded);
    assert_eq!(queues.await.unwrap().unwrap().outcome, SteerOutcome::Queued);
    turn.await.unwrap().unwrap();
    // Its sender waits for its end by its name.
    let params = serde_json::json!({ "sessionId": id, "promptId": "q" });
    let result = one.ext("_acp-sdk/session/prompt_result", params).await;
    assert_eq!(result.unwrap()["stopReason"], "end_turn");
    // It was sent by this client.
    let expected = ["begins wait", "ends", "begins later", "ends"];
    assert_eq!(words(&one), expected);

    // Without a turn.
    let answer = one.steered(request(&id, "left")).await;
    assert_eq!(refused(&answer), SteerRefusal::NoTurn);
    let answer = one.steered(or_queue(&id, "last")).await;
    assert_eq!(answer.outcome, SteerOutcome::Queued);
    one.editor.until("agent_message_chunk begins last").await;
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_turn_refuses_input_at_once() {
    let (builder, _) = Steerable::server();
    let server = builder.build();
    let one = Guest::new(&server).await;
    let id = one.create().await;
    // A handler that does not end when it is cancelled.
    let turn = one.start(&id, "look");
    one.editor.until("agent_message_chunk begins").await;
    let waiting = one.steer(or_queue(&id, "left"));
    one.round_trip().await;
    one.agent
        .cancel(CancelNotification::new(id.clone()))
        .await
        .unwrap();
    let answer = waiting.await.unwrap().unwrap();
    assert_eq!(refused(&answer), SteerRefusal::Cancelled);
    let answer = one.steered(or_queue(&id, "right")).await;
    assert_eq!(refused(&answer), SteerRefusal::Cancelled);
    assert!(!turn.is_finished());
    assert_eq!(turn.await.unwrap().unwrap(), StopReason::Cancelled);

    // A handler that waits for input is not left waiting.
    let turn = one.start(&id, "take 1");
    one.editor.until("agent_message_chunk begins take").await;
    one.agent
        .cancel(CancelNotification::new(id.clone()))
        .await
        .unwrap();
    assert_eq!(turn.await.unwrap().unwrap(), StopReason::Cancelled);
    let session = server.session(&id).await.unwrap();
    assert!(!words(&one).contains(&"left".to_owned()), "{session:?}");
}

#[tokio::test]
async fn cancelling_the_request_takes_back_what_was_not_taken() {
    let (builder, go_on) = Steerable::server();
    let server = builder.build();
    let (one, two, id) = Guest::pair(&server).await;
    let turn = one.start(&id, "look");
    one.editor.until("agent_message_chunk begins").await;
    let gone = one.steer(request(&id, "left"));
    let lost = two.steer(request(&id, "right"));
    let stays = one.steer(request(&id, "straight on"));
    one.round_trip().await;
    two.round_trip().await;
    // Dropping the call cancels its request; a connection that is lost does the same.
    gone.abort();
    assert!(gone.await.unwrap_err().is_cancelled());
    two.leave().await;
    one.round_trip().await;
    go_on.add_permits(1);
    turn.await.unwrap().unwrap();
    assert_eq!(
        stays.await.unwrap().unwrap().outcome,
        SteerOutcome::Injected
    );
    assert_eq!(words(&one), ["begins look", "found straight on", "ends"]);
    lost.await.unwrap().unwrap_err();
}

#[tokio::test]
async fn what_waits_is_bounded_in_number_and_bytes() {
    let (builder, go_on) = Steerable::server();
    let mut limits = Limits::default();
    (limits.queued_prompts, limits.queued_prompt_bytes) = (2, 100);
    limits.prompt_bytes = 90;
    let server = builder.limits(limits).build();
    let one = Guest::new(&server).await;
    let id = one.create().await;
    let turn = one.start(&id, "look");
    one.editor.until("agent_message_chunk begins").await;
    let large = one.steer(request(&id, &"x".repeat(91))).await.unwrap();
    let error = large.unwrap_err().to_string();
    assert!(error.contains("prompt_bytes"), "{error}");
    let first = one.steer(request(&id, &"a".repeat(60)));
    one.round_trip().await;
    let answer = one.steered(or_queue(&id, &"b".repeat(60))).await;
    assert_eq!(refused(&answer), SteerRefusal::Limit);
    let second = one.steer(request(&id, "c"));
    one.round_trip().await;
    let answer = one.steered(request(&id, "d")).await;
    assert_eq!(refused(&answer), SteerRefusal::Limit);
    go_on.add_permits(1);
    for taken in [first, second] {
        let answer = taken.await.unwrap().unwrap();
        assert_eq!(answer.outcome, SteerOutcome::Injected);
    }
    turn.await.unwrap().unwrap();
}

#[tokio::test]
async fn input_that_is_sent_again_is_delivered_once() {
    let store = Arc::new(MemoryStore::default());
    let (builder, go_on) = Steerable::server();
    let server = builder.store(store.clone()).build();
    let (one, two, id) = Guest::pair(&server).await;
    let turn = one.start(&id, "look");
    one.editor.until("agent_message_chunk begins").await;
    let named = request(&id, "left").with_prompt_id("name".to_owned());
    let first = one.steer(named.clone());
    one.round_trip().await;
    // While it waits: both are answered, and the one that gives up leaves the other.
    let second = two.steer(named.clone());
    two.round_trip().await;
    first.abort();
    assert!(first.await.unwrap_err().is_cancelled());
    one.round_trip().await;
    go_on.add_permits(1);
    let answer = second.await.unwrap().unwrap();
    assert_eq!(answer.outcome, SteerOutcome::Injected);
    turn.await.unwrap().unwrap();
    assert_eq!(one.steered(named.clone()).await, answer);
    let session = server.session(&id).await.unwrap();
    let again = Input::from("other words").named("name");
    let message = answer.message_id.clone().unwrap().into();
    let event = answer.event_id.unwrap();
    let injected = Steered::Injected { message, event };
    assert_eq!(session.steer(again).await.unwrap(), injected);
    server.shutdown().await;

    // The log remembers it.
    let (builder, _) = Steerable::server();
    let server = builder.store(store).build();
    let three = Guest::new(&server).await;
    three.load(&id).await;
    assert_eq!(three.steered(named.clone()).await, answer);
    assert_eq!(
        words(&three),
        ["look", "begins look", "left", "found left", "ends"]
    );
}

#[tokio::test(start_paused = true)]
async fn input_that_cannot_be_committed_reaches_nobody() {
    let store = Arc::new(FaultyStore::new(MemoryStore::default()));
    let (builder, go_on) = Steerable::server();
    let server = builder.store(store.clone()).build();
    let (one, two, id) = Guest::pair(&server).await;
    let turn = one.start(&id, "look");
    one.editor.until("agent_message_chunk begins").await;
    let waiting = two.steer(request(&id, "left"));
    two.round_trip().await;
    let full = Fault::Fail(StoreErrorKind::Full);
    store.inject(Operation::Commit, 1, When::Before, full);
    go_on.add_permits(1);
    let error = waiting.await.unwrap().unwrap_err().to_string();
    assert!(error.contains("injected failure"), "{error}");
    turn.await.unwrap().unwrap_err();
    let late = Guest::new(&server).await;
    late.load(&id).await;
    assert_eq!(words(&late), ["look", "begins look"]);
}

/// Commits take their time: neither a resend nor a handler that does something else meanwhile changes what is
/// delivered.
#[tokio::test]
async fn input_that_is_being_committed_is_taken_once() {
    // Whether the handler waits for the commit.
    for prompt in ["look", "glance"] {
        let store = Arc::new(FaultyStore::new(MemoryStore::default()));
        let (builder, go_on) = Steerable::server();
        let server = builder.store(store.clone()).build();
        let one = Guest::new(&server).await;
        let id = one.create().await;
        let turn = one.start(&id, prompt);
        one.editor.until("agent_message_chunk begins").await;
        let named = request(&id, "left").with_prompt_id("name".to_owned());
        let first = one.steer(named.clone());
        one.round_trip().await;
        let gate = Gate::new();
        store.inject(
            Operation::Commit,
            1,
            When::Before,
            Fault::Hold(gate.clone()),
        );
        go_on.add_permits(1);
        gate.reached().await;
        let again = one.steer(named.clone());
        one.round_trip().await;
        assert!(!first.is_finished() && !again.is_finished());
        // The turn has it, so it is not taken back.
        first.abort();
        one.round_trip().await;
        gate.open();
        let answer = again.await.unwrap().unwrap();
        assert_eq!(answer.outcome, SteerOutcome::Injected);
        turn.await.unwrap().unwrap();
        assert_eq!(one.steered(named).await, answer);
        let late = Guest::new(&server).await;
        late.load(&id).await;
        let words = words(&late);
        let count = words.iter().filter(|said| *said == "left").count();
        assert_eq!(count, 1, "{words:?}");
    }
}

/// Prompts itself while it is opened, and gives the turn input that is about to begin.
struct Early {
    cancels: bool,
}

impl Handler for Early {
    type State = ();

    fn info(&self) -> AgentInfo {
        AgentInfo::default().steering()
    }

    async fn open(&self, (): &mut (), opening: &Opening) -> HandlerResult<Settings> {
        let session = opening.session.clone();
        session.prompt(text("early"))?;
        let steering = session.clone();
        let steering = tokio::spawn(async move { steering.steer("left").await });
        tokio::task::yield_now().await;
        assert!(!steering.is_finished());
        if self.cancels {
            session.cancel();
            let cancelled = Steered::Refused(SteerRefusal::Cancelled);
            assert_eq!(soon("the answer", steering).await.unwrap()?, cancelled);
        }
        Ok(Settings::new())
    }

    async fn prompt(&self, (): &mut (), turn: Turn) -> HandlerResult<StopReason> {
        let input = turn.steered().await?;
        turn.send_text(format!("took {}", input.text())).await?;
        Ok(StopReason::EndTurn)
    }
}

#[tokio::test]
async fn input_for_a_turn_that_is_about_to_begin_waits_for_it() {
    let server = Server::new(Early { cancels: false });
    let session = server.create_session("/w").await.unwrap();
    let ended = soon("the end", super::turn_end(&session, 0)).await;
    assert_eq!(ended, Some(StopReason::EndTurn));
    let guest = Guest::new(&server).await;
    guest.load(session.id()).await;
    assert_eq!(words(&guest), ["early", "left", "took left"]);
}

#[tokio::test]
async fn input_for_a_turn_that_never_begins_is_answered() {
    let server = Server::new(Early { cancels: true });
    let session = server.create_session("/w").await.unwrap();
    let answer = session.steer("left").await.unwrap();
    assert_eq!(answer, Steered::Refused(SteerRefusal::NoTurn));
}
