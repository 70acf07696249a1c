//! Decisions about what an agent may do: its permission requests, and what it asks the client to do.
//!
//! The answer is one of the options of the request, selected by the option's *kind* and never by
//! its position or id, because the agent chooses both freely. The description of the tool call comes
//! from the agent too: a policy answers requests, but does not confine a process that runs with the
//! user's rights.
//!
//! Spec: <https://agentclientprotocol.com/protocol/v1/tool-calls#requesting-permission>

mod ask;
mod policy;
mod reason;
mod rules;
mod shown;

use std::path::PathBuf;

use acp_sdk::Json;
use acp_sdk::v1::{
    Diff, PermissionOption, PermissionOptionId, PermissionOptionKind, RequestPermissionOutcome,
    RequestPermissionRequest, SelectedPermissionOutcome, ToolCallContent, ToolCallLocation,
    ToolKind,
};

use crate::session::ChildInfo;

pub use self::ask::Ask;
pub use self::policy::Policy;
pub use self::reason::{Reason, RuleId, RuleSource};
pub(crate) use self::rules::Action;
pub use self::rules::{Remember, Rule, Rules, RulesError};
pub use self::shown::Shown;

/// The option of the client that allows all changes of files in the directory of the session, until it ends.
pub(crate) const ALL_CHANGES: &str = "session";

/// Who needs a decision, and what it is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asker {
    /// The agent asks before a tool call (`session/request_permission`). The description is the
    /// agent's.
    Agent,
    /// The client asks before it serves a request of the agent: a file is read or written, or a
    /// command is started. Paths and command are what the client will use.
    Client,
    /// The client asks after a tool call that changed something has completed, because nobody
    /// allowed it. Rejecting cancels the turn. The description is the agent's.
    Afterwards,
}

/// A permission request, completed with earlier information about its tool call.
///
/// The session of the request may be one of the agent's own, such as that of a subagent. Then it
/// belongs to the open session that `_meta` names (`parentSessionId`), else to the only one that
/// runs a turn, else to the only one: it is an event of that session and ends with its turn. If there
/// is no such session, the request is rejected unless it is decided within
/// [`answer_within`](crate::ClientBuilder::answer_within).
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct PermissionRequest {
    /// Who needs the decision.
    pub asker: Asker,
    /// The child session that asks, if it is one of the agent's own.
    pub child: Option<ChildInfo>,
    /// The unmodified request.
    pub request: RequestPermissionRequest,
    /// The title of the tool call: from the request, else from the latest update of the call.
    pub title: Option<String>,
    /// The kind of the tool call: from the request, else from the latest update of the call.
    pub kind: Option<ToolKind>,
    /// The paths of the tool call's locations and diffs, unmodified: from the request, else from the
    /// latest update of the call.
    pub paths: Vec<String>,
    /// The input of the tool: from the request, else from the latest update of the call.
    pub raw_input: Option<Json>,
    /// The working directory of the session, if it is known.
    pub cwd: Option<PathBuf>,
    /// Whether a rule may deny the call, which only a person may allow then.
    pub(crate) may_be_denied: bool,
}

impl PermissionRequest {
    /// Creates a request without earlier information about its tool call.
    #[must_use]
    pub fn new(request: RequestPermissionRequest) -> Self {
        Self {
            asker: Asker::Agent,
            child: None,
            title: request.tool_call.title.clone(),
            kind: request.tool_call.kind.clone(),
            paths: paths(
                request.tool_call.locations.as_deref(),
                request.tool_call.content.as_deref(),
            ),
            raw_input: request.tool_call.raw_input.clone(),
            cwd: None,
            may_be_denied: false,
            request,
        }
    }

    /// Returns the option with this id.
    pub(crate) fn option(&self, id: &PermissionOptionId) -> Option<&PermissionOption> {
        let mut options = self.request.options.iter();
        options.find(|option| option.option_id == *id)
    }

    /// Returns whether a handler that asks a person allows this without a question, if it
    /// `approves_reads`.
    pub fn asks_nobody(&self, approves_reads: bool) -> bool {
        self.only_reads() && (approves_reads || self.asker == Asker::Client)
    }

    /// Returns the request with what is known of its tool call, for a client that does not know the call.
    #[must_use]
    pub fn complete(&self) -> RequestPermissionRequest {
        let mut request = self.request.clone();
        let call = &mut request.tool_call;
        call.title.clone_from(&self.title);
        call.kind.clone_from(&self.kind);
        call.raw_input.clone_from(&self.raw_input);
        if call.locations.as_ref().is_none_or(Vec::is_empty) {
            let located = self.paths.iter().map(ToolCallLocation::new);
            call.locations = Some(located.collect());
        }
        request
    }

    /// Returns whether the tool call has the kind `read`, `search` or `think`.
    ///
    /// `fetch` is excluded, because its request may send data to another machine. So is a call without
    /// a kind, and a call that [`Rules`] may deny.
    #[must_use]
    pub fn only_reads(&self) -> bool {
        let reads = matches!(
            self.kind,
            Some(ToolKind::Read | ToolKind::Search | ToolKind::Think)
        );
        reads && !self.may_be_denied
    }

    /// Returns whether the client is about to read a file for the agent.
    ///
    /// Such a read stays inside the session's directories, and is not a claim of the agent. Handlers
    /// that ask a person allow it without a question.
    #[must_use]
    pub fn is_read_by_client(&self) -> bool {
        self.asker == Asker::Client && self.only_reads()
    }
}

/// Returns the paths of locations and diffs.
pub(crate) fn paths(
    locations: Option<&[ToolCallLocation]>,
    content: Option<&[ToolCallContent]>,
) -> Vec<String> {
    let locations = locations.unwrap_or_default().iter();
    let mut paths: Vec<_> = locations.map(|place| place.path.to_string()).collect();
    let diffs = content.unwrap_or_default().iter().filter_map(as_diff);
    paths.extend(diffs.map(|diff| diff.path.to_string()));
    paths
}

/// Returns the diff, if the content is one.
pub fn as_diff(content: &ToolCallContent) -> Option<&Diff> {
    match content {
        ToolCallContent::Diff(diff) => Some(diff),
        _ => None,
    }
}

/// A decision that does not name an option yet.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Decision {
    /// Allows this call: selects the option of kind `allow_once`, else `allow_always`.
    Allow,
    /// Allows only this call: selects the option of kind `allow_once`, else acts as
    /// [`Reject`](Self::Reject).
    AllowOnce,
    /// Rejects: selects the option of kind `reject_once`, else `reject_always`, else answers
    /// `cancelled`.
    Reject,
    /// Selects this option; answers `cancelled` if the request does not contain it.
    Option(PermissionOptionId),
    /// Answers `cancelled`, which means that the turn is being cancelled.
    Cancelled,
}

impl Decision {
    /// Returns the answer to a request with these options.
    #[must_use]
    pub fn among(&self, options: &[PermissionOption]) -> RequestPermissionOutcome {
        use PermissionOptionKind::{AllowAlways, AllowOnce, RejectAlways, RejectOnce};
        let of_kind = |kinds: &[PermissionOptionKind]| {
            let mut found = kinds
                .iter()
                .filter_map(|kind| options.iter().find(|option| option.kind == *kind));
            found.next()
        };
        let chosen = match self {
            Self::Allow => of_kind(&[AllowOnce, AllowAlways]),
            Self::AllowOnce => of_kind(&[AllowOnce, RejectOnce, RejectAlways]),
            Self::Reject => of_kind(&[RejectOnce, RejectAlways]),
            Self::Option(id) => options.iter().find(|option| option.option_id == *id),
            Self::Cancelled => None,
        };
        match chosen {
            Some(option) => {
                let chosen = SelectedPermissionOutcome::new(option.option_id.clone());
                RequestPermissionOutcome::Selected(chosen)
            }
            None => RequestPermissionOutcome::Cancelled,
        }
    }
}

/// Decides what an agent may do.
///
/// The same handler answers the agent's permission requests and decides what the client serves:
/// [`PermissionRequest::asker`] tells them apart. What a person allowed before a tool call is not
/// asked again when the agent has the client write the file or start the command of that call.
pub trait Permissions: Send + Sync + 'static {
    /// Decides a request. The future is dropped when the turn is cancelled or the connection ends.
    fn decide(&self, question: &PermissionRequest) -> impl Future<Output = Decision> + Send;

    /// Decides a request and returns the reason for display (default: no reason).
    ///
    /// The client calls this method; a wrapper should delegate both.
    fn decide_with_reason(
        &self,
        question: &PermissionRequest,
    ) -> impl Future<Output = (Decision, Option<Reason>)> + Send {
        async { (self.decide(question).await, None) }
    }

    /// Returns whether requests wait until the turn's reader has received all earlier events.
    ///
    /// Return `true` for interactive UIs, so that the text before a request is displayed first
    /// (default `false`).
    fn in_order(&self) -> bool {
        false
    }

    /// Returns whether a person decides each request that does not [only read](PermissionRequest::only_reads)
    /// (default: [`in_order`](Self::in_order)).
    ///
    /// [`Rules`] pass a request that they may have to deny only to a fallback that returns `true`.
    /// Otherwise they reject it.
    fn asks_person(&self) -> bool {
        self.in_order()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KINDS: [PermissionOptionKind; 4] = [
        PermissionOptionKind::AllowAlways,
        PermissionOptionKind::RejectAlways,
        PermissionOptionKind::AllowOnce,
        PermissionOptionKind::RejectOnce,
    ];

    /// Options of the given kinds, with ids that say the opposite of what they do.
    fn options(kinds: &[PermissionOptionKind]) -> Vec<PermissionOption> {
        let option = |kind: &PermissionOptionKind| {
            let id = match kind {
                PermissionOptionKind::AllowOnce => "reject",
                PermissionOptionKind::AllowAlways => "no",
                PermissionOptionKind::RejectOnce => "allow",
                PermissionOptionKind::RejectAlways => "yes",
                _ => "unknown",
            };
            PermissionOption::new(id, "An option", kind.clone())
        };
        kinds.iter().map(option).collect()
    }

    fn chosen(decision: &Decision, kinds: &[PermissionOptionKind]) -> Option<PermissionOptionKind> {
        let options = options(kinds);
        match decision.among(&options) {
            RequestPermissionOutcome::Selected(chosen) => {
                let mut options = options.into_iter();
                let found = options.find(|option| option.option_id == chosen.option_id);
                Some(found.unwrap().kind)
            }
            _ => None,
        }
    }

    #[test]
    fn options_are_chosen_by_kind_in_every_order() {
        use PermissionOptionKind::{AllowAlways, AllowOnce, RejectAlways, RejectOnce};
        let mut kinds = KINDS;
        for _ in 0..kinds.len() {
            kinds.rotate_left(1);
            assert_eq!(chosen(&Decision::Allow, &kinds), Some(AllowOnce));
            assert_eq!(chosen(&Decision::AllowOnce, &kinds), Some(AllowOnce));
            assert_eq!(chosen(&Decision::Reject, &kinds), Some(RejectOnce));
        }
        let always = [RejectAlways, AllowAlways];
        assert_eq!(chosen(&Decision::Allow, &always), Some(AllowAlways));
        assert_eq!(chosen(&Decision::AllowOnce, &always), Some(RejectAlways));
        assert_eq!(chosen(&Decision::Reject, &always), Some(RejectAlways));
    }

    #[test]
    fn what_is_not_offered_is_not_chosen() {
        use PermissionOptionKind::{AllowOnce, RejectOnce, Unknown};
        assert_eq!(chosen(&Decision::Allow, &[RejectOnce]), None);
        assert_eq!(chosen(&Decision::Reject, &[AllowOnce]), None);
        assert_eq!(chosen(&Decision::Cancelled, &KINDS), None);
        let strange = [Unknown("allow".to_owned())];
        assert_eq!(chosen(&Decision::Allow, &strange), None);
        assert_eq!(chosen(&Decision::Option("none".into()), &KINDS), None);
        let picked = Decision::Option("yes".into());
        assert!(chosen(&picked, &KINDS).is_some());
    }
}
