//! Messages, schedules and webhooks of a session.

use std::time::Duration;

use acp_sdk::v1::{SessionUpdate, StopReason};
use acp_server::event::{EventBody, TurnEvent};
use acp_server::{Handler, HandlerResult, Policies, Received, SecondPrompt, Server, Turn};

use super::*;

/// Says the prompt again. `hang` waits until the turn is cancelled.
struct Echo;

impl Handler for Echo {
    type State = ();

    async fn prompt(&self, (): &mut (), turn: Turn) -> HandlerResult<StopReason> {
        turn.send_text(turn.prompt_text()).await?;
        if turn.prompt_text().contains("hang") {
            turn.cancelled().await;
        }
        Ok(StopReason::EndTurn)
    }

    /// An idle session would be closed after an hour, with its inbox.
    fn may_unload(&self, _: &Session) -> bool {
        false
    }
}

async fn session() -> (Server, Session) {
    let server = Server::new(Echo);
    let session = server.create_session("/w").await.unwrap();
    (server, session)
}

fn message(text: &str) -> Message {
    Message::new(Origin::Agent("helper".to_owned()), text)
}

/// What a client sees.
struct Seen(acp_server::Events);

impl Seen {
    fn new(session: &Session) -> Self {
        Self(session.subscribe(0))
    }

    /// Returns the user's message of the next turn, when it has ended.
    async fn turn(&mut self) -> String {
        let mut said = String::new();
        loop {
            // The clock is paused: who waits in vain does not wait long.
            let next = tokio::time::timeout(Duration::from_secs(7 * 86_400), self.0.next());
            let Received::Event(event) = next.await.expect("no turn").unwrap() else {
                panic!("a gap");
            };
            match event.body {
                EventBody::Turn(TurnEvent::TurnEnded { .. }) => return said,
                EventBody::Turn(_) => {}
                other => said += user_text(&other),
            }
        }
    }
}

fn user_text(body: &EventBody) -> &str {
    if let EventBody::Update(SessionUpdate::UserMessageChunk(chunk)) = body
        && let ContentBlock::Text(text) = &chunk.content
    {
        return &text.text;
    }
    ""
}

#[tokio::test(start_paused = true)]
async fn messages_have_their_turns_in_order_and_clients_see_them() {
    let (_server, session) = session().await;
    let inbox = Inbox::open(&session);
    let mut seen = Seen::new(&session);
    for text in ["one", "two", "three"] {
        inbox.send(message(text)).unwrap();
    }
    for text in ["one", "two", "three"] {
        assert_eq!(seen.turn().await, text);
    }
}

#[tokio::test(start_paused = true)]
async fn the_queue_is_bounded_and_ends_with_the_session() {
    let (server, session) = session().await;
    let inbox = Inbox::open(&session);
    let hanging = session.prompt(vec!["hang".into()]).unwrap();
    let taken = (0..1000)
        .take_while(|_| inbox.send(message("x")).is_ok())
        .count();
    assert_eq!(
        (taken, inbox.send(message("x"))),
        (64, Err(InboxError::Full))
    );
    server.close_session(session.id()).await.unwrap();
    hanging.stop_reason().await.unwrap();
    inbox.0.sender.closed().await;
    assert_eq!(inbox.send(message("x")), Err(InboxError::Closed));
    let schedule = Schedule::new("s", "* * * * *", "x").unwrap();
    assert_eq!(inbox.schedule(schedule), Err(InboxError::Closed));
}

#[tokio::test(start_paused = true)]
async fn a_message_waits_while_the_session_takes_no_second_prompt() {
    let mut policies = Policies::default();
    policies.second_prompt = SecondPrompt::Refuse;
    let server = Server::builder(Echo).policies(policies).build();
    let session = server.create_session("/w").await.unwrap();
    let mut seen = Seen::new(&session);
    let mut hanging = session.prompt(vec!["hang".into()]).unwrap();
    hanging.started().await.unwrap();
    let inbox = Inbox::open(&session);
    inbox.send(message("one")).unwrap();
    inbox.send(message("two")).unwrap();
    // Long enough to be refused.
    tokio::time::sleep(Duration::from_secs(10)).await;
    hanging.cancel();
    for text in ["hang", "one", "two"] {
        assert_eq!(seen.turn().await, text);
    }
}

#[tokio::test(start_paused = true)]
async fn a_message_that_no_session_takes_is_dropped_and_the_next_is_delivered() {
    let mut limits = acp_server::Limits::default();
    limits.prompt_bytes = 1000;
    let server = Server::builder(Echo).limits(limits).build();
    let session = server.create_session("/w").await.unwrap();
    let mut seen = Seen::new(&session);
    let inbox = Inbox::open(&session);
    inbox.send(message(&"x".repeat(2000))).unwrap();
    inbox.send(message("next")).unwrap();
    assert_eq!(seen.turn().await, "next");
}

#[tokio::test(start_paused = true)]
async fn an_inbox_that_opens_its_session_outlives_it() {
    let server = Server::new(Echo);
    let session = server.named_session("ci", "/w").await.unwrap();
    let mut seen = Seen::new(&session);
    let (opening, attempts) = (server.clone(), std::sync::atomic::AtomicUsize::new(0));
    let inbox = Inbox::opening(move || {
        let server = opening.clone();
        let is_first = attempts.fetch_add(1, std::sync::atomic::Ordering::Relaxed) == 0;
        Box::pin(async move {
            match is_first {
                true => Err("the store is full".into()),
                false => server.named_session("ci", "/w").await,
            }
        })
    });
    for text in ["dropped", "one"] {
        inbox.send(message(text)).unwrap();
    }
    assert_eq!(seen.turn().await, "one");
    server.close_session(session.id()).await.unwrap();
    session.closed().await;
    inbox.send(message("two")).unwrap();
    let again = server.named_session("ci", "/w").await.unwrap();
    assert_eq!(again.id(), session.id());
    let mut seen = Seen::new(&again);
    assert_eq!([seen.turn().await, seen.turn().await], ["one", "two"]);
}

#[tokio::test(start_paused = true)]
async fn schedules_are_due_by_the_calendar_of_their_zone() {
    let (_server, session) = session().await;
    // The last Saturday before summer time.
    let start = "2026-03-28T06:00:00Z".parse().unwrap();
    let clock = Clock::Tokio(start, tokio::time::Instant::now());
    let inbox = Inbox::with_clock(&session, clock);
    let mut seen = Seen::new(&session);
    let schedule = Schedule::new("review", "0 9 * * *", "Review").unwrap();
    inbox
        .schedule(schedule.in_zone("Europe/Berlin").unwrap())
        .unwrap();
    let mut hours = Vec::new();
    let begin = tokio::time::Instant::now();
    for _ in 0..3 {
        assert_eq!(seen.turn().await, "Review");
        hours.push(begin.elapsed().as_secs() / 3600);
    }
    assert_eq!(hours, [2, 25, 49], "8:00, then 7:00 and 7:00 UTC");
    assert_eq!(inbox.schedule_names(), ["review"]);
    assert!(inbox.remove_schedule("review") && !inbox.remove_schedule("review"));
}

#[tokio::test(start_paused = true)]
async fn a_schedule_is_not_due_while_its_last_turn_runs() {
    let (_server, session) = session().await;
    let inbox = Inbox::open(&session);
    let mut seen = Seen::new(&session);
    let start = "2026-01-01T00:00:00Z".parse().unwrap();
    let clock = Clock::Tokio(start, tokio::time::Instant::now());
    let schedule = Schedule::new("often", "* * * * *", "hang").unwrap();
    let (sender, mut receiver) = mpsc::channel(64);
    let task = tokio::spawn(schedule.run(clock, sender));
    let first = receiver.recv().await.unwrap();
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert!(receiver.try_recv().is_err(), "ten more are waiting");
    drop(first);
    receiver.recv().await.unwrap();
    drop(receiver);
    task.await.unwrap();
    inbox.send(message("still open")).unwrap();
    assert_eq!(seen.turn().await, "still open");
}

#[test]
fn schedules_that_are_never_due_are_refused() {
    for expression in ["", "x", "61 * * * *", "0 0 30 2 *", "* * *"] {
        let error = Schedule::new("s", expression, "x").unwrap_err();
        assert!(error.to_string().starts_with("schedule s: "), "{error}");
    }
    let schedule = Schedule::new("s", "@daily", "x").unwrap();
    let error = schedule.in_zone("Europe/Atlantis").unwrap_err();
    assert!(error.to_string().contains("Europe/Atlantis"), "{error}");
}

#[tokio::test]
async fn the_number_of_schedules_is_bounded() {
    let (_server, session) = session().await;
    let inbox = Inbox::open(&session);
    let schedule = |number: usize| Schedule::new(number.to_string(), "0 0 1 1 *", "x").unwrap();
    for number in 0..64 {
        inbox.schedule(schedule(number)).unwrap();
    }
    assert_eq!(
        inbox.schedule(schedule(64)),
        Err(InboxError::TooManySchedules)
    );
    inbox.schedule(schedule(0)).unwrap();
}

#[test]
fn signatures_and_tokens_are_verified() {
    // The example of the documentation of one service that signs in this way.
    let hook = Hook::new("ci", "It's a Secret to Everybody").unwrap();
    let digits = "757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17";
    let verify = |credentials: Credentials<'_>| hook.verify(credentials, b"Hello, World!").is_ok();
    assert!(verify(Credentials::Signature(&format!("sha256={digits}"))));
    assert!(verify(Credentials::Signature(&digits.to_uppercase())));
    assert!(verify(Credentials::Token("It's a Secret to Everybody")));
    for wrong in [
        "",
        "sha256=",
        &digits[2..],
        &digits.replace('7', "8"),
        "sha1=x",
        "ä",
        "7",
    ] {
        assert!(!verify(Credentials::Signature(wrong)), "{wrong}");
    }
    for wrong in ["", "It's a Secret", digits, "it's a Secret to Everybody"] {
        assert!(!verify(Credentials::Token(wrong)), "{wrong}");
    }
    assert!(
        hook.verify(Credentials::Signature(digits), b"Hello, World")
            .is_err()
    );
    assert!(!format!("{hook:?}").contains("Secret"));
}

#[test]
fn names_and_secrets_of_hooks_are_checked() {
    let secret = "0123456789abcdef";
    for name in ["", "a b", "../x", "ä", &"x".repeat(65)] {
        assert!(
            matches!(Hook::new(name, secret), Err(HookError::Name(_))),
            "{name}"
        );
    }
    assert!(matches!(
        Hook::new("ci", "short"),
        Err(HookError::Secret(_))
    ));
}

#[tokio::test(start_paused = true)]
async fn a_call_of_a_webhook_becomes_a_turn_until_the_session_ends() {
    let (server, session) = session().await;
    let mut seen = Seen::new(&session);
    let (hooks, secret) = (Hooks::new(), "0123456789abcdef");
    let inbox = Inbox::open(&session);
    hooks.add(Hook::new("ci", secret).unwrap(), &inbox).unwrap();
    let call =
        |name: &str, token: &str, body: &[u8]| hooks.receive(name, Credentials::Token(token), body);
    call("ci", secret, b"{\"failed\":true}").await.unwrap();
    assert_eq!(
        seen.turn().await,
        "The webhook ci was called with:\n\n{\"failed\":true}"
    );
    call("ci", secret, b" ").await.unwrap();
    assert_eq!(seen.turn().await, "The webhook ci was called.");
    assert_eq!(
        call("ci", "wrong", b"").await,
        Err(HookError::Unauthorized("ci".to_owned()))
    );
    assert_eq!(
        call("cd", secret, b"").await,
        Err(HookError::Unknown("cd".to_owned()))
    );
    assert!(matches!(
        call("ci", secret, &[0xff]).await,
        Err(HookError::Body { .. })
    ));
    assert!(matches!(
        call("ci", secret, &[b'x'; 300_000]).await,
        Err(HookError::Body { .. })
    ));

    let other = server.create_session("/w").await.unwrap();
    let others = Inbox::open(&other);
    let hook = || Hook::new("ci", secret).unwrap();
    assert_eq!(
        hooks.add(hook(), &others),
        Err(HookError::InUse("ci".to_owned()))
    );
    server.close_session(session.id()).await.unwrap();
    inbox.0.sender.closed().await;
    let closed = InboxError::Closed;
    let name = "ci".to_owned();
    assert_eq!(
        call("ci", secret, b"").await,
        Err(HookError::Inbox {
            name,
            error: closed
        })
    );
    hooks.add(hook(), &others).unwrap();
    drop(others);
    assert_eq!(
        call("ci", secret, b"").await,
        Err(HookError::Unknown("ci".to_owned()))
    );
}

/// What was accepted has its turn, also when its process ends before.
#[test]
fn a_call_that_was_accepted_outlives_its_process() {
    let store = std::sync::Arc::new(acp_server::store::MemoryStore::new());
    let process = |life: &mut dyn FnMut(Server) -> BoxFuture<'static, ()>| {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        let runtime = runtime.unwrap();
        runtime.block_on(async {
            life(Server::builder(Echo).store(store.clone()).build()).await;
        });
    };
    process(&mut |server| {
        Box::pin(async move {
            let session = server.named_session("ci", "/w").await.unwrap();
            let mut hanging = session.prompt(vec!["hang".into()]).unwrap();
            hanging.started().await.unwrap();
            let (hooks, secret) = (Hooks::new(), "0123456789abcdef");
            let inbox = Inbox::opening(move || {
                let server = server.clone();
                Box::pin(async move { server.named_session("ci", "/w").await })
            });
            hooks.add(Hook::new("ci", secret).unwrap(), &inbox).unwrap();
            for call in 0..1000 {
                let received = hooks.receive("ci", Credentials::Token(secret), b"");
                match received.await {
                    Ok(()) => assert!(call < 16, "more than the session has room for"),
                    Err(HookError::Inbox { error, .. }) => {
                        assert_eq!((call, error), (16, InboxError::Full));
                        break;
                    }
                    Err(error) => panic!("{error}"),
                }
            }
        })
    });
    process(&mut |server| {
        Box::pin(async move {
            let session = server.named_session("ci", "/w").await.unwrap();
            let mut seen = Seen::new(&session);
            assert_eq!(seen.turn().await, "hang", "it was interrupted");
            for _ in 0..16 {
                assert_eq!(seen.turn().await, "The webhook ci was called.");
            }
        })
    });
}
