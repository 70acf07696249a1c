//! Implements the client's file and terminal hooks for a workspace.

use acp_sdk::HandlerResult;
use acp_sdk::v1::{
    CreateTerminalRequest, CreateTerminalResponse, KillTerminalRequest, KillTerminalResponse,
    ReadTextFileRequest, ReadTextFileResponse, ReleaseTerminalRequest, ReleaseTerminalResponse,
    TerminalOutputRequest, TerminalOutputResponse, WaitForTerminalExitRequest,
    WaitForTerminalExitResponse, WriteTextFileRequest, WriteTextFileResponse,
};

use super::Workspace;
use crate::hooks::{ConnectionId, Files, SessionContext, Terminals};

impl Files for Workspace {
    async fn read(
        &self,
        session: &SessionContext,
        request: ReadTextFileRequest,
    ) -> HandlerResult<ReadTextFileResponse> {
        self.read_text_file(session, request).await
    }

    async fn write(
        &self,
        session: &SessionContext,
        request: WriteTextFileRequest,
    ) -> HandlerResult<WriteTextFileResponse> {
        self.write_text_file(session, request).await
    }

    fn is_guarded(&self) -> bool {
        self.is_guarded
    }
}

impl Terminals for Workspace {
    async fn create(
        &self,
        session: &SessionContext,
        request: CreateTerminalRequest,
    ) -> HandlerResult<CreateTerminalResponse> {
        self.create_terminal(session, request).await
    }

    async fn output(
        &self,
        session: &SessionContext,
        request: TerminalOutputRequest,
    ) -> HandlerResult<TerminalOutputResponse> {
        self.terminal_output(session, request).await
    }

    async fn wait_for_exit(
        &self,
        session: &SessionContext,
        request: WaitForTerminalExitRequest,
    ) -> HandlerResult<WaitForTerminalExitResponse> {
        self.wait_for_terminal_exit(session, request).await
    }

    async fn kill(
        &self,
        session: &SessionContext,
        request: KillTerminalRequest,
    ) -> HandlerResult<KillTerminalResponse> {
        self.kill_terminal(session, request).await
    }

    async fn release(
        &self,
        session: &SessionContext,
        request: ReleaseTerminalRequest,
    ) -> HandlerResult<ReleaseTerminalResponse> {
        self.release_terminal(session, request).await
    }

    fn end_session(&self, session: &SessionContext) {
        Workspace::end_session(self, session);
    }

    fn end_connection(&self, connection: ConnectionId) {
        Workspace::end_connection(self, connection);
    }

    fn is_guarded(&self) -> bool {
        self.is_guarded
    }

    fn is_offered(&self) -> bool {
        self.terminals_declared
    }
}
