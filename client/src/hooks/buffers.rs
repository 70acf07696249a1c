//! Files of an editor: unsaved buffers have precedence over the disk.

use acp_sdk::HandlerResult;
use acp_sdk::v1::{
    FileSystemCapabilities, ReadTextFileRequest, ReadTextFileResponse, WriteTextFileRequest,
    WriteTextFileResponse,
};

use super::{Files, SessionContext};

/// The files that are open in an editor.
pub trait OpenFiles: Send + Sync + 'static {
    /// Returns the text of an open file that differs or may differ from the disk; `None` to read
    /// the disk.
    fn text(&self, path: &str) -> impl Future<Output = Option<String>> + Send;

    /// Replaces the text of an open file and decides whether to save it; `false` to write to the
    /// disk.
    fn replace(&self, path: &str, text: &str) -> impl Future<Output = bool> + Send;
}

/// Serves [`Files`] that are open in an editor, and all others by a fallback, such as a
/// [`Workspace`](crate::Workspace).
///
/// Only files inside the directories of the requesting session are looked up in the editor.
#[derive(Debug, Clone)]
pub struct Buffers<O, F> {
    open: O,
    others: F,
}

impl<O: OpenFiles, F: Files> Buffers<O, F> {
    /// Creates a hook that looks up files in the editor first, then in `others`.
    #[must_use]
    pub fn new(open: O, others: F) -> Self {
        Self { open, others }
    }
}

impl<O: OpenFiles, F: Files> Files for Buffers<O, F> {
    async fn read(
        &self,
        session: &SessionContext,
        request: ReadTextFileRequest,
    ) -> HandlerResult<ReadTextFileResponse> {
        if is_inside(session, &request.path).await
            && let Some(text) = self.open.text(&request.path).await
        {
            let lines = acp_files::lines(&text, request.line, request.limit);
            return Ok(ReadTextFileResponse::new(lines));
        }
        self.others.read(session, request).await
    }

    async fn write(
        &self,
        session: &SessionContext,
        request: WriteTextFileRequest,
    ) -> HandlerResult<WriteTextFileResponse> {
        if is_inside(session, &request.path).await
            && self.open.replace(&request.path, &request.content).await
        {
            return Ok(WriteTextFileResponse::new());
        }
        self.others.write(session, request).await
    }

    fn is_guarded(&self) -> bool {
        self.others.is_guarded()
    }

    fn capabilities(&self) -> FileSystemCapabilities {
        self.others.capabilities()
    }
}

/// Returns whether a file is inside the session's directories. It need not exist on disk.
async fn is_inside(session: &SessionContext, path: &str) -> bool {
    let (roots, path) = (session.roots().clone(), path.to_owned());
    let found = tokio::task::spawn_blocking(move || roots.writable(&path).is_ok());
    found.await.unwrap_or(false)
}
