//! A tool call before it is announced: everything that a user needs to judge it.

use std::future::IntoFuture;
use std::pin::Pin;
use std::sync::Arc;

use acp_sdk::Json;
use acp_sdk::v1::{
    Diff, SessionId, ToolCall as Announcement, ToolCallContent, ToolCallLocation, ToolCallStatus,
    ToolKind,
};

use super::{ToolCall, TurnCore};
use crate::Result;

/// A tool call that awaiting it announces, with the status `pending`.
///
/// Its members are part of the request for permission, where users and permission rules judge
/// them: what they cannot see, they cannot allow.
///
/// ```
/// # async fn example(turn: acp_server::Turn) -> acp_server::Result<()> {
/// use acp_sdk::v1::ToolKind;
/// use serde_json::json;
///
/// let search = turn.tool_call("Search for TODO", ToolKind::Search);
/// let search = search.raw_input(json!({"pattern": "TODO"})).location("src").await?;
/// search.complete("3 matches").await
/// # }
/// ```
#[derive(Debug)]
#[must_use = "a tool call is announced when this is awaited"]
pub struct NewToolCall {
    core: Arc<TurnCore>,
    call: Announcement,
    /// The child session that makes the call.
    child: Option<SessionId>,
}

impl NewToolCall {
    pub(super) fn new(core: &Arc<TurnCore>, title: String, kind: ToolKind) -> Self {
        let call = Announcement::new(core.next_id("call"), title)
            .with_kind(kind)
            .with_status(ToolCallStatus::Pending);
        Self {
            core: core.clone(),
            call,
            child: None,
        }
    }

    /// Makes it a call of a child session.
    pub(super) fn of_child(mut self, child: &SessionId) -> Self {
        self.child = Some(child.clone());
        self
    }

    /// Sets the name of the tool, as the model knows it. Clients may display it.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.call.name = Some(name.into());
        self
    }

    /// Sets the input of the tool. Permission rules find commands in the members `command` and
    /// `args`, and paths in `path`.
    pub fn raw_input(mut self, input: impl Into<Json>) -> Self {
        self.call.raw_input = Some(input.into());
        self
    }

    /// Adds a file that the call touches. A relative path is taken from the session's working
    /// directory.
    pub fn location(self, path: &str) -> Self {
        let location = ToolCallLocation::new(self.core.session.resolve(path));
        self.locations([location])
    }

    /// Adds files that the call touches, with absolute paths, and lines in them.
    pub fn locations(mut self, locations: impl IntoIterator<Item = ToolCallLocation>) -> Self {
        self.call.locations.extend(locations);
        self
    }

    /// Adds the change of a file; `old` is its former text, `None` for a new file.
    pub fn diff(mut self, path: &str, old: Option<&str>, new: &str) -> Self {
        self.call.content.push(diff(&self.core, path, old, new));
        self
    }
}

pub(super) fn diff(core: &TurnCore, path: &str, old: Option<&str>, new: &str) -> ToolCallContent {
    let diff = Diff::new(core.session.resolve(path), new);
    ToolCallContent::Diff(match old {
        Some(old) => diff.with_old_text(old),
        None => diff,
    })
}

impl IntoFuture for NewToolCall {
    type Output = Result<ToolCall>;
    type IntoFuture = Pin<Box<dyn Future<Output = Result<ToolCall>> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(ToolCall::announce(self.core, self.call, self.child))
    }
}
