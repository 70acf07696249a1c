//! One process of the agent, or one connection to a server that has it: started, initialized, and its
//! end.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use acp_client::internal::{Request, Response, is_lost_request};
#[cfg(feature = "v2")]
use acp_sdk::runtime::Method as _;
use acp_sdk::v1::{
    AgentHandle, ErrorCode, Implementation, InitializeRequest, InitializeResponse, ProtocolVersion,
};
use acp_sdk::{ConnectionBuilder, Error, HandlerError, HandlerResult, RpcError};
use tokio::sync::watch;
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

use super::HostedError;
use super::builder::Spec;
use super::incoming::Incoming;
use super::link::Link;
use super::offered::Offered;
use super::routes::Routes;
use super::stderr::printable;
use super::supervisor::{Faults, Watched, supervise};
use super::version::Version;

/// Time for the supervisor to find out how a process has ended.
const EXPLANATION: Duration = Duration::from_secs(15);

/// The code with which an agent of later versions only refuses `initialize`.
const UNSUPPORTED_VERSION: i32 = -32022;

/// An initialized process. Dropped, it is ended in the background.
#[derive(Debug)]
pub(super) struct Process {
    pub(super) agent: AgentHandle,
    pub(super) info: InitializeResponse,
    pub(super) version: Version,
    pub(super) routes: Arc<Routes>,
    command: String,
    started: Instant,
    /// Ends it in steps.
    stop: CancellationToken,
    /// Ends it at once, with a reason.
    faults: Arc<Faults>,
    /// Why it has ended.
    ended: watch::Receiver<Option<Arc<str>>>,
    /// It gets no further turns.
    retired: AtomicBool,
    turns: AtomicUsize,
    answer_timeout: Duration,
}

impl Drop for Process {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

impl Process {
    /// Starts a process and initializes it. One that turns out to speak version 2 only is started again.
    pub(super) async fn start(spec: &Spec, offered: Offered) -> Result<Self, HostedError> {
        let version = spec.version();
        match Self::start_in(spec, offered, version).await {
            Err(HostedError::Version { .. })
                if version == Version::V1 && spec.use_next_version() =>
            {
                Self::start_in(spec, offered, spec.version()).await
            }
            started => started,
        }
    }

    async fn start_in(
        spec: &Spec,
        offered: Offered,
        version: Version,
    ) -> Result<Self, HostedError> {
        let limits = spec.limits();
        let (link, transport) = Link::open(spec).await?;
        let command = link.name().to_owned();
        let routes = Arc::new(Routes::default());
        let faults = Arc::new(Faults::new(limits.invalid_lines, spec.stderr.clone()));
        let connection = ConnectionBuilder::new()
            .observer(Watched(faults.clone()))
            .max_message_bytes(limits.message_bytes)
            .answer_invalid(false);
        let connection = match link.explain_close() {
            Some(reason) => connection.explain_close(reason),
            None => connection,
        };
        let connection = version.layered(connection);
        let connection = connection
            .open(Incoming::new(routes.clone(), version), transport)
            .start();
        let hello = InitializeRequest::new(ProtocolVersion::V1)
            .with_client_capabilities(offered.capabilities())
            .with_client_info(Implementation::new("acp-server", env!("CARGO_PKG_VERSION")));
        let agent = AgentHandle::new(connection.peer().clone());
        let initialized = tokio::select! {
            biased;
            initialized = timeout(limits.start_timeout, version.initialize(&agent, hello)) => initialized,
            () = faults.broken() => Ok(Err(Error::Closed(faults.reason()))),
        };
        let info = match initialized {
            Ok(Ok(info)) if info.protocol_version == version.number() => info,
            Ok(Ok(info)) => {
                let version = info.protocol_version.into();
                return Err(HostedError::Version { command, version });
            }
            Ok(Err(Error::UnsupportedVersion { version })) => {
                return Err(HostedError::Version { command, version });
            }
            Ok(Err(Error::Response { error, .. }))
                if error.code == ErrorCode::from(UNSUPPORTED_VERSION) =>
            {
                let version = 2;
                return Err(HostedError::Version { command, version });
            }
            Ok(Err(Error::Closed(reason))) => {
                let ended = link.ended_text(&reason).await;
                return Err(HostedError::Ended(ended));
            }
            Ok(Err(error)) => {
                let reason = printable(&error.to_string());
                return Err(HostedError::Refused { command, reason });
            }
            Err(_) => {
                return Err(HostedError::TimedOut {
                    after: limits.start_timeout,
                    stderr: link.last_lines().await,
                    command,
                });
            }
        };
        let (ending, ended) = watch::channel(None);
        let stop = CancellationToken::new();
        tokio::spawn(supervise(
            link,
            connection,
            stop.clone(),
            faults.clone(),
            ending,
        ));
        Ok(Self {
            agent,
            info,
            version,
            routes,
            command,
            started: Instant::now(),
            stop,
            faults,
            ended,
            retired: AtomicBool::new(false),
            turns: AtomicUsize::new(0),
            answer_timeout: limits.answer_timeout,
        })
    }

    pub(super) fn command(&self) -> &str {
        &self.command
    }

    pub(super) fn lived(&self) -> Duration {
        self.started.elapsed()
    }

    /// Returns whether it can be given work.
    pub(super) fn is_usable(&self) -> bool {
        self.is_running() && !self.retired.load(Ordering::Acquire)
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
        self.retired.store(true, Ordering::Release);
        self.end_if_retired();
    }

    /// A turn runs as long as the result lives.
    pub(super) fn turn(self: &Arc<Self>) -> TurnOf {
        self.turns.fetch_add(1, Ordering::AcqRel);
        TurnOf(self.clone())
    }

    fn end_if_retired(&self) {
        if self.retired.load(Ordering::Acquire) && self.turns.load(Ordering::Acquire) == 0 {
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
        match self.call_or_refusal::<M>(params).await? {
            Ok(response) => Ok(response),
            Err(refusal) => Err(HandlerError::response(refusal)),
        }
    }

    /// The same, with the agent's own error inside.
    ///
    /// # Errors
    ///
    /// Why there is no answer.
    pub(super) async fn call_or_refusal<M: Request>(
        &self,
        params: &M::Params,
    ) -> HandlerResult<Result<Response<M::Result>, RpcError>> {
        #[cfg(feature = "v2")]
        if self.version == Version::V2 {
            let params = M::to_v2(params).map_err(HandlerError::internal)?;
            let call = self.agent.peer().call::<M::V2>(&params);
            let answer = self.answer_or_refusal(M::V2::NAME, call).await?;
            return answer
                .map(Response::of_v2::<M>)
                .map(|response| response.map_err(HandlerError::internal))
                .map_or_else(|refusal| Ok(Err(refusal)), |response| response.map(Ok));
        }
        let call = self.agent.peer().call::<M>(params);
        let answer = self.answer_or_refusal(M::NAME, call).await?;
        Ok(answer.map(|result| Response {
            result,
            commands: None,
        }))
    }

    /// Waits for the answer to a request other than a prompt.
    ///
    /// # Errors
    ///
    /// The agent's error unchanged, or why there is none.
    pub(super) async fn answer<T>(
        &self,
        method: &str,
        call: impl Future<Output = acp_sdk::Result<T>>,
    ) -> HandlerResult<T> {
        match self.answer_or_refusal(method, call).await? {
            Ok(answer) => Ok(answer),
            Err(refusal) => Err(HandlerError::response(refusal)),
        }
    }

    /// The same, with the agent's own error inside.
    ///
    /// # Errors
    ///
    /// Why there is no answer.
    pub(super) async fn answer_or_refusal<T>(
        &self,
        method: &str,
        call: impl Future<Output = acp_sdk::Result<T>>,
    ) -> HandlerResult<Result<T, RpcError>> {
        match timeout(self.answer_timeout, call).await {
            Ok(Ok(answer)) => Ok(Ok(answer)),
            Ok(Err(Error::Response { error, .. })) if !is_lost_request(&error) => Ok(Err(*error)),
            Ok(Err(error)) => Err(self.failed(error).await),
            Err(_) => Err(HandlerError::internal(format!(
                "`{}` did not answer {method} within {:?}",
                self.command, self.answer_timeout
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
