//! A call of a tool, as its function sees it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use acp_sdk::v1::{ContentBlock, PermissionOption, PermissionOptionKind};
use acp_server::{Session, Terminal, ToolCall, Turn};
use tokio::sync::Mutex;

use crate::tools::existing;
use crate::undo::TurnJournal;

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
    /// The time that was spent on questions does not count for the timeout.
    asking: tokio::sync::watch::Sender<bool>,
    undo: Option<SharedJournal>,
}

impl Call {
    pub(crate) fn new(
        turn: Turn,
        shown: ToolCall,
        permitted: bool,
        undo: Option<SharedJournal>,
    ) -> Self {
        Self(Arc::new(Inner {
            turn,
            shown: Mutex::new(Some(shown)),
            permitted: AtomicBool::new(permitted),
            asking: tokio::sync::watch::Sender::new(false),
            undo,
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
        self.0.asking.send_replace(true);
        let decision = self.0.turn.ask_permission_with(shown, options).await;
        self.0.asking.send_replace(false);
        if !decision?.is_allowed() {
            return Err(ToolError::Rejected);
        }
        self.0.permitted.store(true, Ordering::Release);
        Ok(())
    }

    /// Writes a text file with the user's permission, shows the change, and lets it be undone. `old` is the text
    /// that the change was made from, `None` for a new file.
    ///
    /// # Errors
    ///
    /// As [`permit`](Self::permit) and [`Turn::write_file`]; also if the file has another text than `old` when the
    /// user has answered.
    pub async fn write_file(&self, path: &str, old: Option<&str>, new: &str) -> ToolOutcome<()> {
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

    /// Returns whether a question to the user is open.
    pub(crate) fn asking(&self) -> tokio::sync::watch::Receiver<bool> {
        self.0.asking.subscribe()
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
