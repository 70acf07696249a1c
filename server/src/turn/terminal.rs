//! A command running in a terminal of the client.

use std::sync::Arc;

use acp_sdk::v1::{
    CreateTerminalRequest, KillTerminalRequest, ReleaseTerminalRequest, TerminalId,
    TerminalOutputRequest, TerminalOutputResponse, WaitForTerminalExitRequest,
};
use tokio::sync::oneshot;

use super::Core;
use crate::{Capability, Error, Result};

/// A terminal. Dropping it releases it, which kills the command if it still runs; the turn
/// does not end before that is done.
///
/// Spec: <https://agentclientprotocol.com/protocol/v1/terminals>
#[derive(Debug)]
#[must_use = "a terminal that is dropped is released, and its command killed"]
pub struct Terminal {
    core: Arc<Core>,
    id: TerminalId,
    released: bool,
}

/// How a command ended.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Exit {
    /// The exit code, if the command ended by itself.
    pub code: Option<u32>,
    /// The signal that ended it, if one did.
    pub signal: Option<String>,
}

impl Exit {
    /// Whether the command ended by itself with exit code 0.
    #[must_use]
    pub fn is_success(&self) -> bool {
        self.code == Some(0)
    }
}

impl std::fmt::Display for Exit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (self.code, &self.signal) {
            (Some(code), _) => write!(f, "exit code {code}"),
            (None, Some(signal)) => write!(f, "ended by {signal}"),
            (None, None) => f.write_str("ended"),
        }
    }
}

impl Terminal {
    /// The request is sent as an errand: were it given up half-way, nobody would ever know
    /// which terminal to release.
    pub(super) async fn create(core: &Arc<Core>, request: CreateTerminalRequest) -> Result<Self> {
        core.needs(Capability::Terminal)?;
        let (created, creation) = oneshot::channel();
        core.unless_cancelled(async {
            core.errand(|core| async move {
                let terminal = core.client.create_terminal(request).await;
                let terminal = terminal.map(|terminal| Self {
                    core,
                    id: terminal.terminal_id,
                    released: false,
                });
                // If nobody wants it any more, it is dropped and so released.
                let _ = created.send(terminal);
            });
            match creation.await {
                Ok(terminal) => terminal.map_err(Error::Call),
                Err(_) => Err(Error::failed("`terminal/create` was aborted")),
            }
        })
        .await
    }

    /// The id.
    #[must_use]
    pub fn id(&self) -> &TerminalId {
        &self.id
    }

    /// The output so far.
    ///
    /// # Errors
    ///
    /// [`Error::Cancelled`] when the turn is, else the client's error; so for all methods here.
    pub async fn output(&self) -> Result<TerminalOutputResponse> {
        let request = TerminalOutputRequest::new(self.core.session.id(), &self.id);
        let asking = self.core.client.terminal_output(request);
        self.core.unless_cancelled(asking).await
    }

    /// Waits until the command has ended.
    ///
    /// # Errors
    ///
    /// As [`output`](Self::output).
    pub async fn wait(&self) -> Result<Exit> {
        let request = WaitForTerminalExitRequest::new(self.core.session.id(), &self.id);
        let asking = self.core.client.wait_for_terminal_exit(request);
        let ended = self.core.unless_cancelled(asking).await?;
        Ok(Exit {
            code: ended.exit_code,
            signal: ended.signal,
        })
    }

    /// Ends the command; its output and exit can still be asked for.
    ///
    /// # Errors
    ///
    /// As [`output`](Self::output).
    pub async fn kill(&self) -> Result<()> {
        let request = KillTerminalRequest::new(self.core.session.id(), &self.id);
        let asking = self.core.client.kill_terminal(request);
        self.core.unless_cancelled(asking).await?;
        Ok(())
    }

    /// Gives the terminal back and waits until the client has it.
    ///
    /// # Errors
    ///
    /// As [`output`](Self::output).
    pub async fn release(mut self) -> Result<()> {
        let releasing = self.core.client.release_terminal(self.giving_back());
        self.core.unless_cancelled(releasing).await?;
        self.released = true;
        Ok(())
    }

    fn giving_back(&self) -> ReleaseTerminalRequest {
        ReleaseTerminalRequest::new(self.core.session.id(), &self.id)
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        if self.released {
            return;
        }
        let request = self.giving_back();
        self.core.errand(|core| async move {
            // A client that does not know the terminal any more has released it.
            let _ = core.client.release_terminal(request).await;
        });
    }
}
