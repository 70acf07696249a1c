//! A command running in a terminal of the client.

use std::sync::Arc;

use acp_sdk::v1::{
    ClientHandle, CreateTerminalRequest, KillTerminalRequest, ReleaseTerminalRequest, TerminalId,
    TerminalOutputRequest, TerminalOutputResponse, WaitForTerminalExitRequest,
};
use tokio::sync::oneshot;

use super::Core;
use crate::connection::Client;
use crate::{Capability, Error, Result};

/// A terminal. Dropping it releases it, which kills the command if it still runs; the turn
/// does not end before that is done.
///
/// Spec: <https://agentclientprotocol.com/protocol/v1/terminals>
#[derive(Debug)]
#[must_use = "a terminal that is dropped is released, and its command killed"]
pub struct Terminal {
    core: Arc<Core>,
    /// The client that has it.
    client: Arc<Client>,
    handle: ClientHandle,
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
    /// The request is completed even if this future is dropped: otherwise nothing would know which
    /// terminal to release.
    pub(super) async fn create(core: &Arc<Core>, request: CreateTerminalRequest) -> Result<Self> {
        let client = core.needs(Capability::Terminal).await?;
        let handle = client
            .handle()
            .ok_or(Error::Unsupported(Capability::Terminal))?;
        let (created, creation) = oneshot::channel();
        core.unless_cancelled(async {
            core.errand(|core| async move {
                let terminal = handle.create_terminal(request).await;
                let terminal = terminal.map(|terminal| Self {
                    core,
                    client,
                    handle,
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

    /// Returns the id.
    #[must_use]
    pub fn id(&self) -> &TerminalId {
        &self.id
    }

    /// Returns the output so far.
    ///
    /// # Errors
    ///
    /// [`Error::Cancelled`] when the turn is cancelled; otherwise the client's error. The same holds
    /// for all methods here.
    pub async fn output(&self) -> Result<TerminalOutputResponse> {
        let request = TerminalOutputRequest::new(self.core.session.id(), &self.id);
        let asking = self.handle.terminal_output(request);
        self.ask(asking).await
    }

    /// Waits until the command has ended.
    ///
    /// # Errors
    ///
    /// As [`output`](Self::output).
    pub async fn wait(&self) -> Result<Exit> {
        let request = WaitForTerminalExitRequest::new(self.core.session.id(), &self.id);
        let asking = self.handle.wait_for_terminal_exit(request);
        let ended = self.ask(asking).await?;
        Ok(Exit {
            code: ended.exit_code,
            signal: ended.signal,
        })
    }

    /// Kills the command; its output and exit can still be requested.
    ///
    /// # Errors
    ///
    /// As [`output`](Self::output).
    pub async fn kill(&self) -> Result<()> {
        let request = KillTerminalRequest::new(self.core.session.id(), &self.id);
        let asking = self.handle.kill_terminal(request);
        self.ask(asking).await?;
        Ok(())
    }

    /// Releases the terminal and waits for the client's answer.
    ///
    /// # Errors
    ///
    /// As [`output`](Self::output).
    pub async fn release(mut self) -> Result<()> {
        let releasing = self.handle.release_terminal(self.giving_back());
        self.ask(releasing).await?;
        self.released = true;
        Ok(())
    }

    /// Sends a request behind the updates before it, which may show the terminal.
    async fn ask<T>(&self, asking: impl Future<Output = acp_sdk::Result<T>>) -> Result<T> {
        let asking = async {
            self.core.caught_up(&self.client).await;
            asking.await
        };
        self.core.unless_cancelled(asking).await
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
        let (client, handle) = (self.client.clone(), self.handle.clone());
        self.core.errand(|core| async move {
            core.caught_up(&client).await;
            // A client that does not know the terminal any more has released it.
            let _ = handle.release_terminal(request).await;
        });
    }
}
