//! The first requests on a connection that replaces another.

use std::collections::VecDeque;

use bytes::Bytes;
use tokio::time::timeout;

use super::bridge::Task;
use super::envelope::Envelope;
use super::{Connector, LinkReceiver, LinkSender, Received};
use crate::error::Result;

impl<C: Connector> Task<C> {
    /// Opens a connection and initializes it.
    ///
    /// # Errors
    ///
    /// Fails when it cannot be opened, or the agent rejects `initialize`.
    pub(super) async fn handshake(&mut self) -> Result<()> {
        let limit = self.connector.answer_limit();
        let timed_out =
            |connector: &C| connector.unresponsive("the agent does not answer initialize");
        let (sender, mut receiver) = tokio::select! {
            opened = self.connector.open() => opened?,
            () = self.closing.cancelled() => return Err(timed_out(&self.connector)),
        };
        let mut early = VecDeque::new();
        for (index, (id, message)) in self.resume.opening_requests().into_iter().enumerate() {
            let closing = self.closing.cancelled();
            let exchange = call(&sender, &mut receiver, &id, message, &mut early);
            let response = tokio::select! {
                response = timeout(limit, exchange) => response.map_err(|_| timed_out(&self.connector))??,
                () = closing => return Err(timed_out(&self.connector)),
            };
            let Some(response) = response else {
                return Err(self.connector.unresponsive("it ended during initialize"));
            };
            let envelope = Envelope::read(&response);
            if index > 0 {
                // A failed authentication surfaces when the sessions are continued.
                continue;
            }
            if let Some(error) = envelope.error {
                let reason = format!("initialize on the new connection failed: {}", error.get());
                return Err(self.connector.refused(&reason));
            }
            self.resume.reopened(&envelope);
        }
        for message in early {
            self.resume.received(message, &mut self.out);
        }
        self.trouble = receiver.trouble();
        (self.sender, self.receiver) = (Some(sender), receiver);
        Ok(())
    }
}

/// Sends a request and waits for its response; `None` if this side closed the connection.
/// Keeps up to 64 messages that are received before it.
async fn call(
    sender: &impl LinkSender,
    receiver: &mut impl LinkReceiver,
    id: &str,
    request: Bytes,
    early: &mut VecDeque<Bytes>,
) -> Result<Option<Bytes>> {
    const MAX_EARLY: usize = 64;
    // If sending fails, the receiver returns the reason.
    let _ = sender.send(request).await;
    loop {
        match receiver.receive().await? {
            Some(Received::Message(message)) => {
                let envelope = Envelope::read(&message);
                if envelope.method.is_none() && envelope.id() == Some(id) {
                    return Ok(Some(message));
                }
                if early.len() < MAX_EARLY {
                    early.push_back(message);
                }
            }
            Some(Received::Refused(refused)) => return Err(refused.error),
            None => return Ok(None),
        }
    }
}
