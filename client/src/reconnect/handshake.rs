//! The first requests on a connection that replaces another.

use bytes::Bytes;
use tokio::time::{Instant, sleep_until};

use super::bridge::Task;
use super::envelope::Envelope;
use super::{Connector, LinkReceiver as _, resume};
use crate::error::Result;

impl<C: Connector> Task<C> {
    /// Opens a connection and initializes it. The agent may ask the client meanwhile; other messages of
    /// the client wait.
    ///
    /// # Errors
    ///
    /// Fails when it cannot be opened, or the agent rejects `initialize`.
    pub(super) async fn handshake(&mut self) -> Result<()> {
        let closing = self.closing.clone();
        let (sender, receiver) = tokio::select! {
            opened = self.connector.open() => opened?,
            () = closing.cancelled() => return Err(self.connector.unresponsive("initialize")),
        };
        (self.sender, self.receiver) = (Some(sender), receiver);
        if self.connector.is_restart() {
            resume::restarted(&mut self.out);
        }
        for (index, (id, message)) in self.resume.opening_requests().into_iter().enumerate() {
            let method = Envelope::read(&message).method.unwrap_or_default();
            let method = method.into_owned();
            let response = tokio::select! {
                response = self.opening_request(id, message, &method) => response?,
                () = closing.cancelled() => return Err(self.connector.unresponsive(&method)),
            };
            if index > 0 {
                // A failed authentication surfaces when the sessions are continued.
                continue;
            }
            let envelope = Envelope::read(&response);
            if let Some(error) = envelope.error {
                let reason = format!("initialize on the new connection failed: {}", error.get());
                return Err(self.connector.refused(&reason));
            }
            self.resume.reopened(&envelope);
        }
        self.trouble = self.receiver.trouble();
        Ok(())
    }

    /// Sends a request and forwards messages until its response. The time limit excludes the time in
    /// which the agent waits for the client.
    async fn opening_request(&mut self, id: String, message: Bytes, method: &str) -> Result<Bytes> {
        let limit = self.connector.answer_limit();
        let mut deadline = Instant::now() + limit;
        self.resume.expect_opening(id);
        self.out.to_agent.push_back(message);
        loop {
            if let Some(response) = self.resume.take_opening_response() {
                return Ok(response);
            }
            let (began, is_asked) = (Instant::now(), self.is_awaited());
            let is_open = tokio::select! {
                is_open = self.step() => is_open?,
                () = sleep_until(deadline), if !is_asked => return Err(self.connector.unresponsive(method)),
            };
            if is_asked {
                deadline += began.elapsed();
            }
            if !is_open {
                return Err(self.connector.unresponsive(method));
            }
        }
    }

    /// Returns whether the agent waits for the client.
    fn is_awaited(&self) -> bool {
        !self.out.to_client.is_empty() || self.resume.is_asked()
    }
}
