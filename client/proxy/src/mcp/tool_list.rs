//! The tools of a server, which may change while sessions use them.

use std::mem;
use std::sync::Arc;
use std::time::Instant;

use rmcp::model::Tool;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use tokio::sync::watch;

use super::function::{Function, ToolCall, ToolError, ToolOutput};

/// The tools of an [`McpTools`](crate::McpTools) that [may change](crate::McpTools::changeable). Clones are the
/// same list.
///
/// All sessions that have the server are notified of a change. Changes that follow each other may be one
/// notification.
#[derive(Clone, Debug, Default)]
pub struct ToolList(watch::Sender<Listed>);

#[derive(Clone, Debug, Default)]
struct Listed {
    tools: Vec<Arc<Function>>,
    changed: Option<Instant>,
}

impl ToolList {
    /// Adds a tool, as [`McpTools::tool`](crate::McpTools::tool) does, or replaces the one with the name. Calls of
    /// that one which run already go on.
    pub fn set<T, F, Fut, O>(&self, name: &str, description: &str, function: F)
    where
        T: DeserializeOwned + JsonSchema,
        F: Fn(T, ToolCall) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<O, ToolError>> + Send + 'static,
        O: Into<ToolOutput>,
    {
        let mut function = Arc::new(Function::new(name, description, function));
        self.change(|tools| {
            match tools.iter_mut().find(|known| known.tool.name == name) {
                Some(known) => mem::swap(known, &mut function),
                None => tools.push(function.clone()),
            }
            true
        });
    }

    /// Removes a tool. Calls that run already go on. Returns whether there was a tool with the name.
    pub fn remove(&self, name: &str) -> bool {
        let mut removed = None;
        self.change(|tools| {
            let index = tools.iter().position(|known| known.tool.name == name);
            removed = index.map(|index| tools.remove(index));
            removed.is_some()
        });
        removed.is_some()
    }

    /// Changes the tools, unless `change` returns false. It drops none, for the list is locked.
    fn change(&self, change: impl FnOnce(&mut Vec<Arc<Function>>) -> bool) {
        self.0.send_if_modified(|listed| {
            let has_changed = change(&mut listed.tools);
            if has_changed {
                listed.changed = Some(Instant::now());
            }
            has_changed
        });
    }

    /// Adds a function, also one whose name is there.
    pub(super) fn add(&self, function: Function) {
        self.change(|tools| {
            tools.push(Arc::new(function));
            true
        });
    }

    /// Returns another list with the same tools.
    pub(super) fn copy(&self) -> Self {
        Self(watch::Sender::new(self.0.borrow().clone()))
    }

    pub(super) fn tools(&self) -> Vec<Tool> {
        let listed = self.0.borrow();
        let tools = listed.tools.iter();
        tools.map(|function| function.tool.clone()).collect()
    }

    pub(super) fn find(&self, name: &str) -> Option<Arc<Function>> {
        let listed = self.0.borrow();
        let mut tools = listed.tools.iter();
        tools.find(|function| function.tool.name == name).cloned()
    }

    /// Returns the changes since a moment, or from now on.
    pub(super) fn changes_since(&self, begun: Option<Instant>) -> Changes {
        let mut changes = self.0.subscribe();
        let changed = changes.borrow_and_update().changed;
        if begun.is_some_and(|begun| changed >= Some(begun)) {
            changes.mark_changed();
        }
        Changes(changes)
    }
}

/// The changes of a list.
pub(super) struct Changes(watch::Receiver<Listed>);

impl Changes {
    /// Waits for the next change, or for ever if nobody can change the list any more.
    pub(super) async fn next(&mut self) {
        if self.0.changed().await.is_err() {
            std::future::pending().await
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    fn add(list: &ToolList) {
        list.set("t", "", |_: (), _| async { Ok("") });
    }

    /// `rmcp` subscribes when it has accepted a subscription.
    #[test]
    fn changes_while_a_subscription_begins_are_not_missed() {
        let list = ToolList::default();
        add(&list);
        let begun = Instant::now();
        let changed = |begun| list.changes_since(begun).next().now_or_never().is_some();
        let later = begun + std::time::Duration::from_secs(60);
        assert!(!changed(Some(later)) && !changed(None));
        add(&list);
        assert!(changed(Some(begun)));
    }
}
