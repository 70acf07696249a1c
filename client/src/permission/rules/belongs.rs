//! Whether what the client serves belongs to a tool call.

use acp_sdk::v1::ToolKind;
use serde_json::Value;

use super::call::{Call, DIRECTORY_MEMBERS, texts_of};
use super::path::CallPath;
use crate::permission::PermissionRequest;

/// What a tool call does, with its symbolic links resolved.
#[derive(Debug)]
pub(crate) struct Action {
    call: Call,
    /// The directories that a command may run in; `None` if one of them is ambiguous.
    directories: Option<Vec<CallPath>>,
    env: Value,
}

impl Action {
    /// Blocks for as long as the file system takes.
    pub(crate) fn new(question: &PermissionRequest) -> Self {
        let mut call = Call::new(question);
        call.follow_links();
        let input = question.raw_input.as_ref();
        let input: Value = input.and_then(acp_sdk::Json::to_value).unwrap_or_default();
        let mut named = texts_of(&input, DIRECTORY_MEMBERS);
        if let (true, Some(cwd)) = (named.is_empty(), question.cwd.as_deref()) {
            named.extend(cwd.to_str().map(str::to_owned));
        }
        let directory = |name: &String| {
            let mut path = CallPath::resolve(name, call.base.as_ref())?;
            path.follow_links();
            Some(path)
        };
        let directories = named.iter().map(directory).collect();
        let env = input.get("env").cloned().unwrap_or_default();
        Self {
            call,
            directories,
            env,
        }
    }

    /// Returns whether this call includes an effect: changing files that it says it changes, or
    /// starting exactly its command, in its directory and with its variables.
    pub(crate) fn includes(&self, effect: &Self) -> bool {
        match effect.call.kind {
            Some(ToolKind::Edit) => {
                let mut paths = effect.call.paths.iter();
                self.changes() && paths.len() > 0 && paths.all(|path| self.names(path))
            }
            Some(ToolKind::Execute) => self.starts(effect),
            _ => false,
        }
    }

    /// Returns whether this call consists of effects: each file that it changes, or its command, is
    /// one of them.
    pub(crate) fn consists_of(&self, effects: &[Self]) -> bool {
        if self.call.runs() {
            return effects.iter().any(|effect| self.starts(effect));
        }
        let changed = |path| {
            effects
                .iter()
                .any(|effect| effect.changes() && effect.names(path))
        };
        !self.call.paths.is_empty() && self.call.paths.iter().all(changed)
    }

    fn changes(&self) -> bool {
        use ToolKind::{Delete, Edit, Move};
        matches!(self.call.kind, Some(Edit | Delete | Move))
    }

    fn names(&self, path: &CallPath) -> bool {
        self.call.paths.iter().any(|known| known.is_same_file(path))
    }

    fn starts(&self, effect: &Self) -> bool {
        let ([own], [other]) = (&self.call.commands[..], &effect.call.commands[..]) else {
            return false;
        };
        let (Some([here]), Some([there])) =
            (self.directories.as_deref(), effect.directories.as_deref())
        else {
            return false;
        };
        own.is_same(other) && here.is_same_file(there) && self.env == effect.env
    }
}
