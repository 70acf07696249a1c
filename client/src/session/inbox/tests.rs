use std::task::{Context, Poll, Waker};

use acp_sdk::v1::{ContentChunk, SessionModeState, TextContent};

use super::super::Events;
use super::super::Sessions;
use super::super::reader::HIGH_WATER;
use super::super::set_opened;
use super::delivery::{KEPT_BYTES, UNCLAIMED_BYTES};
use super::*;

fn text(text: impl Into<String>) -> SessionUpdate {
    let block = ContentBlock::Text(TextContent::new(text));
    SessionUpdate::AgentMessageChunk(ContentChunk::new(block))
}

/// Fails a test that would hang.
async fn within<T>(future: impl IntoFuture<Output = T>) -> T {
    let result = tokio::time::timeout(Duration::from_secs(30), future).await;
    result.expect("nobody wakes it")
}

fn reader_timeout(sessions: &Sessions) -> ReaderTimeout<'_> {
    ReaderTimeout {
        limit: Duration::from_secs(10),
        sessions: Some(sessions),
    }
}

async fn update(inbox: &Inbox, update: SessionUpdate) {
    if let Some(waiting) = inbox.push_update(update, Origin::default()).waiting {
        // Nothing else needs the connection.
        inbox
            .put_in(waiting, &reader_timeout(&Sessions::new()))
            .await;
    }
}

/// What a reader finds: texts, and other events by their names.
fn words(reader: &Reader) -> Vec<String> {
    let mut words = Vec::new();
    while let Some(event) = reader.ready() {
        words.push(match event.event {
            Event::Update(SessionUpdate::AgentMessageChunk(ContentChunk {
                content: ContentBlock::Text(text),
                ..
            })) => format!("{:?} {}", event.turn.unwrap_or(0), text.text),
            Event::Missed(count) => format!("missed {count}"),
            Event::TurnStarted { prompt } => format!("prompt of {}", prompt.len()),
            Event::TurnEnded { stop_reason } => format!("end {stop_reason:?}"),
            Event::HistoryEnd => "history ends".to_owned(),
            other => format!("{other:?}"),
        });
    }
    words
}

fn begin(inbox: &Inbox) -> Arc<TurnState> {
    inbox.begin(&[ContentBlock::from("hi")], None).unwrap()
}

#[tokio::test]
async fn updates_of_a_turn_are_kept_apart() {
    let inbox = Arc::new(Inbox::default());
    update(&inbox, text("before")).await;
    let turn = begin(&inbox);
    update(&inbox, text("during")).await;
    inbox.end_turn(&turn, Some(StopReason::EndTurn));
    update(&inbox, text("after")).await;
    let events = inbox.add_reader();
    assert_eq!(words(&events), ["0 before", "0 after"]);

    let second = begin(&inbox);
    assert_eq!(words(&second.reader), [""; 0]);
    assert_eq!(words(&turn.reader), ["1 during"]);
    assert_eq!(words(&turn.reader), [""; 0]);
}

#[tokio::test]
async fn a_reader_of_everything_sees_turns_and_what_is_between_them() {
    let inbox = Arc::new(Inbox::default());
    let (first, second) = (inbox.add_reader(), inbox.add_reader());
    let turn = begin(&inbox);
    update(&inbox, text("during")).await;
    inbox.end_turn(&turn, Some(StopReason::EndTurn));
    inbox.end_turn(&turn, None);
    update(&inbox, text("after")).await;
    let all = ["prompt of 1", "1 during", "end Some(EndTurn)", "0 after"];
    assert_eq!(words(&first), all);
    assert_eq!(words(&second), all);
    assert_eq!(words(&turn.reader), ["1 during"]);
    // The one that comes later begins later.
    let late = inbox.add_reader();
    update(&inbox, text("more")).await;
    assert_eq!(words(&late), ["0 more"]);
}

#[tokio::test]
async fn history_is_marked_and_has_an_end() {
    let inbox = Arc::new(Inbox::default());
    inbox.begin_history();
    update(&inbox, text("old")).await;
    inbox.end_history();
    inbox.end_history();
    update(&inbox, text("new")).await;
    let mut events = Events::new(inbox);
    let mut phases = Vec::new();
    while let Some(event) = events.next_ready() {
        phases.push((event.phase, matches!(event.event, Event::HistoryEnd)));
    }
    let expected = [
        (Phase::Replayed, false),
        (Phase::Live, true),
        (Phase::Live, false),
    ];
    assert_eq!(phases, expected);
}

/// Whoever waits for the end takes what came for the whole conversation.
#[tokio::test]
async fn a_history_that_is_cut_off_has_no_end() {
    let inbox = Arc::new(Inbox::default());
    inbox.begin_history();
    update(&inbox, text("old")).await;
    inbox.abort_history();
    inbox.end_history();
    update(&inbox, text("new")).await;
    let events = inbox.add_reader();
    assert_eq!(words(&events), ["0 old", "0 new"]);
}

#[tokio::test]
async fn what_nobody_reads_is_bounded() {
    for (claimed, most) in [(true, KEPT_BYTES), (false, UNCLAIMED_BYTES)] {
        let inbox = Inbox::default();
        if claimed {
            inbox.claim();
        }
        let kilobyte = "x".repeat(1 << 10);
        let count = (2 * most) >> 10;
        for _ in 0..count {
            update(&inbox, text(kilobyte.as_str())).await;
        }
        assert!(inbox.lock().backlog.as_ref().unwrap().events.bytes <= most);
        let words = words(&inbox.add_reader());
        let missed = count - (words.len() - 1);
        assert_eq!(words[0], format!("missed {missed}"));
        assert!(words.len() > count / 3);
    }
}

#[tokio::test]
async fn a_slow_reader_makes_the_bringer_wait() {
    let inbox = Arc::new(Inbox::default());
    let turn = begin(&inbox);
    let big = "x".repeat(HIGH_WATER);
    update(&inbox, text(big.as_str())).await;
    let waiting = tokio::spawn({
        let inbox = inbox.clone();
        async move { update(&inbox, text("last")).await }
    });
    tokio::task::yield_now().await;
    assert!(!waiting.is_finished());
    assert_eq!(words(&turn.reader), [format!("1 {big}")]);
    within(waiting).await.unwrap();
    assert_eq!(words(&turn.reader), ["1 last"]);
}

#[tokio::test]
async fn a_reader_that_leaves_lets_the_bringer_go_on() {
    let inbox = Arc::new(Inbox::default());
    let turn = begin(&inbox);
    update(&inbox, text("x".repeat(HIGH_WATER))).await;
    let waiting = tokio::spawn({
        let inbox = inbox.clone();
        async move { update(&inbox, text("last")).await }
    });
    tokio::task::yield_now().await;
    turn.reader.leave();
    within(waiting).await.unwrap();
    assert_eq!(words(&inbox.add_reader()), ["1 last"]);
}

#[tokio::test(start_paused = true)]
async fn a_reader_that_takes_nothing_is_left_behind_when_others_wait() {
    let inbox = Arc::new(Inbox::default());
    let (idle, events) = (inbox.add_reader(), inbox.add_reader());
    let sessions = Sessions::new();
    let reader_timeout = reader_timeout(&sessions);
    assert!(
        inbox
            .push_update(text("x".repeat(HIGH_WATER)), Origin::default())
            .waiting
            .is_none()
    );
    assert_eq!(words(&events).len(), 1);
    let waiting = inbox
        .push_update(text("second"), Origin::default())
        .waiting
        .unwrap();
    assert_eq!(words(&events), ["0 second"], "the other one has it");
    let mut put = std::pin::pin!(inbox.put_in(waiting, &reader_timeout));
    let minute = tokio::time::timeout(Duration::from_secs(60), put.as_mut());
    assert!(minute.await.is_err(), "nothing else needs the connection");
    let _request = sessions.call();
    let soon = tokio::time::timeout(Duration::from_secs(11), put);
    soon.await.expect("it is waited for no longer");
    // From here on it costs no time.
    assert!(
        inbox
            .push_update(text("third"), Origin::default())
            .waiting
            .is_none()
    );
    assert_eq!(words(&events), ["0 third"]);
    let read = words(&idle);
    assert_eq!((read.len(), read[1].as_str()), (2, "missed 2"));
    assert!(
        inbox
            .push_update(text("fourth"), Origin::default())
            .waiting
            .is_none()
    );
    assert_eq!(words(&idle), ["0 fourth"], "it has caught up");
}

#[tokio::test]
async fn an_outcome_is_complete_although_nobody_reads() {
    let inbox = Arc::new(Inbox::default());
    let turn = begin(&inbox);
    turn.reader.discard();
    for _ in 0..4 {
        update(&inbox, text("x".repeat(HIGH_WATER))).await;
    }
    inbox.end_turn(&turn, Some(StopReason::EndTurn));
    update(&inbox, text("late")).await;
    let outcome = turn.gathering().finish(StopReason::EndTurn);
    assert_eq!(outcome.text.len(), 4 * HIGH_WATER);
}

#[test]
fn a_reader_on_another_thread_misses_no_event() {
    let inbox = Inbox::default();
    let turn = begin(&inbox);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .unwrap();
    let (answer, answered) = std::sync::mpsc::channel();
    let started = std::time::Instant::now();
    std::thread::scope(|scope| {
        let inbox = &inbox;
        scope.spawn(move || {
            for _ in 0..20_000 {
                assert!(
                    inbox
                        .push_update(text("ping"), Origin::default())
                        .waiting
                        .is_none()
                );
                // The next event comes only when this one has been seen.
                answered.recv().unwrap();
            }
        });
        runtime.block_on(async {
            for _ in 0..20_000 {
                within(std::future::poll_fn(|cx| turn.reader.poll(cx))).await;
                answer.send(()).unwrap();
            }
        });
    });
    // A missed event is found at last, by the timer of the guard.
    assert!(started.elapsed().as_secs() < 25, "an event was missed");
}

#[test]
fn a_session_has_one_turn_at_a_time() {
    let inbox = Inbox::default();
    let first = begin(&inbox);
    let running = inbox.begin(&[], None).unwrap_err();
    assert!(Arc::ptr_eq(&first, &running));
    inbox.give_up_turn(&first);
    assert!(inbox.turn().is_some(), "the agent still works on it");
    let ended = first.reader.poll(&mut Context::from_waker(Waker::noop()));
    assert!(matches!(ended, Poll::Ready(None)), "nobody waits for it");
    inbox.end_turn(&first, None);
    assert!(inbox.turn().is_none());
    let second = begin(&inbox);
    assert!(!Arc::ptr_eq(&first, &second));
}

#[tokio::test]
async fn settings_are_the_latest() {
    use acp_sdk::v1::{CurrentModeUpdate, SessionInfoUpdate, SessionMode};
    let inbox = Inbox::default();
    let modes = ["ask", "code"].map(|id| SessionMode::new(id, id));
    let modes = SessionModeState::new("ask", modes.to_vec());
    inbox.change_settings(|settings| set_opened(settings, (Some(modes), None), None));
    let mode = CurrentModeUpdate::new("code");
    update(&inbox, SessionUpdate::CurrentModeUpdate(mode)).await;
    let title = SessionInfoUpdate::new().with_title("A title".to_owned());
    update(&inbox, SessionUpdate::SessionInfoUpdate(title)).await;
    // An answer that says nothing of modes changes nothing.
    inbox.change_settings(|settings| set_opened(settings, (None, None), None));
    let settings = inbox.settings();
    assert_eq!(settings.modes.unwrap().current_mode_id.as_str(), "code");
    assert_eq!(settings.title.as_deref(), Some("A title"));
}
