//! Files that an agent reads and writes through its client.

use acp_sdk::HandlerResult;
use acp_sdk::v1::{
    FileSystemCapabilities, ReadTextFileRequest, ReadTextFileResponse, WriteTextFileRequest,
    WriteTextFileResponse,
};

use super::SessionContext;

/// Answers `fs/read_text_file` and `fs/write_text_file`.
///
/// Spec: <https://agentclientprotocol.com/protocol/v1/file-system>
pub trait Files: Send + Sync + 'static {
    /// Reads a file or a range of its lines.
    fn read(
        &self,
        session: &SessionContext,
        request: ReadTextFileRequest,
    ) -> impl Future<Output = HandlerResult<ReadTextFileResponse>> + Send;

    /// Replaces the content of a file; creates the file if it does not exist.
    fn write(
        &self,
        session: &SessionContext,
        request: WriteTextFileRequest,
    ) -> impl Future<Output = HandlerResult<WriteTextFileResponse>> + Send;

    /// Returns whether the [permissions](crate::Permissions) decide before a file is read or written
    /// (default: yes).
    ///
    /// Return `false` only where the agent may read and write every file of the hook, or where the hook
    /// asks by itself.
    fn is_guarded(&self) -> bool {
        true
    }

    /// Returns the declared capabilities (default: reading and writing).
    fn capabilities(&self) -> FileSystemCapabilities {
        FileSystemCapabilities::new()
            .with_read_text_file(true)
            .with_write_text_file(true)
    }
}
