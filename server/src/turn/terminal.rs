//! A command running in a terminal of the client, or on the machine of the agent.

use std::sync::Arc;

use acp_sdk::v1::{
    ClientHandle, CreateTerminalRequest, KillTerminalRequest, ReleaseTerminalRequest, TerminalId,
    TerminalOutputRequest, TerminalOutputResponse, WaitForTerminalExitRequest,
};
use tokio::sync::oneshot;

use super::TurnCore;
use super::local::Provider;
use crate::connection::Client;
use crate::local::Command;
use crate::{Capability, Error, Result};

/// A terminal. Dropping it releases it, which kills the command if it still runs; the turn
/// does not end before that is done.
///
/// It is one of a client. If no attached client has terminals, it is a process group on the agent's
/// own machine, where [`LocalTools`](crate::LocalTools) allows that.
///
/// Spec: <https://agentclientprotocol.com/protocol/v1/terminals>
#[derive(Debug)]
#[must_use = "a terminal that is dropped is released, and its command killed"]
pub struct Terminal {
    core: Arc<TurnCore>,
    place: Place,
    released: bool,
}

/// Where the command runs.
#[derive(Debug)]
enum Place {
    Client(Remote),
    Local(Arc<Command>),
}

/// A terminal of a client.
#[derive(Clone, Debug)]
struct Remote {
    client: Arc<Client>,
    handle: ClientHandle,
    id: TerminalId,
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
    pub(super) async fn create(
        core: &Arc<TurnCore>,
        request: CreateTerminalRequest,
    ) -> Result<Self> {
        match core.provider(Capability::Terminal).await? {
            Provider::Client(client) => Self::create_at(core, client, request).await,
            Provider::Local => {
                let command = core.start_locally(request).await?;
                Ok(Self::new(core, Place::Local(Arc::new(command))))
            }
        }
    }

    /// The request is completed even if this future is dropped: otherwise nothing would know which
    /// terminal to release.
    async fn create_at(
        core: &Arc<TurnCore>,
        client: Arc<Client>,
        request: CreateTerminalRequest,
    ) -> Result<Self> {
        let handle = client
            .handle()
            .ok_or(Error::Unsupported(Capability::Terminal))?;
        let (created, creation) = oneshot::channel();
        core.unless_cancelled(async {
            core.errand(|core| async move {
                let terminal = handle.create_terminal(request).await;
                let terminal = terminal.map(|terminal| {
                    let id = terminal.terminal_id;
                    let place = Remote { client, handle, id };
                    Self::new(&core, Place::Client(place))
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

    fn new(core: &Arc<TurnCore>, place: Place) -> Self {
        Self {
            core: core.clone(),
            place,
            released: false,
        }
    }

    /// Returns the id.
    #[must_use]
    pub fn id(&self) -> &TerminalId {
        match &self.place {
            Place::Client(remote) => &remote.id,
            Place::Local(command) => command.id(),
        }
    }

    /// Returns the command, if it runs on the agent's own machine.
    pub(super) fn local(&self) -> Option<&Arc<Command>> {
        match &self.place {
            Place::Client(_) => None,
            Place::Local(command) => Some(command),
        }
    }

    /// Returns the output so far.
    ///
    /// # Errors
    ///
    /// [`Error::Cancelled`] when the turn is cancelled; otherwise the client's error. The same holds
    /// for all methods here.
    pub async fn output(&self) -> Result<TerminalOutputResponse> {
        match &self.place {
            Place::Client(remote) => {
                let request = TerminalOutputRequest::new(self.core.session.id(), &remote.id);
                self.ask(remote, remote.handle.terminal_output(request))
                    .await
            }
            Place::Local(command) => {
                let output = async { Ok::<_, Error>(command.output(usize::MAX)) };
                self.core.unless_cancelled(output).await
            }
        }
    }

    /// Waits until the command has ended.
    ///
    /// # Errors
    ///
    /// As [`output`](Self::output).
    pub async fn wait(&self) -> Result<Exit> {
        match &self.place {
            Place::Client(remote) => {
                let request = WaitForTerminalExitRequest::new(self.core.session.id(), &remote.id);
                let waiting = remote.handle.wait_for_terminal_exit(request);
                let ended = self.ask(remote, waiting).await?;
                Ok(Exit {
                    code: ended.exit_code,
                    signal: ended.signal,
                })
            }
            Place::Local(command) => {
                let ended = async { Ok::<_, Error>(command.exited().await) };
                let ended = self.core.unless_cancelled(ended).await?;
                Ok(Exit {
                    code: ended.exit_code,
                    signal: ended.signal,
                })
            }
        }
    }

    /// Kills the command; its output and exit can still be requested.
    ///
    /// # Errors
    ///
    /// As [`output`](Self::output).
    pub async fn kill(&self) -> Result<()> {
        match &self.place {
            Place::Client(remote) => {
                let request = KillTerminalRequest::new(self.core.session.id(), &remote.id);
                self.ask(remote, remote.handle.kill_terminal(request))
                    .await?;
                Ok(())
            }
            Place::Local(command) => self.locally(command.kill()).await,
        }
    }

    /// Releases the terminal and waits until that is done.
    ///
    /// # Errors
    ///
    /// As [`output`](Self::output).
    pub async fn release(mut self) -> Result<()> {
        match &self.place {
            Place::Client(remote) => {
                let releasing = remote.handle.release_terminal(self.releasing(remote));
                self.ask(remote, releasing).await?;
            }
            Place::Local(command) => self.locally(command.release()).await?,
        }
        self.released = true;
        Ok(())
    }

    /// Sends a request behind the updates before it, which may show the terminal.
    async fn ask<T>(
        &self,
        remote: &Remote,
        asking: impl Future<Output = acp_sdk::Result<T>>,
    ) -> Result<T> {
        let asking = async {
            self.core.caught_up(&remote.client).await;
            asking.await
        };
        self.core.unless_cancelled(asking).await
    }

    async fn locally(&self, work: impl Future<Output = ()>) -> Result<()> {
        let work = async {
            work.await;
            Ok::<_, Error>(())
        };
        self.core.unless_cancelled(work).await
    }

    fn releasing(&self, remote: &Remote) -> ReleaseTerminalRequest {
        ReleaseTerminalRequest::new(self.core.session.id(), &remote.id)
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        if self.released {
            return;
        }
        match &self.place {
            Place::Client(remote) => {
                let request = self.releasing(remote);
                let remote = remote.clone();
                self.core.errand(|core| async move {
                    core.caught_up(&remote.client).await;
                    // A client that does not know the terminal any more has released it.
                    let _ = remote.handle.release_terminal(request).await;
                });
            }
            // Its task is one that the turn waits for.
            Place::Local(command) => command.begin_release(),
        }
    }
}
