//! One process of the agent, or one connection to a server that has it: started, initialized, and its
//! end.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use acp_client::internal::{ProcessTree, Request, Response, is_lost_request};
use acp_sdk::runtime::Method as _;
use acp_sdk::v1::{AgentHandle, InitializeResponse};
use acp_sdk::{Error, HandlerError, HandlerResult, Json, RpcError, RunningConnection};
use tokio::sync::{OwnedSemaphorePermit, watch};
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::link::Link;
use super::offered::Offered;
use super::routes::Routes;
use super::supervisor::{Faults, supervise};
use super::uses::{InUse, Uses};
use super::version::Version;

/// Time for the supervisor to find out how a process has ended.
const EXPLANATION: Duration = Duration::from_secs(15);

/// What becomes a process: a connection that is initialized. Dropped, it is cut.
pub(super) struct Opened {
    pub(super) link: Link,
    pub(super) connection: RunningConnection,
    pub(super) agent: AgentHandle,
    pub(super) info: InitializeResponse,
    /// Whether the agent has `session/fork`.
    pub(super) forks: bool,
    pub(super) version: Version,
    pub(super) routes: Arc<Routes>,
    pub(super) uses: Arc<Uses>,
    pub(super) faults: Arc<Faults>,
}

/// An initialized process. Dropped, it is ended in the background.
#[derive(Debug)]
pub(super) struct Process {
    pub(super) agent: AgentHandle,
    pub(super) info: InitializeResponse,
    pub(super) version: Version,
    /// Whether the agent has `session/fork`.
    pub(super) forks: bool,
    pub(super) routes: Arc<Routes>,
    pub(super) uses: Arc<Uses>,
    /// It and the processes that it has started.
    /// `None`: its processes are not ours.
    pub(super) tree: Option<ProcessTree>,
    command: String,
    started: Instant,
    /// Ends it in steps.
    stop: CancellationToken,
    /// Ends it at once, with a reason.
    faults: Arc<Faults>,
    /// Why it has ended.
    ended: watch::Receiver<Option<Arc<str>>>,
    turns: AtomicUsize,
    answer_timeout: Duration,
}

/// Which sessions a process is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Key {
    /// Those whose clients offer this.
    Shared(Offered),
    /// One session.
    Session(u64, Offered),
}

impl Key {
    pub(super) fn offered(self) -> Offered {
        match self {
            Self::Shared(offered) | Self::Session(_, offered) => offered,
        }
    }
}

/// What the owner of a process needs of those that own all of them.
#[derive(Debug)]
pub(super) struct Place {
    /// Cancelled when all processes end.
    pub(super) stop: CancellationToken,
    /// Waits for their end.
    pub(super) supervisors: TaskTracker,
    /// Counts them, until the process has ended.
    pub(super) permit: OwnedSemaphorePermit,
}

impl Drop for Process {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

impl Process {
    /// Takes what is initialized.
    pub(super) fn new(opened: Opened, place: Place, answer_timeout: Duration) -> Self {
        let Opened {
            link,
            connection,
            agent,
            info,
            forks,
            version,
            routes,
            uses,
            faults,
        } = opened;
        let command = link.name().to_owned();
        let (ending, ended) = watch::channel(None);
        let (stop, tree) = (place.stop, link.tree());
        let supervisor = supervise(
            link,
            connection,
            stop.clone(),
            faults.clone(),
            (place.permit, ending),
        );
        place.supervisors.spawn(supervisor);
        Self {
            agent,
            info,
            version,
            forks,
            routes,
            uses,
            tree,
            command,
            started: Instant::now(),
            stop,
            faults,
            ended,
            turns: AtomicUsize::new(0),
            answer_timeout,
        }
    }

    pub(super) fn command(&self) -> &str {
        &self.command
    }

    pub(super) fn lived(&self) -> Duration {
        self.started.elapsed()
    }

    /// Returns whether it can be given work.
    pub(super) fn is_usable(&self) -> bool {
        self.is_running() && !self.uses.is_closed()
    }

    /// Begins a use of it; `None` if it can be given no work.
    pub(super) fn begin_use(&self) -> Option<InUse> {
        let used = self.uses.begin()?;
        self.is_running().then_some(used)
    }

    /// Returns whether a session that it has loses nothing if it is ended.
    pub(super) fn can_reopen(&self) -> bool {
        let capabilities = &self.info.agent_capabilities;
        capabilities.load_session || capabilities.session_capabilities.resume.is_some()
    }

    /// Ends it in the background, if it has no session and is not used. Returns whether it does.
    pub(super) fn end_if_empty(&self) -> bool {
        self.end_if(|_| self.routes.is_empty())
    }

    /// Ends it in the background, if it is not used, this accepts for how long, and its sessions can go on
    /// in another process. Returns whether it does.
    pub(super) fn end_if_idle(&self, may: impl FnOnce(Duration) -> bool) -> bool {
        self.end_if(|idle| {
            let loses_nothing = || self.can_reopen() && !self.routes.has_terminals();
            may(idle) && (self.routes.is_empty() || loses_nothing())
        })
    }

    fn end_if(&self, may: impl FnOnce(Duration) -> bool) -> bool {
        self.uses.close_if(|idle| {
            let ends = may(idle);
            if ends {
                // Before anybody can see that it gets no work: it has not failed.
                self.stop.cancel();
            }
            ends
        })
    }

    /// Ends it at once: it exceeds a limit.
    pub(super) fn exceeds(&self, reason: &str) {
        self.faults.breaks(reason);
    }

    /// Returns whether it has not ended, and is not being ended.
    pub(super) fn is_running(&self) -> bool {
        let closed = self.agent.peer().is_closed() || self.agent.peer().is_closing();
        !closed && !self.stop.is_cancelled() && !self.faults.is_broken()
    }

    /// Returns whether it was ended although nothing was wrong with it.
    pub(super) fn was_stopped(&self) -> bool {
        self.stop.is_cancelled()
    }

    /// Ends it in steps, and waits.
    pub(super) async fn shut_down(&self) {
        self.stop.cancel();
        self.until_ended().await;
    }

    async fn until_ended(&self) -> Option<Arc<str>> {
        let mut ended = self.ended.clone();
        let text = timeout(EXPLANATION, ended.wait_for(Option::is_some)).await;
        text.ok()?.ok()?.clone()
    }

    /// Returns why it has ended: command, exit and last lines.
    pub(super) async fn reason(&self) -> Arc<str> {
        let reason = self.until_ended().await;
        reason.unwrap_or_else(|| format!("`{}` does not answer any more", self.command).into())
    }

    /// Gives it no further turns, because it does not react, and ends it when the last turn of
    /// another session has ended.
    pub(super) fn retire(&self) {
        self.uses.close();
        self.end_if_retired();
    }

    /// A turn runs as long as the result lives.
    pub(super) fn turn(self: &Arc<Self>) -> TurnOf {
        self.turns.fetch_add(1, Ordering::AcqRel);
        TurnOf(self.clone())
    }

    fn end_if_retired(&self) {
        // One that is closed because nobody uses it has no turn that could end.
        if self.uses.is_closed() && self.turns.load(Ordering::Acquire) == 0 {
            self.faults.breaks("it ignored a cancellation");
        }
    }

    /// Calls a method in the version of the agent.
    ///
    /// # Errors
    ///
    /// The agent's error unchanged, or why there is no answer.
    pub(super) async fn call<M: Request>(
        &self,
        params: &M::Params,
    ) -> HandlerResult<Response<M::Result>> {
        self.call_within::<M>(self.answer_timeout, params).await
    }

    /// The same with another limit.
    ///
    /// # Errors
    ///
    /// As [`call`](Self::call).
    pub(super) async fn call_within<M: Request>(
        &self,
        limit: Duration,
        params: &M::Params,
    ) -> HandlerResult<Response<M::Result>> {
        let answered = self.try_call::<M>(limit, params).await?;
        answered.map_err(HandlerError::response)
    }

    /// The same as [`call`](Self::call), with the agent's own error inside.
    ///
    /// # Errors
    ///
    /// Why there is no answer.
    pub(super) async fn call_or_refusal<M: Request>(
        &self,
        params: &M::Params,
    ) -> HandlerResult<Result<Response<M::Result>, RpcError>> {
        self.try_call::<M>(self.answer_timeout, params).await
    }

    async fn try_call<M: Request>(
        &self,
        limit: Duration,
        params: &M::Params,
    ) -> HandlerResult<Result<Response<M::Result>, RpcError>> {
        let peer = self.agent.peer();
        if self.version == Version::V2 {
            let params = M::to_v2(params).map_err(HandlerError::internal)?;
            let call = peer.call::<M::V2>(&params);
            return match self.answered(limit, M::V2::NAME, call).await? {
                Ok(answer) => {
                    let response = Response::of_v2::<M>(answer);
                    response.map(Ok).map_err(HandlerError::internal)
                }
                Err(refusal) => Ok(Err(refusal)),
            };
        }
        let answer = self
            .answered(limit, M::NAME, peer.call::<M>(params))
            .await?;
        Ok(answer.map(|result| Response {
            result,
            commands: None,
        }))
    }

    /// Calls a method that version 1 does not have.
    ///
    /// # Errors
    ///
    /// As [`call`](Self::call).
    pub(super) async fn call_ext(
        &self,
        method: &str,
        params: Option<&Json>,
    ) -> HandlerResult<Json> {
        let answered = self.call_ext_or_refusal(method, params).await?;
        answered.map_err(HandlerError::response)
    }

    /// The same, with the agent's own error inside.
    ///
    /// # Errors
    ///
    /// Why there is no answer.
    pub(super) async fn call_ext_or_refusal(
        &self,
        method: &str,
        params: Option<&Json>,
    ) -> HandlerResult<Result<Json, RpcError>> {
        let call = self.agent.peer().call_ext(method, params);
        self.answered(self.answer_timeout, method, call).await
    }

    /// Waits for the answer to a request other than a prompt.
    async fn answered<T>(
        &self,
        limit: Duration,
        method: &str,
        call: impl Future<Output = acp_sdk::Result<T>>,
    ) -> HandlerResult<Result<T, RpcError>> {
        match timeout(limit, call).await {
            Ok(Ok(answer)) => Ok(Ok(answer)),
            Ok(Err(Error::Response { error, .. })) if !is_lost_request(&error) => Ok(Err(*error)),
            Ok(Err(error)) => Err(self.failed(error).await),
            Err(_) => Err(HandlerError::internal(format!(
                "`{}` did not answer {method} within {limit:?}",
                self.command
            ))),
        }
    }

    /// Returns the error of a call as that of the client's request.
    pub(super) async fn failed(&self, error: Error) -> HandlerError {
        match error {
            // The connection to its server was lost, and is opened again.
            Error::Response { error, .. } if is_lost_request(&error) => {
                HandlerError::internal(error.message)
            }
            Error::Response { error, .. } => HandlerError::response(*error),
            Error::Closed(_) => {
                let reason = self.reason().await;
                HandlerError::internal(format!(
                    "the agent has gone: {reason}. It is started again when it is needed"
                ))
            }
            error => HandlerError::internal(error),
        }
    }
}

/// A running turn of a process.
#[derive(Debug)]
pub(super) struct TurnOf(Arc<Process>);

impl Drop for TurnOf {
    fn drop(&mut self) {
        self.0.turns.fetch_sub(1, Ordering::AcqRel);
        self.0.end_if_retired();
    }
}
