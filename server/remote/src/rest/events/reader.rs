//! One reader of a session's events.
//!
//! It reads the log at its own pace: what it has not read waits there and nowhere else. Far behind, it reads a piece
//! at a time and takes turns with the other long reads, so that many such readers delay nobody else.

use std::convert::Infallible;
use std::time::Duration;

use acp_sdk::v1::StopReason;
use acp_server::event::{EventBody, EventKind, TurnEvent};
use acp_server::internal::session::{ReceivedText, last_appended};
use acp_server::usage;
use acp_server::{Events, Phase, PromptHandle, Result, Session};
use acp_server_dialects::openoxide::TurnEvents;
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use bytes::Bytes;
use futures_util::Stream;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::text::frame;
use super::view::View;
use super::{documented, openoxide, otter};
use crate::access::Share;
use crate::metrics::Open;
use crate::rest::long_reads::Turns;
use crate::rest::state::Rest;

/// How long a client should wait before it opens a lost stream again, and the first sign of life.
const HELLO: &[u8] = b"retry: 3000\n\n";

/// A sign of life.
const KEEP_ALIVE: Bytes = Bytes::from_static(b": keep-alive\n\n");

/// The events by which a reader is behind before it takes turns with the other long reads.
const FAR: u64 = 256;

/// The bytes of a piece; its last event may exceed them.
const PIECE: usize = 16 << 10;

/// How far back the beginning of a turn is looked for at first.
const NEAR: u64 = 256;

/// The vocabulary of a stream, and when it ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::rest) enum Dialect {
    /// Of Otter's code. Ends with the session.
    Otter,
    /// Of Otter's document. Ends with the turns.
    Documented,
    /// Of OpenOxide's text. For the turn of a prompt, which is cancelled with the stream.
    OpenOxide,
}

impl<S: Sync> FromRequestParts<S> for Dialect {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(match parts.uri.path().starts_with("/sessions") {
            true => Self::Documented,
            false => Self::Otter,
        })
    }
}

/// Reads the events after a number.
pub(in crate::rest) struct EventReader {
    session: Session,
    events: Events,
    /// Earlier events are read for what they say of the turn.
    after: u64,
    /// The number of the latest event that was read.
    at: u64,
    /// Whether the turns that ended up to `after` are an end for this reader, which has read them.
    ends_at_once: bool,
    view: View,
    /// The turn in OpenOxide's vocabulary.
    pub(in crate::rest) openoxide: TurnEvents,
    dialect: Dialect,
    /// The prompt whose turn is to be read and has not begun.
    prompt: Option<PromptHandle>,
    /// The prompt whose turn has begun, if it is cancelled with the stream.
    running: Option<PromptHandle>,
    /// Why the prompt had no turn.
    pub(in crate::rest) no_turn: Option<String>,
    /// The session's last event before it was opened for the prompt.
    opened_after: Option<u64>,
    /// Whether the stream ends with the first turn.
    is_of_turn: bool,
    progress: Progress,
    turns: Turns,
    keep_alive: Duration,
    /// Cancelled when the reader's token ends.
    revoked: CancellationToken,
    /// Cancelled when the server ends.
    stop: CancellationToken,
    _place: Share,
    _open: Open,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Progress {
    Start,
    Reading,
    /// The session is closed; what is in its log is still read.
    Closing,
    End,
}

impl EventReader {
    /// Without a cursor the reader begins with the next event.
    ///
    /// # Errors
    ///
    /// The store's.
    pub(super) async fn new(
        session: Session,
        cursor: Option<u64>,
        dialect: Dialect,
        place: Share,
        revoked: CancellationToken,
        rest: &Rest,
    ) -> Result<Self> {
        let last = session.last_event();
        let after = cursor.map_or(last, |cursor| cursor.min(last));
        let TurnBefore { start, success } = turn_before(&session, after).await?;
        let mut reader = Self::at(session, start, dialect, place, revoked, rest);
        (reader.after, reader.ends_at_once) = (after, cursor.is_some());
        reader.view.success = success.filter(|_| reader.ends_at_once);
        Ok(reader)
    }

    /// Returns what reads the events of the turn that a prompt will have, and ends with it.
    pub(super) fn of_prompt(
        session: Session,
        prompt: PromptHandle,
        dialect: Dialect,
        place: Share,
        revoked: CancellationToken,
        rest: &Rest,
    ) -> Self {
        let last = session.last_event();
        let mut reader = Self::at(session, last, dialect, place, revoked, rest);
        (reader.prompt, reader.is_of_turn) = (Some(prompt), true);
        reader
    }

    /// Also reads what was said when the session was opened for the prompt, after this number.
    pub(in crate::rest) fn also_after(mut self, opened_after: Option<u64>) -> Self {
        self.opened_after = opened_after;
        self
    }

    fn at(
        session: Session,
        start: u64,
        dialect: Dialect,
        place: Share,
        revoked: CancellationToken,
        rest: &Rest,
    ) -> Self {
        let settings = rest.settings();
        Self {
            events: session.subscribe(start),
            session,
            after: start,
            at: start,
            ends_at_once: false,
            view: View::default(),
            openoxide: TurnEvents::new(),
            dialect,
            prompt: None,
            running: None,
            no_turn: None,
            opened_after: None,
            is_of_turn: false,
            progress: Progress::Start,
            turns: rest.long_reads().turns().clone(),
            keep_alive: settings.keep_alive,
            revoked,
            stop: settings.stop.clone(),
            _place: place,
            _open: Open::new(&settings.metrics.streams),
        }
    }

    pub(super) fn stream(self) -> impl Stream<Item = Result<Bytes, Infallible>> {
        futures_util::stream::unfold(self, async |mut reader| {
            let piece = reader.next().await?;
            Some((Ok(piece), reader))
        })
    }

    /// Waits for the next piece of the stream; `None` at its end.
    pub(in crate::rest) async fn next(&mut self) -> Option<Bytes> {
        if self.progress == Progress::Start {
            self.progress = Progress::Reading;
            return Some(Bytes::from_static(HELLO));
        }
        loop {
            if self.revoked.is_cancelled() || self.progress == Progress::End {
                return None;
            }
            if let Some(prompt) = &mut self.prompt {
                tokio::select! {
                    turn = prompt.started() => {
                        let prompt = self.prompt.take()?;
                        match turn {
                            Some(turn) => {
                                let before = turn.0.saturating_sub(1);
                                self.after = self.opened_after.map_or(before, |at| at.min(before));
                                if self.dialect == Dialect::OpenOxide {
                                    self.running = Some(prompt);
                                }
                            }
                            None => return self.without_turn(prompt).await,
                        }
                        self.events = self.session.subscribe(self.after);
                    }
                    () = self.revoked.cancelled() => return None,
                    () = self.stop.cancelled() => return None,
                    () = tokio::time::sleep(self.keep_alive) => return Some(KEEP_ALIVE),
                }
            }
            // When older events cannot be read the stream ends, and its client comes back.
            if self.has_read_turn() {
                return self.end();
            }
            if self.is_far_behind() {
                let piece = self.catch_up().await.ok()?;
                if !piece.is_empty() {
                    return Some(piece.into());
                }
            }
            match self.events.next_text_now().await.ok()? {
                Some(received) => {
                    if let Some(piece) = self.received(&received).await.ok()? {
                        return Some(piece);
                    }
                    // A long way to the first event must not keep others waiting.
                    tokio::task::consume_budget().await;
                }
                None if self.has_ended() => return self.end(),
                None if self.progress == Progress::Closing => return None,
                None => {
                    let (revoked, stop) = (self.revoked.clone(), self.stop.clone());
                    tokio::select! {
                        () = self.events.changed() => {}
                        () = self.session.closed() => self.progress = Progress::Closing,
                        () = revoked.cancelled() => return None,
                        () = stop.cancelled() => return None,
                        () = tokio::time::sleep(self.keep_alive) => {
                            return Some(KEEP_ALIVE);
                        }
                    }
                }
            }
        }
    }

    /// Returns whether the server ends.
    pub(in crate::rest) fn is_stopping(&self) -> bool {
        self.stop.is_cancelled()
    }

    fn is_far_behind(&self) -> bool {
        self.session.last_event().saturating_sub(self.at) > FAR
    }

    /// Makes the next piece of what the log has.
    ///
    /// # Errors
    ///
    /// The store's.
    async fn catch_up(&mut self) -> Result<Vec<u8>> {
        // What waits to be written, and whoever else is ready, goes before.
        tokio::task::yield_now().await;
        let _turn = self.turns.take().await;
        let mut piece = Vec::new();
        let last = self.at + FAR;
        while self.at < last && piece.len() < PIECE && !self.has_read_turn() {
            let Some(received) = self.events.next_text_now().await? else {
                break;
            };
            piece.extend_from_slice(&self.received(&received).await?.unwrap_or_default());
        }
        Ok(piece)
    }

    /// Returns whether the turn that is to be read has ended, for a stream that ends with it.
    fn has_read_turn(&self) -> bool {
        self.is_of_turn && self.view.success.is_some()
    }

    /// Says that a prompt had no turn, of which the log has no event, and ends the stream.
    async fn without_turn(&mut self, prompt: PromptHandle) -> Option<Bytes> {
        let message_id = prompt.message_id().clone();
        let error = super::no_turn(&prompt.result().await);
        let data = json!({ "message_id": message_id, "error": error });
        self.no_turn = Some(error);
        let mut said = frame(None, "error", &data).to_vec();
        if let Some(end) = self.end() {
            said.extend_from_slice(&end);
        }
        Some(said.into())
    }

    /// Ends the stream; returns the last event, if the vocabulary has one.
    fn end(&mut self) -> Option<Bytes> {
        self.progress = Progress::End;
        if self.dialect != Dialect::Documented {
            return None;
        }
        let success = self.view.success == Some(true);
        let data = json!({ "session_id": self.session.id(), "success": success });
        Some(frame(None, "end", &data))
    }

    /// # Errors
    ///
    /// The store's, at the end of a turn whose events are in no memory.
    async fn received(&mut self, received: &ReceivedText) -> Result<Option<Bytes>> {
        let (ReceivedText::Event(at, _) | ReceivedText::Gap(at)) = received;
        self.at = *at;
        let (number, batch) = match received {
            ReceivedText::Event(number, batch) => (*number, batch),
            ReceivedText::Gap(last) if *last > self.after => {
                let data = json!({ "last_missing": last });
                return Ok(Some(frame(Some(*last), "gap", &data)));
            }
            ReceivedText::Gap(_) => return Ok(None),
        };
        let Some(stored) = batch.stored(number) else {
            return Ok(None);
        };
        let event = stored.parse();
        self.view.observe(&event);
        if number <= self.after {
            if !self.ends_at_once {
                self.view.success = None;
            }
            return Ok(None);
        }
        Ok(Some(match self.dialect {
            Dialect::Otter => {
                let turn = match &event.body {
                    EventBody::Turn(TurnEvent::TurnEnded { turn, .. }) => {
                        usage::of_turn(&self.session, *turn, number).await?
                    }
                    _ => None,
                };
                otter::encode(&self.view, &event, stored, turn)
            }
            Dialect::Documented => documented::encode(&self.view, &event, stored),
            Dialect::OpenOxide => {
                let session = &self.session;
                return Ok(openoxide::encode(&mut self.openoxide, session, event));
            }
        }))
    }

    /// Returns whether the turns have ended, for a stream that ends with them.
    fn has_ended(&self) -> bool {
        self.dialect == Dialect::Documented
            && self.view.success.is_some()
            && self.at >= last_appended(&self.session)
            && matches!(self.session.phase(), Phase::Idle | Phase::Closed)
    }
}

impl Drop for EventReader {
    fn drop(&mut self) {
        if self.dialect == Dialect::OpenOxide {
            // Has no effect after the turn.
            let prompts = [self.prompt.take(), self.running.take()];
            prompts.iter().flatten().for_each(PromptHandle::cancel);
        }
    }
}

/// Where to begin to read what an event belongs to.
struct TurnBefore {
    /// A number at or before the beginning of the event's turn, or shortly before the event if it is in
    /// none.
    start: u64,
    /// Whether the latest turn that ended before did what it was to do.
    success: Option<bool>,
}

/// Finds the turn that has the event `number`.
///
/// # Errors
///
/// The store's.
async fn turn_before(session: &Session, number: u64) -> Result<TurnBefore> {
    let mut distance = NEAR;
    loop {
        let start = number.saturating_sub(distance);
        let mut events = session.subscribe(start);
        let mut found = None;
        while let Some(received) = events.next_text_now().await? {
            let (at, batch) = match received {
                ReceivedText::Event(at, batch) if at <= number => (at, batch),
                ReceivedText::Gap(last) if last < number => continue,
                _ => break,
            };
            let Some(stored) = batch.stored(at) else {
                continue;
            };
            if stored.kind() != EventKind::Turn {
                continue;
            }
            match stored.parse().body {
                EventBody::Turn(TurnEvent::TurnStarted { turn, .. }) => {
                    found = Some((turn.0 - 1, None));
                }
                EventBody::Turn(TurnEvent::TurnEnded { stop_reason, .. }) => {
                    found = Some((at, Some(stop_reason == Some(StopReason::EndTurn))));
                }
                _ => {}
            }
        }
        match found {
            Some((start, success)) => {
                let start = start.min(number);
                return Ok(TurnBefore { start, success });
            }
            None if start == 0 => {
                let success = None;
                return Ok(TurnBefore { start, success });
            }
            None => distance = distance.saturating_mul(8),
        }
    }
}

#[cfg(test)]
mod tests;
