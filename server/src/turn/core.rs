//! What a turn and all guards made from it have in common, and how a turn is wound up.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use acp_sdk::v1::{
    ClientCapabilities, ClientHandle, ContentBlock, ContentChunk, Notice, NoticeSeverity,
    SessionUpdate, TextContent, ToolCallId, ToolCallStatus, ToolCallUpdate,
};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::settings::agree;
use crate::session::{Session, Voice, Wire};
use crate::store::Store;
use crate::{Capability, Error, Result};

/// How long a turn that has ended waits for the client to answer what cleans up after it.
const CLEANING_UP: Duration = Duration::from_secs(2);

/// The most bytes of text in one update. A reader that is not told otherwise takes lines of
/// 64 KiB in Python, and escapes make text longer.
const LONGEST_PIECE: usize = 32 << 10;

/// Who talks, about what, and where it is kept.
pub(crate) struct About {
    pub(crate) client: ClientHandle,
    pub(crate) offered: Arc<ClientCapabilities>,
    pub(crate) session: Session,
    pub(crate) store: Arc<dyn Store>,
}

pub(crate) struct Core {
    about: About,
    pub(crate) cancel: CancellationToken,
    /// Set under the session's wire: whoever holds it can rely on the answer.
    over: AtomicBool,
    calls: Mutex<Calls>,
    /// What must be done to the end although nobody waits for it: creating and releasing
    /// terminals, and closing tool calls whose guard was dropped.
    pub(crate) errands: TaskTracker,
}

/// The tool calls that are not finished.
#[derive(Debug, Default)]
struct Calls {
    open: Vec<ToolCallId>,
    /// Those whose guard was dropped; they fail as soon as something can be sent.
    dropped: Vec<ToolCallId>,
}

impl std::ops::Deref for Core {
    type Target = About;

    fn deref(&self) -> &About {
        &self.about
    }
}

impl fmt::Debug for Core {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Core")
            .field("session", self.session.id())
            .field("over", &self.over)
            .finish_non_exhaustive()
    }
}

impl Core {
    pub(crate) fn new(about: About, cancel: CancellationToken) -> Self {
        Self {
            about,
            cancel,
            over: AtomicBool::new(false),
            calls: Mutex::default(),
            errands: TaskTracker::new(),
        }
    }

    pub(crate) fn offers(&self, capability: Capability) -> bool {
        capability.is_in(&self.offered)
    }

    /// # Errors
    ///
    /// [`Error::Missing`] if the client does not offer it.
    pub(crate) fn needs(&self, capability: Capability) -> Result<()> {
        if self.offers(capability) {
            return Ok(());
        }
        Err(Error::Missing(capability))
    }

    /// Asks the client, as long as there is a turn to ask in.
    pub(crate) async fn unless_cancelled<T, E: Into<Error>>(
        &self,
        asking: impl Future<Output = Result<T, E>>,
    ) -> Result<T> {
        if self.is_over() {
            return Err(self.over("a request"));
        }
        tokio::select! {
            biased;
            () = self.cancel.cancelled() => Err(Error::Cancelled),
            answer = asking => answer.map_err(Into::into),
        }
    }

    /// Adds text to the message of this voice, in pieces that every client takes.
    pub(crate) async fn say_text(&self, voice: Voice, text: String) -> Result<()> {
        if text.len() <= LONGEST_PIECE {
            return self
                .say(voice, ContentBlock::Text(TextContent::new(text)))
                .await;
        }
        for piece in pieces(&text) {
            self.say(voice, ContentBlock::Text(TextContent::new(piece)))
                .await?;
        }
        Ok(())
    }

    /// Adds a chunk to the message of this voice.
    pub(crate) async fn say(&self, voice: Voice, block: ContentBlock) -> Result<()> {
        let mut wire = self.session.wire().await;
        let chunk = ContentChunk::new(block).with_message_id(wire.message(&self.session, voice));
        let update = match voice {
            Voice::User => SessionUpdate::UserMessageChunk(chunk),
            Voice::Agent => SessionUpdate::AgentMessageChunk(chunk),
            Voice::Thought => SessionUpdate::AgentThoughtChunk(chunk),
        };
        self.send(&mut wire, &update).await
    }

    /// Keeps what the user said. The client knows it, so it is not sent.
    pub(crate) async fn keep_prompt(&self, prompt: &[ContentBlock]) -> Result<()> {
        let mut wire = self.session.wire().await;
        wire.end_message();
        for block in prompt {
            let id = wire.message(&self.session, Voice::User);
            let chunk = ContentChunk::new(block.clone()).with_message_id(id);
            let update = SessionUpdate::UserMessageChunk(chunk);
            wire.keep(&self.session, &*self.store, &update).await?;
        }
        Ok(())
    }

    /// Keeps and sends an update.
    pub(crate) async fn update(&self, update: &SessionUpdate) -> Result<()> {
        if let Some(capability) = Capability::of(update) {
            self.needs(capability)?;
        }
        let mut wire = self.session.wire().await;
        self.send(&mut wire, update).await?;
        agree(&self.session, update);
        Ok(())
    }

    async fn send(&self, wire: &mut Wire, update: &SessionUpdate) -> Result<()> {
        if self.is_over() {
            return Err(self.over("an update"));
        }
        self.close_dropped(wire).await?;
        let (opened, finished) = (opens(update), finishes(update));
        // Open from here on: if this future is dropped while it sends, the call fails.
        self.calls().open.extend(opened.cloned());
        let sent = wire
            .send(&self.session, &*self.store, &self.client, update)
            .await;
        let over = if sent.is_ok() { finished } else { opened };
        if let Some(id) = over {
            self.calls().open.retain(|open| open != id);
        }
        sent
    }

    /// The guard of a tool call is gone: the call fails, now if possible.
    pub(crate) fn call_dropped(self: &Arc<Self>, id: &ToolCallId) {
        {
            let mut calls = self.calls();
            if !calls.open.contains(id) {
                return;
            }
            calls.dropped.push(id.clone());
        }
        self.errand(|core| async move {
            let mut wire = core.session.wire().await;
            // What cannot be sent now is sent when the turn ends, or nobody can hear it.
            let _ = core.close_dropped(&mut wire).await;
        });
    }

    /// Does something to the end, whoever gives up waiting for it. Without a tokio runtime
    /// around, as while the process ends, it is not done.
    pub(crate) fn errand<F>(self: &Arc<Self>, errand: impl FnOnce(Arc<Self>) -> F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            self.errands.spawn_on(errand(self.clone()), &runtime);
        }
    }

    async fn close_dropped(&self, wire: &mut Wire) -> Result<()> {
        loop {
            let Some(id) = self.calls().dropped.first().cloned() else {
                return Ok(());
            };
            self.fail_call(wire, &id).await?;
        }
    }

    async fn fail_call(&self, wire: &mut Wire, id: &ToolCallId) -> Result<()> {
        // Struck off first: an update that was kept but not sent is not kept twice.
        {
            let mut calls = self.calls();
            calls.open.retain(|open| open != id);
            calls.dropped.retain(|dropped| dropped != id);
        }
        let update = ToolCallUpdate::new(id).with_status(ToolCallStatus::Failed);
        let update = SessionUpdate::ToolCallUpdate(update);
        wire.send(&self.session, &*self.store, &self.client, &update)
            .await
    }

    /// Ends the turn: no tool call stays open, nothing more is sent, and what was borrowed
    /// from the client has been given back.
    pub(crate) async fn wind_up(&self) -> Result<()> {
        let mut wire = self.session.wire().await;
        let mut closed = Ok(());
        loop {
            let Some(id) = self.calls().open.first().cloned() else {
                break;
            };
            closed = closed.and(self.fail_call(&mut wire, &id).await);
        }
        self.over.store(true, Ordering::Release);
        wire.end_message();
        drop(wire);
        self.errands.close();
        // A client that does not answer has its reasons; the turn has ended all the same.
        let _ = tokio::time::timeout(CLEANING_UP, self.errands.wait()).await;
        closed
    }

    pub(crate) fn is_over(&self) -> bool {
        self.over.load(Ordering::Acquire)
    }

    fn over(&self, what: &'static str) -> Error {
        Error::Over(self.session.id().clone(), what)
    }

    fn calls(&self) -> MutexGuard<'_, Calls> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Text in pieces of at most [`LONGEST_PIECE`] bytes, of whole characters.
fn pieces(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let mut whole = (0..=rest.len().min(LONGEST_PIECE)).rev();
        let (piece, more) = rest.split_at(whole.find(|at| rest.is_char_boundary(*at))?);
        rest = more;
        (!piece.is_empty()).then_some(piece)
    })
}

/// The tool call that an update announces without finishing it.
fn opens(update: &SessionUpdate) -> Option<&ToolCallId> {
    match update {
        SessionUpdate::ToolCall(call) if !is_final(call.status.as_ref()) => {
            Some(&call.tool_call_id)
        }
        _ => None,
    }
}

/// The tool call that an update finishes.
fn finishes(update: &SessionUpdate) -> Option<&ToolCallId> {
    match update {
        SessionUpdate::ToolCallUpdate(change) if is_final(change.status.as_ref()) => {
            Some(&change.tool_call_id)
        }
        _ => None,
    }
}

fn is_final(status: Option<&ToolCallStatus>) -> bool {
    matches!(
        status,
        Some(ToolCallStatus::Completed | ToolCallStatus::Failed)
    )
}

/// What a client is told in place of events that the store has forgotten.
pub(crate) fn forgotten(offered: &ClientCapabilities) -> SessionUpdate {
    let words = "The beginning of this conversation is no longer kept.";
    if Capability::Notices.is_in(offered) {
        return SessionUpdate::Notice(Notice::new(NoticeSeverity::Warning, words));
    }
    let block = ContentBlock::Text(TextContent::new(format!("({words})")));
    SessionUpdate::AgentMessageChunk(ContentChunk::new(block))
}
