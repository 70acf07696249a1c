//! What was allowed in a session, and what was done without it.

use std::collections::VecDeque;
use std::sync::Arc;

use acp_sdk::v1::{
    PermissionOption, PermissionOptionKind, RequestPermissionRequest, ToolCallUpdate, ToolKind,
};

use super::effect::options;
use crate::permission::{Action, Asker, PermissionRequest};
use crate::session::{Answered, TurnState};

/// The maximum number of remembered tool calls, effects and kinds. The oldest are dropped first: then
/// a person is asked once more.
const MOST: usize = 256;

/// The largest input of a tool call that is remembered, in bytes.
const LARGEST_INPUT: usize = 64 << 10;

/// What was allowed in a session.
#[derive(Debug, Default)]
pub(crate) struct Approvals {
    /// Tool calls of this turn that were allowed and have not ended.
    calls: VecDeque<Approval>,
    /// What the client served in this turn.
    effects: VecDeque<PermissionRequest>,
    /// The kinds of tool call for which "always" was selected. The agent asks no more about them.
    always: VecDeque<Option<ToolKind>>,
}

#[derive(Debug)]
struct Approval {
    call: PermissionRequest,
    /// The effects that it has covered. Each counts once.
    used: Vec<String>,
}

/// A tool call that has ended.
#[derive(Debug)]
pub struct Ended {
    /// What is known of it.
    pub call: PermissionRequest,
    /// Whether it did what it was to do.
    pub has_completed: bool,
}

impl Ended {
    /// Returns whether it has changed, run or sent something, which somebody must allow.
    pub fn needed_permission(&self) -> bool {
        use ToolKind::{Delete, Edit, Execute, Fetch, Move};
        let changes = matches!(self.call.kind, Some(Edit | Delete | Move | Execute | Fetch));
        self.has_completed && changes
    }

    /// Returns the request about it.
    #[must_use]
    pub fn into_question(self) -> PermissionRequest {
        use PermissionOptionKind::{AllowAlways, AllowOnce, RejectOnce};
        let mut question = self.call;
        let title = question
            .title
            .take()
            .unwrap_or_else(|| "a tool call".to_owned());
        question.title = Some(format!("{title}: it is done, nobody was asked before"));
        question.asker = Asker::Afterwards;
        question.request.options = options(&[
            ("allow", "Go on", AllowOnce),
            ("always", "Go on, and allow such calls", AllowAlways),
            ("reject", "End the turn", RejectOnce),
        ]);
        question
    }
}

/// What may have been done without being allowed.
#[derive(Debug)]
pub(crate) struct Unasked {
    pub(crate) turn: Arc<TurnState>,
    ended: Ended,
    effects: Vec<PermissionRequest>,
}

impl Approvals {
    pub(crate) fn begin_turn(&mut self) {
        self.calls.clear();
        self.effects.clear();
    }

    /// Remembers what was allowed.
    pub(crate) fn answered(&mut self, answered: &Answered) {
        if !answered.is_allowed() {
            return;
        }
        let question = &answered.question;
        let is_always =
            |option: &PermissionOption| option.kind == PermissionOptionKind::AllowAlways;
        if answered.option().is_some_and(is_always) && question.asker != Asker::Client {
            push(&mut self.always, question.kind.clone());
        }
        match question.asker {
            Asker::Agent => {
                let approval = Approval {
                    call: without_contents(question),
                    used: Vec::new(),
                };
                push(&mut self.calls, approval);
            }
            Asker::Client => self.served(question),
            Asker::Afterwards => {}
        }
    }

    /// Remembers what the client serves.
    pub(crate) fn served(&mut self, effect: &PermissionRequest) {
        if effect.only_reads() {
            return;
        }
        push(&mut self.effects, without_contents(effect));
    }

    /// Returns the allowed tool calls that an effect may belong to.
    pub(crate) fn open(&self) -> Vec<PermissionRequest> {
        self.calls.iter().map(|open| open.call.clone()).collect()
    }

    /// Uses the approval of a tool call for an effect; `false` if it was used or has ended.
    pub(crate) fn take(&mut self, call: &PermissionRequest, effect: &PermissionRequest) -> bool {
        let id = &call.request.tool_call.tool_call_id;
        let mut open = self.calls.iter_mut();
        let Some(open) = open.find(|open| open.call.request.tool_call.tool_call_id == *id) else {
            return false;
        };
        let key = effect.title.clone().unwrap_or_default();
        if open.used.contains(&key) || open.used.len() >= MOST {
            return false;
        }
        open.used.push(key);
        self.served(effect);
        true
    }

    /// A tool call has ended. Returns it if it has completed and changed something, and nobody allowed
    /// it: then it must be [reviewed](Unasked::question).
    pub(crate) fn ended(&mut self, ended: Ended, turn: Arc<TurnState>) -> Option<Unasked> {
        let id = &ended.call.request.tool_call.tool_call_id;
        let is_ended = |open: &Approval| open.call.request.tool_call.tool_call_id == *id;
        // Who allowed reading has not allowed a change under the same id.
        let mut allowed = self.calls.iter().filter(|open| is_ended(open));
        let was_allowed =
            allowed.any(|open| !open.call.only_reads()) || self.always.contains(&ended.call.kind);
        self.calls.retain(|open| !is_ended(open));
        if was_allowed || !ended.needed_permission() {
            return None;
        }
        Some(Unasked {
            turn,
            ended,
            effects: self.effects.iter().cloned().collect(),
        })
    }
}

impl Unasked {
    /// Returns the request about the call; `None` if it consists of what the client served. Blocks
    /// for as long as the file system takes.
    pub(crate) fn question(self) -> Option<PermissionRequest> {
        let effects: Vec<_> = self.effects.iter().map(Action::new).collect();
        if Action::new(&self.ended.call).consists_of(&effects) {
            return None;
        }
        Some(self.ended.into_question())
    }
}

/// Copies what identifies a tool call, without the contents of files.
fn without_contents(question: &PermissionRequest) -> PermissionRequest {
    let request = &question.request;
    let call = ToolCallUpdate::new(request.tool_call.tool_call_id.clone());
    let request = RequestPermissionRequest::new(request.session_id.clone(), call, Vec::new());
    let mut copy = PermissionRequest::new(request);
    copy.asker = question.asker;
    copy.title.clone_from(&question.title);
    copy.kind.clone_from(&question.kind);
    copy.paths.clone_from(&question.paths);
    copy.cwd.clone_from(&question.cwd);
    let input = question.raw_input.as_ref();
    copy.raw_input = input
        .filter(|input| input.get().len() <= LARGEST_INPUT)
        .cloned();
    copy
}

fn push<T>(list: &mut VecDeque<T>, item: T) {
    if list.len() >= MOST {
        list.pop_front();
    }
    list.push_back(item);
}
