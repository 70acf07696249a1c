//! The first messages on a connection that takes the place of another.

use std::collections::VecDeque;

use bytes::Bytes;
use tokio::time::timeout;

use super::bridge::Task;
use super::envelope::Envelope;
use super::{Connector, LinkReceiver, LinkSender, Received};
use crate::error::Result;

impl<C: Connector> Task<C> {
    /// Opens a connection and introduces the client.
    ///
    /// # Errors
    ///
    /// When it cannot be opened, or the agent does not accept the client.
    pub(super) async fn hello(&mut self) -> Result<()> {
        let limit = self.connector.answer_limit();
        let late = |connector: &C| connector.silent("the agent does not answer initialize");
        let (sender, mut receiver) = tokio::select! {
            opened = self.connector.open() => opened?,
            () = self.closing.cancelled() => return Err(late(&self.connector)),
        };
        let mut early = VecDeque::new();
        for (index, (id, message)) in self.resume.hello().into_iter().enumerate() {
            let closing = self.closing.cancelled();
            let greeting = greet(&sender, &mut receiver, &id, message, &mut early);
            let answer = tokio::select! {
                answer = timeout(limit, greeting) => answer.map_err(|_| late(&self.connector))??,
                () = closing => return Err(late(&self.connector)),
            };
            let Some(answer) = answer else {
                return Err(self.connector.silent("it ended during initialize"));
            };
            let envelope = Envelope::read(&answer);
            if index > 0 {
                // What becomes of an authentication shows when sessions are continued.
                continue;
            }
            if let Some(error) = envelope.error {
                let reason = format!("it does not accept the client again: {}", error.get());
                return Err(self.connector.refused(&reason));
            }
            self.resume.reopened(&envelope);
        }
        for message in early {
            self.resume.received(message, &mut self.out);
        }
        (self.sender, self.receiver) = (Some(sender), receiver);
        Ok(())
    }
}

/// Sends a request and waits for its answer; `None` if there is none, because this side has closed.
/// Messages that come before are kept; an agent has little to say to a client without sessions.
async fn greet(
    sender: &impl LinkSender,
    receiver: &mut impl LinkReceiver,
    id: &str,
    request: Bytes,
    early: &mut VecDeque<Bytes>,
) -> Result<Option<Bytes>> {
    const MOST_EARLY: usize = 64;
    // If nothing can be sent, the receiver has the reason.
    let _ = sender.send(request).await;
    loop {
        match receiver.receive().await? {
            Some(Received::Message(message)) => {
                let envelope = Envelope::read(&message);
                if envelope.method.is_none() && envelope.id() == Some(id) {
                    return Ok(Some(message));
                }
                if early.len() < MOST_EARLY {
                    early.push_back(message);
                }
            }
            Some(Received::Refused(refused)) => return Err(refused.error),
            None => return Ok(None),
        }
    }
}
