//! A call of a tool, as its function sees it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use acp_sdk::v1::{ContentBlock, PermissionOption, PermissionOptionKind};
use acp_server::{Session, Terminal, ToolCall, Turn};
use tokio::sync::{Mutex, OwnedMutexGuard, watch};

use crate::tools::existing;
use crate::undo::TurnJournal;

use super::FileLocks;
use super::output::{Output, ToolError, ToolOutcome};

/// The journal of a turn, for all of its calls.
pub(crate) type SharedJournal = Arc<Mutex<TurnJournal>>;

/// A call of a tool: the turn it belongs to, what the user sees of it, and whether it may go on.
#[derive(Clone)]
pub struct Call(Arc<Inner>);

struct Inner {
    turn: Turn,
    /// `None` when the call has ended.
    shown: Mutex<Option<ToolCall>>,
    /// Whether the user need not be asked any more.
    permitted: AtomicBool,
    /// Open questions and waits for other calls: their time does not count for the timeout.
    waits: watch::Sender<usize>,
    undo: Option<SharedJournal>,
    locks: FileLocks,
}

impl Call {
    pub(crate) fn new(
        turn: Turn,
        shown: ToolCall,
        permitted: bool,
        (undo, locks): (Option<SharedJournal>, FileLocks),
    ) -> Self {
        Self(Arc::new(Inner {
            turn,
            shown: Mutex::new(Some(shown)),
            permitted: AtomicBool::new(permitted),
            waits: watch::Sender::new(0),
            undo,
            locks,
        }))
    }

    /// Returns the turn, for what no function here does: elicitation, plans, terminals.
    #[must_use]
    pub fn turn(&self) -> &Turn {
        &self.0.turn
    }

    /// Returns the session.
    #[must_use]
    pub fn session(&self) -> &Session {
        self.0.turn.session()
    }

    /// Waits until the turn is cancelled. The function is dropped then anyway.
    pub async fn cancelled(&self) {
        self.0.turn.cancelled().await;
    }

    /// Shows text to the user while the tool runs. The model does not receive it.
    ///
    /// # Errors
    ///
    /// As [`Turn::send_text`].
    pub async fn progress(&self, text: impl Into<String>) -> ToolOutcome<()> {
        if let Some(shown) = &mut *self.0.shown.lock().await {
            shown.add_text(text).await?;
        }
        Ok(())
    }

    /// Shows content of any kind, as [`progress`](Self::progress).
    ///
    /// # Errors
    ///
    /// As [`Turn::send_text`].
    pub async fn show(&self, content: ContentBlock) -> ToolOutcome<()> {
        if let Some(shown) = &mut *self.0.shown.lock().await {
            shown.add_content(content).await?;
        }
        Ok(())
    }

    /// Shows a terminal.
    ///
    /// # Errors
    ///
    /// As [`Turn::send_text`].
    pub async fn show_terminal(&self, terminal: &Terminal) -> ToolOutcome<()> {
        if let Some(shown) = &mut *self.0.shown.lock().await {
            shown.add_terminal(terminal).await?;
        }
        Ok(())
    }

    /// Asks the user whether the call may go on, once: after the first "yes" it returns at once, and in modes
    /// in which the user is not asked for a tool of this [risk](super::Risk).
    ///
    /// # Errors
    ///
    /// [`ToolError::Rejected`] if the user does not allow it, [`ToolError::Cancelled`] if the turn ends.
    pub async fn permit(&self) -> ToolOutcome<()> {
        if self.0.permitted.load(Ordering::Acquire) {
            return Ok(());
        }
        let options = vec![
            PermissionOption::new("allow", "Allow", PermissionOptionKind::AllowOnce),
            PermissionOption::new("always", "Always allow", PermissionOptionKind::AllowAlways),
            PermissionOption::new("reject", "Reject", PermissionOptionKind::RejectOnce),
        ];
        let shown = self.0.shown.lock().await;
        let Some(shown) = &*shown else {
            return Err(ToolError::Cancelled);
        };
        let asking = self.0.turn.ask_permission_with(shown, options);
        if !self.untimed(asking).await?.is_allowed() {
            return Err(ToolError::Rejected);
        }
        self.0.permitted.store(true, Ordering::Release);
        Ok(())
    }

    /// Reads a text file, and writes what `change` makes of its text with the user's permission. The change is
    /// shown and can be undone. `change` receives `None`, and this function returns it, if there is no file.
    ///
    /// Calls of one turn change a file one after the other: a second change is made from the text of the first.
    ///
    /// # Errors
    ///
    /// As `change`, [`permit`](Self::permit), [`Turn::read_file`] and [`Turn::write_file`]; also if the file has
    /// another text when the user has answered.
    pub async fn change_file(
        &self,
        path: &str,
        change: impl FnOnce(Option<&str>) -> ToolOutcome<String>,
    ) -> ToolOutcome<Option<String>> {
        let _locked = self.lock(path).await;
        let old = existing(self, path).await?;
        let new = change(old.as_deref())?;
        self.replace(path, old.as_deref(), &new).await?;
        Ok(old)
    }

    /// Writes a text file as [`change_file`](Self::change_file), whose text was read before: `old` is the text that
    /// the change was made from, `None` for a new file.
    ///
    /// # Errors
    ///
    /// As [`permit`](Self::permit) and [`Turn::write_file`]; also if the file has another text than `old` when the
    /// user has answered.
    pub async fn write_file(&self, path: &str, old: Option<&str>, new: &str) -> ToolOutcome<()> {
        let _locked = self.lock(path).await;
        self.replace(path, old, new).await
    }

    async fn lock(&self, path: &str) -> OwnedMutexGuard<()> {
        let path = self.session().resolve(path);
        self.untimed(self.0.locks.lock(path)).await
    }

    /// Writes a file that no other call of the turn changes meanwhile.
    async fn replace(&self, path: &str, old: Option<&str>, new: &str) -> ToolOutcome<()> {
        if let Some(shown) = &mut *self.0.shown.lock().await {
            shown.add_diff(path, old, new).await?;
        }
        self.permit().await?;
        if existing(self, path).await?.as_deref() != old {
            let reason = "somebody else has changed it since it was read; read it again";
            return Err(ToolError::failed(format!(
                "{path} was not written: {reason}"
            )));
        }
        if let Some(undo) = &self.0.undo {
            let path = self.session().resolve(path);
            let kept = undo.lock().await.before_change(&path).await;
            kept.map_err(|error| ToolError::failed(format!("{path} was not written: {error}")))?;
        }
        Ok(self.0.turn.write_file(path, new).await?)
    }

    /// Shows that the tool runs.
    pub(crate) async fn start(&self) -> ToolOutcome<()> {
        if let Some(shown) = &*self.0.shown.lock().await {
            shown.start().await?;
        }
        Ok(())
    }

    /// Returns the number of questions and waits whose time does not count.
    pub(crate) fn waits(&self) -> watch::Receiver<usize> {
        self.0.waits.subscribe()
    }

    /// Waits for something whose time does not count for the timeout.
    async fn untimed<T>(&self, waiting: impl Future<Output = T>) -> T {
        /// Also ends a wait that is dropped.
        struct Wait<'a>(&'a watch::Sender<usize>);
        impl Drop for Wait<'_> {
            fn drop(&mut self) {
                self.0.send_modify(|waits| *waits -= 1);
            }
        }
        self.0.waits.send_modify(|waits| *waits += 1);
        let _wait = Wait(&self.0.waits);
        waiting.await
    }

    /// Ends the call, in the session and for the user.
    pub(crate) async fn end(&self, output: &Output, text: &str) -> acp_server::Result<()> {
        let Some(mut shown) = self.0.shown.lock().await.take() else {
            return Ok(());
        };
        let raw = acp_sdk::Json::new(output).map_err(acp_server::Error::failed)?;
        shown.set_raw_output(raw);
        match output.is_error {
            true => shown.fail(text).await,
            false => shown.complete(text).await,
        }
    }
}

impl std::fmt::Debug for Call {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Call")
            .field("turn", &self.0.turn.id())
            .finish_non_exhaustive()
    }
}
