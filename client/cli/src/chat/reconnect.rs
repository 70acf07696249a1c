//! Continues a conversation with an agent that has ended.

use acp_client::{Events, Session};

use super::Failure;
use super::style::Colour;
use super::talk::{Talk, elicits};
use crate::connect::connect;
use crate::opening_failure::OpeningFailure;

impl Talk<'_> {
    /// Reconnects if the connection has ended, and continues the session if the agent can. Returns
    /// whether there is a session.
    pub(super) async fn reconnect(&mut self) -> Result<bool, Failure> {
        if !self.lost {
            return Ok(true);
        }
        self.say(Colour::Yellow, "connecting again …").await?;
        if let Some(client) = self.slot.take() {
            client.shutdown().await;
        }
        let opened = self.open_again().await;
        let (session, events, continued) = match opened {
            Ok(opened) => opened,
            Err(failure) => {
                for line in failure.lines() {
                    self.say(Colour::Red, &line).await?;
                }
                return Ok(false);
            }
        };
        (self.session, self.events, self.lost) = (session, events, false);
        if !self.others.is_empty() {
            self.others.clear();
            let line = "the other sessions are not open any more; /sessions continues them";
            self.say(Colour::Yellow, line).await?;
        }
        let line = match continued {
            true => "the session continues",
            false => {
                "the agent cannot continue the session: this is a new one, without its history"
            }
        };
        self.say(Colour::Yellow, line).await?;
        Ok(true)
    }

    /// Starts the agent again and continues the session if the agent can. Returns also whether it
    /// is the same session.
    async fn open_again(&mut self) -> Result<(Session, Events, bool), OpeningFailure> {
        let asked = Some(self.ask.clone());
        let setup = &self.args.setup;
        let client = connect(
            setup,
            &self.cwd,
            asked,
            self.notes,
            self.slot,
            false,
            elicits(&self.ask),
        )
        .await?;
        let id = self.session.id().clone();
        match self.opening.again(client, id, &self.cwd, false).await {
            Ok((session, events)) => Ok((session, events, true)),
            Err(OpeningFailure::Session(_)) => {
                let before = Some(self.session.id());
                let (session, events) = self.opening.begin(client, &self.cwd, before).await?;
                Ok((session, events, false))
            }
            Err(failure) => Err(failure),
        }
    }
}
