//! Commands that an agent runs through its client.

use acp_sdk::HandlerResult;
use acp_sdk::v1::{
    CreateTerminalRequest, CreateTerminalResponse, KillTerminalRequest, KillTerminalResponse,
    ReleaseTerminalRequest, ReleaseTerminalResponse, TerminalOutputRequest, TerminalOutputResponse,
    WaitForTerminalExitRequest, WaitForTerminalExitResponse,
};

use super::{ConnectionId, SessionContext};

/// Answers `terminal/*`.
///
/// A hook that several clients share must distinguish their terminals by
/// [`SessionContext::connection`]: an agent must not reach those of another one.
///
/// Spec: <https://agentclientprotocol.com/protocol/v1/terminals>
pub trait Terminals: Send + Sync + 'static {
    /// Starts a command, in the session's directory unless the request names another one.
    fn create(
        &self,
        session: &SessionContext,
        request: CreateTerminalRequest,
    ) -> impl Future<Output = HandlerResult<CreateTerminalResponse>> + Send;

    /// Returns the output of the command, and its exit status if it has exited.
    fn output(
        &self,
        session: &SessionContext,
        request: TerminalOutputRequest,
    ) -> impl Future<Output = HandlerResult<TerminalOutputResponse>> + Send;

    /// Waits for the exit of the command. The future is dropped when the agent cancels the request.
    fn wait_for_exit(
        &self,
        session: &SessionContext,
        request: WaitForTerminalExitRequest,
    ) -> impl Future<Output = HandlerResult<WaitForTerminalExitResponse>> + Send;

    /// Kills the command; the terminal remains valid.
    fn kill(
        &self,
        session: &SessionContext,
        request: KillTerminalRequest,
    ) -> impl Future<Output = HandlerResult<KillTerminalResponse>> + Send;

    /// Kills the command if it is running, and releases the terminal.
    fn release(
        &self,
        session: &SessionContext,
        request: ReleaseTerminalRequest,
    ) -> impl Future<Output = HandlerResult<ReleaseTerminalResponse>> + Send;

    /// Kills the commands of a session that has ended. Must not block.
    fn end_session(&self, session: &SessionContext);

    /// Kills the commands of a connection that has ended, or whose agent was restarted (default: no-op).
    /// Must not block.
    ///
    /// They may be in sessions that the client has never opened: an agent may start commands before it
    /// answers `session/new`.
    fn end_connection(&self, connection: ConnectionId) {
        let _ = connection;
    }

    /// Returns whether the [permissions](crate::Permissions) decide before a command is started (default:
    /// yes).
    ///
    /// Return `false` only where the agent may run every command, or where the hook asks by itself.
    fn is_guarded(&self) -> bool {
        true
    }

    /// Returns whether the client declares terminals (default `true`).
    fn is_offered(&self) -> bool {
        true
    }
}
