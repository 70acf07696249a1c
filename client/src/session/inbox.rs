//! What arrives for one session, until somebody takes it.
//!
//! During a turn events wait for its reader, and who brings them waits while more than
//! [`HIGH_WATER`] bytes are unread: the connection then stops reading, and the agent
//! notices. Outside of a turn nobody may be reading, so the latest updates are kept within
//! a limit and the oldest are dropped and counted. Nothing of one turn is seen by the next.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use acp_sdk::v1::{
    ContentBlock, RequestPermissionOutcome, RequestPermissionRequest, SessionUpdate, ToolCallId,
    ToolKind,
};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::Missed;
use crate::permission::Question;

/// Unread bytes of a turn above which the bringer waits.
const HIGH_WATER: usize = 1 << 20;

/// Bytes of updates kept outside of turns.
const IDLE_BYTES: usize = 8 << 20;

/// The same for a session that nobody here knows yet.
const UNCLAIMED_BYTES: usize = 256 << 10;

/// Tool calls of which title and kind are remembered.
const REMEMBERED_CALLS: usize = 256;

/// What an event weighs beyond its content.
const OVERHEAD: usize = 64;

/// Something that happened during a turn.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Event {
    /// The agent reported progress.
    Update(SessionUpdate),
    /// The agent asked for permission and has its answer.
    Permission(Answered),
    /// The connection to a remote agent was lost, and updates may be missing here.
    Gap(Gap),
}

/// What becomes of a session whose connection was lost and which cannot be continued where it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Gap {
    /// The session was loaded: the whole conversation follows, from its beginning.
    Loaded,
    /// The agent does not keep its oldest updates: some are missing.
    Truncated,
    /// The agent cannot open the session again. Nothing more comes.
    Lost,
}

/// A question for permission and its answer.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Answered {
    /// What the agent asked.
    pub question: Question,
    /// What it was told.
    pub outcome: RequestPermissionOutcome,
}

/// One turn: what happens in it, and how it is being ended.
#[derive(Debug)]
pub(crate) struct TurnState {
    /// Somebody wants the turn to be cancelled.
    pub(crate) cancel: CancellationToken,
    /// The agent has been told so; from now on its questions are answered `cancelled`.
    pub(crate) told: CancellationToken,
    /// The agent has not ended the cancelled turn in time. Nobody waits for its end any more.
    pub(crate) given_up: CancellationToken,
    /// The agent has ended the turn.
    pub(crate) ended: CancellationToken,
    unread: Mutex<Unread>,
    /// Wakes those who wait for room, or for the reader to wait.
    room: Notify,
}

#[derive(Debug)]
struct Unread {
    /// None once nobody reads any more.
    events: Option<Queue<Event>>,
    reader: Option<Waker>,
    /// The reader has taken everything and waits for more.
    waits: bool,
}

impl Unread {
    fn pop(&mut self) -> Option<Event> {
        self.events.as_mut()?.pop()
    }
}

impl TurnState {
    fn new() -> Self {
        Self {
            cancel: CancellationToken::new(),
            told: CancellationToken::new(),
            given_up: CancellationToken::new(),
            ended: CancellationToken::new(),
            unread: Mutex::new(Unread {
                events: Some(Queue::default()),
                reader: None,
                waits: false,
            }),
            room: Notify::new(),
        }
    }

    /// The next event that is there, or a wake-up when there is one.
    pub(crate) fn poll_event(&self, cx: &mut Context<'_>) -> Poll<Event> {
        // Locked once, so that no event falls between the look and the wake-up.
        let mut unread = lock(&self.unread);
        let event = unread.pop();
        if event.is_none() {
            unread.reader = Some(cx.waker().clone());
            unread.waits = true;
        }
        drop(unread);
        self.room.notify_waiters();
        event.map_or(Poll::Pending, Poll::Ready)
    }

    /// The next event that is there.
    pub(crate) fn ready_event(&self) -> Option<Event> {
        let event = lock(&self.unread).pop()?;
        self.room.notify_waiters();
        Some(event)
    }

    /// Waits until the reader has taken everything and waits for more, or has left.
    pub(crate) async fn caught_up(&self) {
        loop {
            let changed = self.room.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            {
                let unread = lock(&self.unread);
                if unread.waits || unread.events.is_none() {
                    return;
                }
            }
            changed.await;
        }
    }

    /// Nobody reads the events any more.
    pub(crate) fn stop_reading(&self) {
        lock(&self.unread).events = None;
        self.room.notify_waiters();
    }

    /// Hands an event to the reader.
    fn offer(&self, event: Event, bytes: usize) -> Offer {
        let mut unread = lock(&self.unread);
        let Some(events) = &mut unread.events else {
            return Offer::NobodyReads(event);
        };
        if events.bytes > HIGH_WATER {
            return Offer::NoRoom(event);
        }
        events.push(event, bytes);
        unread.waits = false;
        if let Some(reader) = unread.reader.take() {
            reader.wake();
        }
        Offer::Taken
    }

    /// Hands an event to the reader, who may be far behind; hands it back if there is none.
    async fn deliver(&self, mut event: Event, bytes: usize) -> Result<(), Event> {
        loop {
            let room = self.room.notified();
            tokio::pin!(room);
            // Registered before the look, so that no wake-up falls between.
            room.as_mut().enable();
            event = match self.offer(event, bytes) {
                Offer::Taken => return Ok(()),
                Offer::NobodyReads(event) => return Err(event),
                Offer::NoRoom(event) => event,
            };
            room.await;
        }
    }
}

/// What became of an event.
enum Offer {
    Taken,
    NoRoom(Event),
    NobodyReads(Event),
}

/// An update for which there was no room.
#[derive(Debug)]
pub(crate) struct Waiting {
    turn: Arc<TurnState>,
    event: Event,
    bytes: usize,
}

/// What arrives for one session.
#[derive(Debug, Default)]
pub(crate) struct Inbox(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    claimed: bool,
    turn: Option<Arc<TurnState>>,
    idle: Queue<SessionUpdate>,
    dropped: u64,
    gap: Option<Gap>,
    /// Told when an update comes outside of a turn.
    kept: Arc<Notify>,
    calls: VecDeque<Announced>,
}

/// A std mutex suffices: it is held for a few instructions and never across an await.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[derive(Debug)]
struct Queue<T> {
    entries: VecDeque<(T, usize)>,
    bytes: usize,
}

impl<T> Default for Queue<T> {
    fn default() -> Self {
        Self {
            entries: VecDeque::new(),
            bytes: 0,
        }
    }
}

impl<T> Queue<T> {
    fn push(&mut self, entry: T, bytes: usize) {
        self.bytes += bytes;
        self.entries.push_back((entry, bytes));
    }

    fn pop(&mut self) -> Option<T> {
        let (entry, bytes) = self.entries.pop_front()?;
        self.bytes -= bytes;
        Some(entry)
    }
}

/// What an agent said of a tool call when it announced it.
#[derive(Debug)]
struct Announced {
    id: ToolCallId,
    title: Option<String>,
    kind: Option<ToolKind>,
}

impl Inbox {
    /// From now on the session is known, and more may wait for it.
    pub(crate) fn claim(&self) {
        lock(&self.0).claimed = true;
    }

    /// Begins a turn, unless one is going on; yields that one then.
    pub(crate) fn begin(&self) -> Result<Arc<TurnState>, Arc<TurnState>> {
        let mut state = lock(&self.0);
        if let Some(turn) = state.running() {
            return Err(turn.clone());
        }
        let turn = Arc::new(TurnState::new());
        state.turn = Some(turn.clone());
        Ok(turn)
    }

    /// The turn that is going on.
    pub(crate) fn turn(&self) -> Option<Arc<TurnState>> {
        lock(&self.0).running().cloned()
    }

    /// Takes in an update. If the reader of the turn is far behind, what is handed back is to
    /// be [put in later](Self::put_in); the two are apart because that is rare, and the state
    /// of the wait should not burden every update.
    #[must_use]
    pub(crate) fn take_in(&self, update: SessionUpdate) -> Option<Waiting> {
        let bytes = weight(&update);
        let mut state = lock(&self.0);
        state.remember(&update);
        let Some(turn) = state.running().cloned() else {
            state.keep(update, bytes);
            return None;
        };
        match turn.offer(Event::Update(update), bytes) {
            Offer::Taken => None,
            Offer::NoRoom(event) => Some(Waiting { turn, event, bytes }),
            Offer::NobodyReads(event) => {
                state.keep_event(event, bytes);
                None
            }
        }
    }

    /// Takes in that updates may be missing.
    #[cfg(feature = "remote")]
    pub(crate) async fn missing(&self, gap: Gap) {
        if let Some(turn) = self.turn()
            && turn.deliver(Event::Gap(gap), OVERHEAD).await.is_ok()
        {
            return;
        }
        let mut state = lock(&self.0);
        state.gap = Some(gap);
        state.kept.notify_waiters();
    }

    /// Waits for room, and takes the update in.
    pub(crate) async fn put_in(&self, waiting: Waiting) {
        let Waiting { turn, event, bytes } = waiting;
        if let Err(event) = turn.deliver(event, bytes).await {
            lock(&self.0).keep_event(event, bytes);
        }
    }

    /// Takes in an answered question. Outside of a turn there is nobody to be told.
    pub(crate) async fn answered(&self, answered: Answered) {
        let bytes = OVERHEAD + counted(&answered.question.request);
        if let Some(turn) = self.turn() {
            let _ = turn.deliver(Event::Permission(answered), bytes).await;
        }
    }

    /// A question, with what the agent said about the tool call before.
    pub(crate) fn question(&self, request: RequestPermissionRequest) -> Question {
        let state = lock(&self.0);
        let known = state
            .calls
            .iter()
            .find(|call| call.id == request.tool_call.tool_call_id);
        let mut question = Question::new(request);
        if let Some(known) = known {
            question.title = question.title.or_else(|| known.title.clone());
            question.kind = question.kind.or_else(|| known.kind.clone());
        }
        question
    }

    /// Waits for updates that come outside of turns.
    pub(crate) async fn next_missed(&self) -> Missed {
        let kept = lock(&self.0).kept.clone();
        loop {
            let mut another = std::pin::pin!(kept.notified());
            // Registered before the look, so that no update falls between.
            another.as_mut().enable();
            let missed = self.take_missed();
            if !missed.is_empty() {
                return missed;
            }
            another.await;
        }
    }

    /// The updates that came outside of turns.
    pub(crate) fn take_missed(&self) -> Missed {
        let mut state = lock(&self.0);
        let idle = std::mem::take(&mut state.idle);
        Missed {
            updates: idle.entries.into_iter().map(|(update, _)| update).collect(),
            dropped: std::mem::take(&mut state.dropped),
            gap: state.gap.take(),
        }
    }
}

impl State {
    fn running(&self) -> Option<&Arc<TurnState>> {
        let turn = self.turn.as_ref();
        turn.filter(|turn| !turn.ended.is_cancelled())
    }

    fn remember(&mut self, update: &SessionUpdate) {
        let (id, title, kind) = match update {
            SessionUpdate::ToolCall(call) => {
                (&call.tool_call_id, Some(call.title.clone()), &call.kind)
            }
            SessionUpdate::ToolCallUpdate(call) => {
                (&call.tool_call_id, call.title.clone(), &call.kind)
            }
            _ => return,
        };
        let kind = kind.clone();
        if let Some(known) = self.calls.iter_mut().find(|call| call.id == *id) {
            known.title = title.or_else(|| known.title.take());
            known.kind = kind.or_else(|| known.kind.take());
            return;
        }
        if self.calls.len() == REMEMBERED_CALLS {
            self.calls.pop_front();
        }
        let id = id.clone();
        self.calls.push_back(Announced { id, title, kind });
    }

    fn keep_event(&mut self, event: Event, bytes: usize) {
        if let Event::Update(update) = event {
            self.keep(update, bytes);
        }
    }

    fn keep(&mut self, update: SessionUpdate, bytes: usize) {
        let most = if self.claimed {
            IDLE_BYTES
        } else {
            UNCLAIMED_BYTES
        };
        self.idle.push(update, bytes);
        self.kept.notify_waiters();
        while self.idle.bytes > most && self.idle.pop().is_some() {
            self.dropped += 1;
        }
    }
}

/// How many bytes an update takes, about.
pub(super) fn weight(update: &SessionUpdate) -> usize {
    let content = match update {
        // By far the most frequent, so it is not worth writing as JSON.
        SessionUpdate::AgentMessageChunk(chunk) | SessionUpdate::AgentThoughtChunk(chunk) => {
            match &chunk.content {
                ContentBlock::Text(text) => text.text.len(),
                other => counted(other),
            }
        }
        other => counted(other),
    };
    OVERHEAD + content
}

fn counted(value: &impl serde::Serialize) -> usize {
    struct Count(usize);
    impl io::Write for Count {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut count = Count(0);
    // What cannot be written as JSON did not come from JSON.
    let _ = serde_json::to_writer(&mut count, value);
    count.0
}

#[cfg(test)]
mod tests {
    use acp_sdk::v1::{ContentChunk, TextContent, ToolCall, ToolCallUpdate};

    use super::*;

    fn text(text: impl Into<String>) -> SessionUpdate {
        let block = ContentBlock::Text(TextContent::new(text));
        SessionUpdate::AgentMessageChunk(ContentChunk::new(block))
    }

    /// Fails a test that would hang.
    async fn within<T>(future: impl IntoFuture<Output = T>) -> T {
        let limit = std::time::Duration::from_secs(30);
        let result = tokio::time::timeout(limit, future).await;
        result.expect("nobody wakes it")
    }

    async fn update(inbox: &Inbox, update: SessionUpdate) {
        if let Some(waiting) = inbox.take_in(update) {
            inbox.put_in(waiting).await;
        }
    }

    fn next(turn: &TurnState) -> Option<SessionUpdate> {
        match turn.poll_event(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(Event::Update(update)) => Some(update),
            _ => None,
        }
    }

    #[tokio::test]
    async fn updates_of_a_turn_are_kept_apart() {
        let inbox = Inbox::default();
        update(&inbox, text("before")).await;
        let turn = inbox.begin().unwrap();
        update(&inbox, text("during")).await;
        turn.ended.cancel();
        update(&inbox, text("after")).await;
        let missed = inbox.take_missed();
        assert_eq!(missed.updates, [text("before"), text("after")]);
        assert_eq!(missed.dropped, 0);

        let second = inbox.begin().unwrap();
        assert_eq!(next(&second), None);
        assert_eq!(next(&turn), Some(text("during")));
        assert_eq!(next(&turn), None);
    }

    #[tokio::test]
    async fn memory_outside_of_turns_is_bounded() {
        for (claimed, most) in [(true, IDLE_BYTES), (false, UNCLAIMED_BYTES)] {
            let inbox = Inbox::default();
            if claimed {
                inbox.claim();
            }
            let kilobyte = "x".repeat(1 << 10);
            let count = (2 * most) >> 10;
            for _ in 0..count {
                update(&inbox, text(kilobyte.as_str())).await;
            }
            assert!(lock(&inbox.0).idle.bytes <= most);
            let missed = inbox.take_missed();
            assert_eq!(missed.updates.len() as u64 + missed.dropped, count as u64);
            assert!(missed.updates.len() > count / 3);
        }
    }

    #[tokio::test]
    async fn a_slow_reader_makes_the_bringer_wait() {
        let inbox = Arc::new(Inbox::default());
        let turn = inbox.begin().unwrap();
        let big = "x".repeat(HIGH_WATER);
        update(&inbox, text(big.as_str())).await;
        let waiting = tokio::spawn({
            let inbox = inbox.clone();
            async move { update(&inbox, text("last")).await }
        });
        tokio::task::yield_now().await;
        assert!(!waiting.is_finished());
        assert_eq!(next(&turn), Some(text(big)));
        within(waiting).await.unwrap();
        assert_eq!(next(&turn), Some(text("last")));
    }

    #[tokio::test]
    async fn a_reader_that_leaves_lets_the_bringer_go_on() {
        let inbox = Arc::new(Inbox::default());
        let turn = inbox.begin().unwrap();
        update(&inbox, text("x".repeat(HIGH_WATER))).await;
        let waiting = tokio::spawn({
            let inbox = inbox.clone();
            async move { update(&inbox, text("last")).await }
        });
        tokio::task::yield_now().await;
        turn.stop_reading();
        within(waiting).await.unwrap();
        assert_eq!(inbox.take_missed().updates, [text("last")]);
    }

    #[test]
    fn a_reader_on_another_thread_misses_no_event() {
        let inbox = Inbox::default();
        let turn = inbox.begin().unwrap();
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
                    assert!(inbox.take_in(text("ping")).is_none());
                    // The next event comes only when this one has been seen.
                    answered.recv().unwrap();
                }
            });
            runtime.block_on(async {
                for _ in 0..20_000 {
                    within(std::future::poll_fn(|cx| turn.poll_event(cx))).await;
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
        let first = inbox.begin().unwrap();
        let running = inbox.begin().unwrap_err();
        assert!(Arc::ptr_eq(&first, &running));
        first.ended.cancel();
        assert!(inbox.turn().is_none());
        let second = inbox.begin().unwrap();
        assert!(!Arc::ptr_eq(&first, &second));
    }

    #[tokio::test]
    async fn questions_know_what_was_announced() {
        let inbox = Inbox::default();
        let call = ToolCall::new("a", "Read it").with_kind(ToolKind::Read);
        update(&inbox, SessionUpdate::ToolCall(call)).await;
        let renamed = ToolCallUpdate::new("a").with_title("Read that");
        update(&inbox, SessionUpdate::ToolCallUpdate(renamed)).await;
        let ask = |call| inbox.question(RequestPermissionRequest::new("s", call, vec![]));
        let question = ask(ToolCallUpdate::new("a"));
        assert_eq!(question.title.as_deref(), Some("Read that"));
        assert_eq!(question.kind, Some(ToolKind::Read));
        let question = ask(ToolCallUpdate::new("a").with_kind(ToolKind::Edit));
        assert_eq!(question.kind, Some(ToolKind::Edit), "the question is newer");
        assert_eq!(ask(ToolCallUpdate::new("b")).kind, None);

        for number in 0..REMEMBERED_CALLS {
            let call = ToolCall::new(format!("{number}"), "");
            update(&inbox, SessionUpdate::ToolCall(call)).await;
        }
        assert_eq!(ask(ToolCallUpdate::new("a")).kind, None);
        assert_eq!(lock(&inbox.0).calls.len(), REMEMBERED_CALLS);
    }
}
