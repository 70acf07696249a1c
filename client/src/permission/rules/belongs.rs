//! Whether what the client serves belongs to a tool call.

use acp_sdk::v1::ToolKind;

use super::call::Call;
use super::path::CallPath;
use crate::permission::PermissionRequest;

/// What a tool call does, with its symbolic links resolved.
#[derive(Debug)]
pub(crate) struct Action(Call);

impl Action {
    /// Blocks for as long as the file system takes.
    pub(crate) fn new(question: &PermissionRequest) -> Self {
        let mut call = Call::new(question);
        call.follow_links();
        Self(call)
    }

    /// Returns whether this call includes an effect: changing files that it says it changes, or
    /// starting exactly its command, in its directory and without variables.
    pub(crate) fn includes(&self, effect: &Self) -> bool {
        match effect.0.kind {
            Some(ToolKind::Edit) => {
                let mut paths = effect.0.paths.iter();
                self.changes() && paths.len() > 0 && paths.all(|path| self.names(path))
            }
            Some(ToolKind::Execute) => self.starts(effect),
            _ => false,
        }
    }

    /// Returns whether this call consists of effects: each file that it changes, or its command, is
    /// one of them.
    pub(crate) fn consists_of(&self, effects: &[Self]) -> bool {
        if self.0.runs() {
            return effects.iter().any(|effect| self.starts(effect));
        }
        let changed = |path| {
            effects
                .iter()
                .any(|effect| effect.changes() && effect.names(path))
        };
        !self.0.paths.is_empty() && self.0.paths.iter().all(changed)
    }

    fn changes(&self) -> bool {
        use ToolKind::{Delete, Edit, Move};
        // A directory of a command makes relative paths ambiguous.
        matches!(self.0.kind, Some(Edit | Delete | Move)) && !self.0.has_directory()
    }

    fn names(&self, path: &CallPath) -> bool {
        self.0.paths.iter().any(|known| known.is_same_file(path))
    }

    fn starts(&self, effect: &Self) -> bool {
        let ([own], [other]) = (&self.0.commands[..], &effect.0.commands[..]) else {
            return false;
        };
        let directory = self.0.directory();
        let has_environment = self.0.has_environment || effect.0.has_environment;
        own.is_same(other)
            && directory.is_some()
            && directory == effect.0.directory()
            && !has_environment
    }
}
