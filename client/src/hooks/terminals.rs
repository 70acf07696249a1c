//! Commands that an agent runs through its client.

use acp_sdk::HandlerResult;
use acp_sdk::v1::{
    CreateTerminalRequest, CreateTerminalResponse, KillTerminalRequest, KillTerminalResponse,
    ReleaseTerminalRequest, ReleaseTerminalResponse, SessionId, TerminalOutputRequest,
    TerminalOutputResponse, WaitForTerminalExitRequest, WaitForTerminalExitResponse,
};

use super::{Boxed, SessionContext};

/// Answers `terminal/*`.
///
/// Spec: <https://agentclientprotocol.com/protocol/v1/terminals>
pub trait Terminals: Send + Sync + 'static {
    /// Starts a command. Without a directory in the request it runs in that of the session.
    fn create(
        &self,
        session: &SessionContext,
        request: CreateTerminalRequest,
    ) -> impl Future<Output = HandlerResult<CreateTerminalResponse>> + Send;

    /// Returns what the command has printed, and how it ended if it has.
    fn output(
        &self,
        session: &SessionContext,
        request: TerminalOutputRequest,
    ) -> impl Future<Output = HandlerResult<TerminalOutputResponse>> + Send;

    /// Waits for the end of the command. The future is dropped when the agent cancels the request.
    fn wait_for_exit(
        &self,
        session: &SessionContext,
        request: WaitForTerminalExitRequest,
    ) -> impl Future<Output = HandlerResult<WaitForTerminalExitResponse>> + Send;

    /// Ends the command, and keeps the terminal.
    fn kill(
        &self,
        session: &SessionContext,
        request: KillTerminalRequest,
    ) -> impl Future<Output = HandlerResult<KillTerminalResponse>> + Send;

    /// Ends the command if it runs, and forgets the terminal.
    fn release(
        &self,
        session: &SessionContext,
        request: ReleaseTerminalRequest,
    ) -> impl Future<Output = HandlerResult<ReleaseTerminalResponse>> + Send;

    /// The session has ended: its commands must end too. Must not block.
    fn end_session(&self, session: &SessionId);

    /// Whether the client declares terminals (default yes).
    fn is_offered(&self) -> bool {
        true
    }
}

/// [`Terminals`] behind a pointer.
pub(crate) trait AnyTerminals: Send + Sync + 'static {
    fn create_boxed<'a>(
        &'a self,
        session: &'a SessionContext,
        request: CreateTerminalRequest,
    ) -> Boxed<'a, HandlerResult<CreateTerminalResponse>>;

    fn output_boxed<'a>(
        &'a self,
        session: &'a SessionContext,
        request: TerminalOutputRequest,
    ) -> Boxed<'a, HandlerResult<TerminalOutputResponse>>;

    fn wait_boxed<'a>(
        &'a self,
        session: &'a SessionContext,
        request: WaitForTerminalExitRequest,
    ) -> Boxed<'a, HandlerResult<WaitForTerminalExitResponse>>;

    fn kill_boxed<'a>(
        &'a self,
        session: &'a SessionContext,
        request: KillTerminalRequest,
    ) -> Boxed<'a, HandlerResult<KillTerminalResponse>>;

    fn release_boxed<'a>(
        &'a self,
        session: &'a SessionContext,
        request: ReleaseTerminalRequest,
    ) -> Boxed<'a, HandlerResult<ReleaseTerminalResponse>>;

    fn session_ended(&self, session: &SessionId);

    fn declared(&self) -> bool;
}

impl<T: Terminals> AnyTerminals for T {
    fn create_boxed<'a>(
        &'a self,
        session: &'a SessionContext,
        request: CreateTerminalRequest,
    ) -> Boxed<'a, HandlerResult<CreateTerminalResponse>> {
        Box::pin(self.create(session, request))
    }

    fn output_boxed<'a>(
        &'a self,
        session: &'a SessionContext,
        request: TerminalOutputRequest,
    ) -> Boxed<'a, HandlerResult<TerminalOutputResponse>> {
        Box::pin(self.output(session, request))
    }

    fn wait_boxed<'a>(
        &'a self,
        session: &'a SessionContext,
        request: WaitForTerminalExitRequest,
    ) -> Boxed<'a, HandlerResult<WaitForTerminalExitResponse>> {
        Box::pin(self.wait_for_exit(session, request))
    }

    fn kill_boxed<'a>(
        &'a self,
        session: &'a SessionContext,
        request: KillTerminalRequest,
    ) -> Boxed<'a, HandlerResult<KillTerminalResponse>> {
        Box::pin(self.kill(session, request))
    }

    fn release_boxed<'a>(
        &'a self,
        session: &'a SessionContext,
        request: ReleaseTerminalRequest,
    ) -> Boxed<'a, HandlerResult<ReleaseTerminalResponse>> {
        Box::pin(self.release(session, request))
    }

    fn session_ended(&self, session: &SessionId) {
        self.end_session(session);
    }

    fn declared(&self) -> bool {
        self.is_offered()
    }
}
