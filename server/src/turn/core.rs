//! What a turn and all guards made from it have in common.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use acp_sdk::v1::{
    ContentBlock, ContentChunk, MessageId, SessionId, SessionUpdate, TextContent, ToolCallId,
    ToolCallStatus, ToolCallUpdate,
};
use acp_sdk::{HandlerResult, Json, Meta};
use tokio::runtime::RuntimeFlavor;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::LeftOpen;
use super::unfinished::Unfinished;
use crate::connection::Client;
use crate::event::RawUpdate;
use crate::event::{TokenUsage, TurnEvent, TurnId};
use crate::log::{Appender, Epoch};
use crate::log_repeated;
use crate::session::{
    Ask, Attached, DecidedPermission, Inserted, Progress, Prompter, Reply, Withdrawn,
};
use crate::store::RecordChange;
use crate::{Capability, Error, Result, Session};

/// How long a turn that has ended waits for clients to answer what cleans up after it.
const CLEANING_UP: Duration = Duration::from_secs(2);

/// The most bytes of text in one update. Some clients accept lines of 64 KiB only, and escapes
/// make text longer.
const LONGEST_PIECE: usize = 32 << 10;

/// Who speaks in a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The user.
    User,
    /// The agent, to the user.
    Agent,
    /// The agent, to itself.
    Thought,
}

impl Role {
    pub(super) fn chunk(self, chunk: ContentChunk) -> SessionUpdate {
        match self {
            Self::User => SessionUpdate::UserMessageChunk(chunk),
            Self::Agent => SessionUpdate::AgentMessageChunk(chunk),
            Self::Thought => SessionUpdate::AgentThoughtChunk(chunk),
        }
    }
}

pub(crate) struct TurnCore {
    pub(crate) session: Session,
    pub(crate) prompt: Vec<ContentBlock>,
    pub(crate) meta: Option<Meta>,
    origin: Option<Prompter>,
    pub(crate) turn: TurnId,
    pub(super) epoch: Epoch,
    pub(crate) cancel: CancellationToken,
    /// Of its prompt, with the input for the turn.
    pub(super) progress: Arc<Progress>,
    /// Set under the log's lock: nothing is appended afterwards.
    ended: AtomicBool,
    open: Mutex<Open>,
    /// What must be completed although nobody waits for it: creating and releasing terminals.
    errands: OnceLock<TaskTracker>,
    /// Files and commands on this machine.
    pub(super) local: super::local::Local,
}

/// What is not finished.
#[derive(Debug, Default)]
pub(super) struct Open {
    pub(super) own: Unfinished,
    pub(super) children: Vec<(SessionId, Unfinished)>,
    pub(super) ids: u64,
    /// Members of the answer besides the stop reason.
    answer: Option<Json>,
}

impl fmt::Debug for TurnCore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TurnCore")
            .field("session", self.session.id())
            .field("turn", &self.turn)
            .field("ended", &self.ended)
            .finish_non_exhaustive()
    }
}

impl TurnCore {
    /// Begins a turn: appends its start and what the user said.
    ///
    /// # Errors
    ///
    /// When the store has failed.
    pub(super) async fn begin(
        session: &Session,
        prompt: &mut crate::session::Prompt,
    ) -> Result<Arc<Self>> {
        let log = session.log();
        let epoch = log.epoch();
        log.wait_for_room().await;
        let without_end = session.state().queue.without_end();
        if let Some(turn) = without_end {
            // Boxed, because it is rare, and every turn has room for it otherwise.
            Box::pin(end_lost(session, epoch, turn)).await?;
        }
        let client = prompt.origin.as_ref();
        let client = client.and_then(|origin| origin.name.as_deref().map(str::to_owned));
        let model = session.state().settings.model().map(str::to_owned);
        let (turn, inserted, prompted) = log.append_deferred(epoch, |appender| {
            let turn = TurnId(appender.next_number());
            let name = prompt.name().map(str::to_owned);
            push(
                appender,
                &TurnEvent::TurnStarted {
                    turn,
                    client,
                    prompt: name,
                    model,
                },
            )?;
            let message = prompt.message.clone();
            let message = message.unwrap_or_else(|| MessageId::from(format!("message-{}", turn.0)));
            let mut pushed = Vec::with_capacity(prompt.blocks.len());
            for block in prompt.blocks.drain(..) {
                let chunk = ContentChunk::new(block).with_message_id(&message);
                let update = SessionUpdate::UserMessageChunk(chunk);
                push(appender, &update)?;
                // Taken back instead of copied: images are large.
                if let SessionUpdate::UserMessageChunk(chunk) = update {
                    pushed.push(chunk.content);
                }
            }
            appender.change(RecordChange {
                running_turn: Some(Some(turn.0)),
                ..RecordChange::default()
            });
            let last_event = appender.next_number() - 1;
            if let Some(origin) = &prompt.origin {
                // Its words, not the start of the turn.
                origin.subscription.knows(turn.0 + 1, last_event);
            }
            session.state().queue.started(turn);
            let inserted = Inserted {
                turn,
                message,
                last_event,
            };
            prompt.begin(appender);
            Ok::<_, Error>((turn, inserted, pushed))
        })?;
        // Before anybody can see that it has started.
        session.core().counters.turns_started.increment();
        let client = prompt.origin.as_ref().map(|origin| origin.client.0);
        tracing::debug!(session = %session.id(), turn = turn.0, client, "turn started");
        // On one thread a task could not begin before the handler waits for something, and many
        // turns end without: then their events are committed together.
        if runtime_flavor() != Some(RuntimeFlavor::CurrentThread) {
            log.start_commit();
        }
        // A prompt starts one turn.
        let _ = prompt.progress.inserted.set(inserted);
        Ok(Arc::new(Self {
            session: session.clone(),
            prompt: prompted,
            meta: prompt.meta.take(),
            origin: prompt.origin.clone(),
            turn,
            epoch,
            cancel: prompt.cancel.clone(),
            progress: prompt.progress.clone(),
            ended: AtomicBool::new(false),
            open: Mutex::default(),
            errands: OnceLock::new(),
            local: super::local::Local::new(prompt.origin.as_ref()),
        }))
    }

    /// Waits until the start of the turn is committed.
    ///
    /// # Errors
    ///
    /// The store's.
    pub(super) async fn begun(&self) -> Result<()> {
        let committed = self.session.log().flush(self.epoch).await;
        committed.map_err(Error::Store)
    }

    /// Returns whether an attached client offers this, or this machine is used instead.
    pub(crate) fn offers(&self, capability: Capability) -> bool {
        self.client(capability).is_some() || self.falls_back(capability)
    }

    /// Returns the client that prompted if it offers this, or another one that does.
    fn client(&self, capability: Capability) -> Option<Attached> {
        let clients = self.session.clients();
        let origin = self.origin.as_ref().map(|origin| origin.client);
        let mut offering = clients
            .into_iter()
            .filter(|old| old.client.offers(capability));
        let first = offering.next()?;
        if Some(first.client.id()) == origin {
            return Some(first);
        }
        let prompted = offering.find(|old| Some(old.client.id()) == origin);
        Some(prompted.unwrap_or(first))
    }

    /// Returns a client that offers this, once it has been sent what was appended so far.
    ///
    /// # Errors
    ///
    /// [`Error::Unsupported`] if there is none.
    pub(crate) async fn needs(&self, capability: Capability) -> Result<Arc<Client>> {
        self.check_open("a request")?;
        let attached = self.client(capability);
        let attached = attached.ok_or(Error::Unsupported(capability))?;
        let reached = attached
            .subscription
            .sent_through(self.session.log().last());
        self.unless_cancelled(async { reached.await.map_err(Error::Store) })
            .await?;
        Ok(attached.client)
    }

    /// Waits until a client has been sent what was appended so far: a request must not overtake
    /// the updates before it.
    pub(crate) async fn caught_up(&self, client: &Client) {
        if let Some(subscription) = client.subscription(self.session.id()) {
            // When older events cannot be read there is nothing to wait for.
            let _ = subscription.sent_through(self.session.log().last()).await;
        }
    }

    /// Waits for a client, as long as the turn is not cancelled.
    pub(crate) async fn unless_cancelled<T, E: Into<Error>>(
        &self,
        waiting: impl Future<Output = Result<T, E>>,
    ) -> Result<T> {
        self.check_open("a request")?;
        tokio::select! {
            biased;
            () = self.cancel.cancelled() => Err(Error::Cancelled),
            answer = waiting => answer.map_err(Into::into),
        }
    }

    /// Adds text to the message of a role, in pieces that every client accepts.
    pub(crate) async fn send_text(&self, role: Role, text: String) -> Result<()> {
        if text.len() <= LONGEST_PIECE {
            let block = ContentBlock::Text(TextContent::new(text));
            return self.send_block(role, block).await;
        }
        for piece in pieces(&text) {
            let block = ContentBlock::Text(TextContent::new(piece));
            self.send_block(role, block).await?;
        }
        Ok(())
    }

    /// Adds a chunk to the message of a role.
    pub(crate) async fn send_block(&self, role: Role, block: ContentBlock) -> Result<()> {
        self.append(|appender| {
            let id = self.message(role);
            let chunk = ContentChunk::new(block).with_message_id(id);
            push(appender, &role.chunk(chunk))
        })
        .await
    }

    /// Appends an update.
    pub(crate) fn send(&self, update: SessionUpdate) -> impl Future<Output = Result<()>> + Send {
        self.append(move |appender| self.write(appender, update))
    }

    /// Appends an update under the log's lock.
    pub(super) fn write(
        &self,
        appender: &mut Appender<'_>,
        mut update: SessionUpdate,
    ) -> Result<()> {
        if let Some((role, chunk)) = chunk(&mut update) {
            // Version 2 requires ids, and only the log knows which chunks belong together.
            if chunk.message_id.is_none() {
                chunk.message_id = Some(self.message(role));
            }
            return push(appender, &update);
        }
        self.session.agree(appender, &update);
        push(appender, &update)?;
        self.note(&update);
        Ok(())
    }

    /// Notes what an update that is no chunk opens and finishes.
    fn note(&self, update: &SessionUpdate) {
        self.open().own.note(update);
    }

    /// Appends an update of another agent as it is.
    pub(super) async fn send_raw(&self, update: &mut RawUpdate) -> Result<()> {
        self.append(|appender| {
            match update.role {
                Some(role) if update.needs_message() => update.set_message(&self.message(role)),
                Some(_) => {}
                None => {
                    self.session.agree(appender, &update.known);
                    self.note(&update.known);
                }
            }
            push(appender, &update.to_json())
        })
        .await
    }

    /// Appends to the log, unless the turn has ended.
    #[allow(
        clippy::manual_async_fn,
        reason = "the future of an `async fn` keeps its parameters twice, and updates are large"
    )]
    pub(super) fn append<T>(
        &self,
        write: impl FnOnce(&mut Appender<'_>) -> Result<T> + Send,
    ) -> impl Future<Output = Result<T>> + Send {
        async move {
            self.room().await;
            self.session.log().append_now(Some(self.epoch), |appender| {
                self.check_open("an update")?;
                write(appender)
            })
        }
    }

    /// Appends a question, and has it committed at once: nothing follows before its answer.
    pub(super) async fn append_question(
        &self,
        ask: Ask,
    ) -> Result<(Withdrawn, oneshot::Receiver<Result<Reply>>)> {
        self.room().await;
        let log = self.session.log();
        let asked = log.append_deferred(self.epoch, |appender| {
            self.check_open("a question")?;
            let origin = self.origin.as_ref().map(|origin| origin.client);
            self.session.write_question(appender, ask, origin)
        });
        log.commit_now();
        asked
    }

    /// Appends a question that is answered already.
    pub(super) async fn append_decided(
        &self,
        ask: Ask,
        decided: DecidedPermission,
    ) -> Result<Reply> {
        self.room().await;
        self.session.log().append_deferred(self.epoch, |appender| {
            self.check_open("a question")?;
            self.session.write_decided(appender, ask, decided)
        })
    }

    /// # Errors
    ///
    /// [`Error::TurnEnded`] after the end of the turn.
    pub(super) fn check_open(&self, what: &'static str) -> Result<()> {
        match self.has_ended() {
            true => Err(self.ended(what)),
            false => Ok(()),
        }
    }

    /// Waits until there is room in the log, and the client that paces the turn keeps up.
    pub(super) async fn room(&self) {
        if let Some(number) = self.paced() {
            // Boxed, because it is rare, and every future that appends has room for it otherwise.
            Box::pin(self.pace(number)).await;
        }
        self.session.log().wait_for_room().await;
    }

    /// Returns the event that the client that prompted must be sent first, if it paces: otherwise
    /// it would fall out of the in-memory log.
    fn paced(&self) -> Option<u64> {
        let origin = self.origin.as_ref()?;
        origin.subscription.paces(&self.session)
    }

    /// Waits until the client that prompted has been sent an event.
    async fn pace(&self, number: u64) {
        let Some(origin) = &self.origin else { return };
        tokio::select! {
            // A cancelled turn must be able to end.
            () = self.cancel.cancelled() => {}
            // A client that has gone, or whose events cannot be read, paces no more.
            _ = origin.subscription.sent_through(number) => {}
        }
    }

    /// The guard of a tool call is gone without an end: the call has failed.
    pub(crate) fn call_dropped(&self, id: &ToolCallId) {
        if !self.open().own.has_call(id) {
            return;
        }
        let update = failed(id);
        let appended = self.session.log().append_now(Some(self.epoch), |appender| {
            self.check_open("an update")?;
            self.write(appender, update)
        });
        // If the store has failed, so has the turn.
        drop(appended);
    }

    /// Completes something, even if nobody waits for it any more. Without a tokio runtime, as
    /// while the process ends, it is not done.
    pub(crate) fn errand<F>(self: &Arc<Self>, errand: impl FnOnce(Arc<Self>) -> F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            self.errands().spawn_on(errand(self.clone()), &runtime);
        }
    }

    /// Returns what is completed although nobody waits for it.
    pub(super) fn errands(&self) -> &TaskTracker {
        self.errands.get_or_init(TaskTracker::new)
    }

    /// Ends the turn: no tool call stays open, nothing more is appended, and what was borrowed
    /// from clients has been given back. Returns the number of the last event.
    pub(super) async fn end(
        &self,
        stop: HandlerResult<acp_sdk::v1::StopReason>,
    ) -> crate::session::TurnResult {
        let log = self.session.log();
        // Fails only if the store has failed.
        let closed = log.append_deferred(self.epoch, |appender| {
            self.ended.store(true, Ordering::Release);
            self.close_children(appender)?;
            let calls = self.open().own.take_calls();
            for id in calls {
                push(appender, &failed(&id))?;
            }
            Ok::<_, Error>(())
        });
        self.ended.store(true, Ordering::Release);
        self.local.end();
        if let Some(errands) = self.errands.get() {
            errands.close();
            if !errands.is_empty() {
                log.start_commit();
                // A client that does not answer does not hold up the end of the turn.
                // Boxed, because it is rare, and every turn has room for it otherwise.
                let _ = Box::pin(tokio::time::timeout(CLEANING_UP, errands.wait())).await;
            }
        }
        // Boxed as above.
        let left = match &closed {
            Ok(()) => LeftOpen::default(),
            Err(_) => Box::pin(self.left_open()).await,
        };
        let cancelled = self.cancel.is_cancelled();
        let stop = if cancelled {
            Ok(acp_sdk::v1::StopReason::Cancelled)
        } else {
            stop.and_then(|stop| closed.map(|()| stop).map_err(Into::into))
        };
        let members = self.open().answer.take();
        let usage = members.as_ref().and_then(TokenUsage::of_answer);
        let mut barrier = None;
        let epoch = log.epoch();
        let updated_at = crate::clock::now();
        let appended = log.append_deferred(epoch, |appender| {
            if !self.session.state().queue.has_started(self.turn) {
                // The commit of its start has failed: there is nothing to end.
                self.session.state().queue.ended_without_start();
                return Err(Error::failed(
                    "the start of the turn could not be committed",
                ));
            }
            left.close(appender)?;
            let ended = TurnEvent::TurnEnded {
                turn: self.turn,
                stop_reason: stop.as_ref().ok().cloned(),
                error: stop
                    .as_ref()
                    .err()
                    .map(|error| error.as_response().message.clone()),
                usage,
            };
            let number = appender.next_number();
            push(appender, &ended)?;
            appender.change(RecordChange {
                running_turn: Some(None),
                updated_at: Some(updated_at),
                ..RecordChange::default()
            });
            appender.sync();
            // Clients that are notified of this event see the state after the turn.
            self.session.state().queue.ended(number);
            if let Some(origin) = &self.origin {
                barrier = Some(origin.subscription.barrier(number));
            }
            Ok::<_, Error>(number)
        });
        let flushed = match &appended {
            Ok(_) => {
                // The task of a session's turns is dropped only with the runtime.
                log.commit().await;
                log.flush(epoch).await.map_err(Error::Store)
            }
            Err(error) => Err(error.clone()),
        };
        let last_event = match (&flushed, appended) {
            (Ok(()), Ok(number)) => number,
            // It was not committed: nothing to wait for.
            _ => 0,
        };
        let stop = match (cancelled, flushed) {
            // A turn whose log has ended is cancelled for that reason.
            (cancelled, Err(error)) if !cancelled || log.ended().is_some() => {
                stop.and_then(|_| Err(error.into()))
            }
            _ => stop,
        };
        crate::session::TurnResult {
            stop,
            members,
            last_event,
            barrier,
        }
    }

    /// Returns what is open although a commit of the turn has failed: what ended it may be lost.
    async fn left_open(&self) -> LeftOpen {
        let log = self.session.log();
        // What could not be committed is not read, and the end of the turn tries again.
        let _ = log.flush(log.epoch()).await;
        let left = LeftOpen::of(&self.session, self.turn).await;
        left.unwrap_or_else(|error| {
            let session = self.session.id().as_str();
            log_repeated!(warn, session, %error, "a turn ends, and its tool calls may stay open");
            LeftOpen::default()
        })
    }

    /// Returns the id of the message that a chunk of this role belongs to.
    fn message(&self, role: Role) -> MessageId {
        let mut open = self.open();
        let Open { own, ids, .. } = &mut *open;
        own.message(role, self.turn, ids)
    }

    /// Returns an id that nothing else in the session has or had: turns have numbers of events,
    /// which are never given twice.
    pub(crate) fn next_id(&self, kind: &str) -> String {
        let mut open = self.open();
        open.ids += 1;
        format!("{kind}-{}-{}", self.turn.0, open.ids)
    }

    pub(super) fn set_answer(&self, members: Option<Json>) {
        self.open().answer = members;
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.ended.load(Ordering::Acquire)
    }

    pub(crate) fn ended(&self, what: &'static str) -> Error {
        Error::TurnEnded(self.session.id().clone(), what)
    }

    /// Ends the message that chunks are being added to.
    pub(super) fn end_message(&self) {
        self.open().own.end_message();
    }

    pub(super) fn open(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Ends a turn whose end could not be committed, before the next one starts.
async fn end_lost(session: &Session, epoch: Epoch, turn: TurnId) -> Result<()> {
    let left = LeftOpen::of(session, turn).await?;
    session.log().append_deferred(epoch, |appender| {
        let number = left.end(appender, turn, "the store has lost the end of the turn")?;
        session.state().queue.earlier_ended(number);
        Ok(())
    })
}

fn runtime_flavor() -> Option<RuntimeFlavor> {
    let runtime = tokio::runtime::Handle::try_current().ok()?;
    Some(runtime.runtime_flavor())
}

/// Appends an event.
pub(crate) fn push<T: serde::Serialize>(appender: &mut Appender<'_>, event: &T) -> Result<()> {
    let pushed = appender.push(event);
    pushed.map_err(|error| Error::failed(format!("an event has no JSON form: {error}")))?;
    Ok(())
}

pub(super) fn failed(id: &ToolCallId) -> SessionUpdate {
    let update = ToolCallUpdate::new(id).with_status(ToolCallStatus::Failed);
    SessionUpdate::ToolCallUpdate(update)
}

/// Text in pieces of at most [`LONGEST_PIECE`] bytes, of whole characters.
pub(super) fn pieces(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let mut whole = (0..=rest.len().min(LONGEST_PIECE)).rev();
        let (piece, more) = rest.split_at(whole.find(|at| rest.is_char_boundary(*at))?);
        rest = more;
        (!piece.is_empty()).then_some(piece)
    })
}

/// Returns the chunk that an update consists of, and who speaks in it.
pub(crate) fn chunk(update: &mut SessionUpdate) -> Option<(Role, &mut ContentChunk)> {
    match update {
        SessionUpdate::UserMessageChunk(chunk) => Some((Role::User, chunk)),
        SessionUpdate::AgentMessageChunk(chunk) => Some((Role::Agent, chunk)),
        SessionUpdate::AgentThoughtChunk(chunk) => Some((Role::Thought, chunk)),
        _ => None,
    }
}

/// Returns whether chunks after an update, which is no chunk, are another message than those before. One
/// that changes settings or sums may come at any time and is not seen between them.
pub(crate) fn ends_message(update: &SessionUpdate) -> bool {
    !matches!(
        update,
        SessionUpdate::AvailableCommandsUpdate(_)
            | SessionUpdate::ConfigOptionUpdate(_)
            | SessionUpdate::CurrentModeUpdate(_)
            | SessionUpdate::SessionInfoUpdate(_)
            | SessionUpdate::UsageUpdate(_)
    )
}
