//! Handling of messages: passed on, given to hooks, or refused.

use std::sync::Arc;

use acp_client::internal::{Envelope, Kind};
use acp_sdk::{ErrorCode, HandlerError, RpcError};
use bytes::Bytes;
use memchr::{memchr, memrchr};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;

use super::Relay;
use super::running::{self, Finished};
use crate::hooks::Message;
use crate::message;
use crate::passage::{Hook, Passage};
use crate::shared::{Gate, RawResult};
use crate::side::Side;

/// The maximum number of requests of one side that are in hooks, or that are answered when the other
/// side ends.
const MOST_REQUESTS: usize = 10_000;

impl Relay {
    /// Takes messages of a side, each with a line feed, as many as need no reading or one that does.
    /// Returns their length.
    pub(super) fn take(&mut self, from: Side, lines: &[u8]) -> usize {
        let unread = self.unread(lines);
        let taken = match unread {
            0 => memchr(b'\n', lines).map_or(lines.len(), |end| end + 1),
            _ => unread,
        };
        let lines = &lines[..taken];
        if !self.observers.is_empty() {
            for line in lines.split_inclusive(|byte| *byte == b'\n') {
                for observer in &self.observers {
                    observer.0(from, message_of(line));
                }
            }
        }
        match unread {
            0 => self.take_one(from, message_of(lines)),
            _ => self.shared.outbox(from.other()).push_lines(lines),
        }
        taken
    }

    /// Returns the length of the messages up to the first that has to be read. Without hooks that is
    /// one that may have an id, and most messages are updates, which have none.
    fn unread(&self, lines: &[u8]) -> usize {
        if !self.hooks.is_empty() {
            return 0;
        }
        let id = self.id.find(lines);
        id.map_or(lines.len(), |at| {
            memrchr(b'\n', &lines[..at]).map_or(0, |end| end + 1)
        })
    }

    /// Takes a message: it is handled, or waits behind a message of its session.
    fn take_one(&mut self, from: Side, message: &[u8]) {
        let envelope = Envelope::read(message);
        let kind = envelope.kind();
        if kind == Kind::Other {
            return self.take_other(from, &envelope, message);
        }
        if let Some(id) = envelope.cancelled_request() {
            return self.cancel(from, id, message);
        }
        if !self.order[from.index()].is_empty() {
            let session = self.session(from, &envelope);
            if self.order[from.index()].wait(&session, message) {
                return;
            }
        }
        self.handle(from, message, &envelope);
    }

    /// Returns the session in whose order a message is: for an answer, that of the request.
    fn session(&self, from: Side, envelope: &Envelope<'_>) -> Box<str> {
        if envelope.method.is_some() {
            return envelope.session().unwrap_or_default().as_ref().into();
        }
        let id = envelope.id().unwrap_or_default();
        if let Some(number) = self.shared.number(id) {
            let session = self.shared.session(number).unwrap_or_default();
            return session.as_ref().into();
        }
        let passed = self.passed[from.other().index()].get(id);
        passed.cloned().unwrap_or_default()
    }

    /// Takes what is no message: a peer that knows more than this one may read something into it.
    fn take_other(&mut self, from: Side, envelope: &Envelope<'_>, message: &[u8]) {
        let is_answer = envelope.error.is_some() || envelope.result.is_some();
        if self.hooks.is_empty() || is_answer {
            return self.shared.outbox(from.other()).push(message);
        }
        let code = match serde_json::from_slice::<IgnoredAny>(message) {
            Ok(_) => ErrorCode::INVALID_REQUEST,
            Err(_) => ErrorCode::PARSE_ERROR,
        };
        let name = &self.name;
        let reason =
            format!("the proxy `{name}` does not pass this on: it is not a single message");
        let error = RpcError::new(code, reason);
        let answer = message::answer("null", Err(&error));
        self.shared.outbox(from).push(&answer);
    }

    /// Handles the cancellation of a request.
    fn cancel(&mut self, from: Side, id: &str, message: &[u8]) {
        if let Some(gate) = self.hooked[from.index()].get(id) {
            return self.shared.cancel(gate);
        }
        let order = &mut self.order[from.index()];
        let is_request = |waiting: &Bytes| {
            let envelope = Envelope::read(waiting);
            envelope.kind() == Kind::Request && envelope.id() == Some(id)
        };
        let waits = order
            .find(is_request)
            .is_some_and(|session| order.wait(&session, message));
        if !waits {
            self.shared.outbox(from.other()).push(message);
        }
    }

    /// Handles a message whose turn it is.
    fn handle(&mut self, from: Side, message: &[u8], envelope: &Envelope<'_>) {
        let id = envelope.id();
        let Some(method) = envelope.method.as_deref() else {
            return self.handle_answer(from, message, envelope, id.unwrap_or_default());
        };
        if let Some(id) = envelope.cancelled_request() {
            return self.cancel(from, id, message);
        }
        let found = Message {
            method,
            is_request: id.is_some(),
            version: self.version,
            from,
        };
        if let Some(hooks) = self.hooks.find(found) {
            return self.start(from, envelope, hooks);
        }
        if self.hooks.is_wrong_kind(found) {
            let reason = format!("`{method}` with or without an id: the other one is right");
            return self.refuse(
                from,
                id.unwrap_or("null"),
                ErrorCode::INVALID_REQUEST,
                reason,
            );
        }
        if let Some(id) = id {
            if method == "initialize" && from == Side::Client {
                self.initialize = Some(id.into());
            }
            if self.passed[from.index()].len() < MOST_REQUESTS {
                // Without hooks nothing has an order.
                let session = match self.hooks.is_empty() {
                    true => Box::default(),
                    false => self.session(from, envelope),
                };
                self.passed[from.index()].insert(id.into(), session);
            }
        }
        self.shared.outbox(from.other()).push(message);
    }

    fn handle_answer(&mut self, from: Side, message: &[u8], envelope: &Envelope<'_>, id: &str) {
        if let Some(number) = self.shared.number(id) {
            return self.shared.answered(number, result(envelope));
        }
        self.passed[from.other().index()].remove(id);
        if self.initialize.as_deref() == Some(id)
            && from == Side::Agent
            && let Some(result) = envelope.result
        {
            self.initialize = None;
            if let Err(error) = self.settle(result) {
                let answer = message::answer(id, Err(error.as_response()));
                return self.shared.outbox(Side::Client).push(&answer);
            }
        }
        self.shared.outbox(from.other()).push(message);
    }

    /// Takes the version of the protocol that the agent has chosen.
    fn settle(&mut self, initialized: &RawValue) -> Result<(), HandlerError> {
        #[derive(Deserialize)]
        struct Initialized {
            #[serde(rename = "protocolVersion")]
            version: u16,
        }
        // An invalid result is for the client to refuse.
        let Ok(initialized) = serde_json::from_str::<Initialized>(initialized.get()) else {
            return Ok(());
        };
        let version = initialized.version;
        if let Some(mismatch) = self.hooks.without_version(version) {
            let (proxy, known) = (mismatch.proxy, mismatch.versions);
            return Err(HandlerError::internal(format!(
                "the proxy `{proxy}` knows version {known:?} of the protocol, and the agent has chosen {version}: \
                 offer one that it knows, or leave the proxy out"
            )));
        }
        self.version = Some(version);
        Ok(())
    }

    fn start(&mut self, from: Side, envelope: &Envelope<'_>, hooks: Arc<[Arc<Hook>]>) {
        let session = self.session(from, envelope);
        let method = envelope.method.as_deref().unwrap_or_default();
        self.last_hook += 1;
        let gate = Gate::new(self.last_hook, &session);
        if let Some(id) = envelope.id() {
            let hooked = &mut self.hooked[from.index()];
            if hooked.len() >= MOST_REQUESTS || hooked.contains_key(id) {
                let reason = format!(
                    "`{method}` is refused: its id is in use, or {MOST_REQUESTS} requests are"
                );
                return self.refuse(from, id, ErrorCode::INVALID_REQUEST, reason);
            }
            hooked.insert(id.into(), gate.clone());
        }
        self.order[from.index()].hold(&session, gate.hook);
        let passage = Passage {
            shared: self.shared.clone(),
            hooks,
            at: 0,
            method: method.into(),
            from,
            version: self.version,
            gate,
        };
        let params = envelope.params.map(ToOwned::to_owned);
        let id = envelope.id().map(Into::into);
        let running = running::run(passage, id, params, self.hook_limit);
        self.running.push(Box::pin(running));
    }

    fn refuse(&self, from: Side, id: &str, code: ErrorCode, reason: String) {
        tracing::warn!(proxy = &*self.name, reason, "refused a message");
        let answer = message::answer(id, Err(&RpcError::new(code, reason)));
        self.shared.outbox(from).push(&answer);
    }

    pub(super) fn finish(&mut self, finished: Finished) {
        if let Some((id, mut result)) = finished.answer {
            self.hooked[finished.from.index()].remove(&id);
            if finished.is_initialize
                && let Ok(initialized) = &result
                && let Err(error) = self.settle(initialized)
            {
                result = Err(error);
            }
            let result = result.as_deref().map_err(HandlerError::as_response);
            let answer = message::answer(&id, result);
            self.shared.outbox(finished.from).push(&answer);
        }
        self.release(finished.hook);
    }

    /// Handles what a hook does not hold back any more.
    pub(super) fn release(&mut self, hook: u64) {
        for from in Side::BOTH {
            let Some(session) = self.order[from.index()].release(hook) else {
                continue;
            };
            while let Some(message) = self.order[from.index()].next(&session) {
                let envelope = Envelope::read(&message);
                self.handle(from, &message, &envelope);
            }
        }
    }
}

/// Returns a message without its line feed.
fn message_of(line: &[u8]) -> &[u8] {
    line.strip_suffix(b"\n").unwrap_or(line)
}

/// Returns the result of an answer, as it is written.
fn result(envelope: &Envelope<'_>) -> RawResult {
    match (envelope.result, envelope.error) {
        (_, Some(error)) => Err(serde_json::from_str(error.get()).map_or_else(
            |_| HandlerError::internal("the answer has an invalid error object"),
            HandlerError::response,
        )),
        (Some(result), None) => Ok(result.to_owned()),
        // `null` is read as absent.
        (None, None) => Ok(RawValue::NULL.to_owned()),
    }
}
