//! Decisions without a person.

use super::{Decision, PermissionRequest, Permissions, Reason};

/// Decides without user interaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Policy {
    /// Allows all calls, with `allow_once` if available.
    ApproveAll,
    /// Allows calls that [only read](PermissionRequest::only_reads), once; rejects all others. The
    /// client reads files for the agent; it writes none and starts no commands.
    ApproveReads,
    /// Rejects all calls. The client serves neither files nor commands.
    DenyAll,
}

impl Policy {
    fn rule(self, question: &PermissionRequest) -> Decision {
        match self {
            Self::ApproveAll => Decision::Allow,
            Self::ApproveReads if question.only_reads() => Decision::AllowOnce,
            Self::ApproveReads | Self::DenyAll => Decision::Reject,
        }
    }

    fn refusal(self) -> &'static str {
        match self {
            Self::ApproveReads => "the client's policy allows reading only",
            _ => "the client's policy rejects everything",
        }
    }
}

impl Permissions for Policy {
    async fn decide(&self, question: &PermissionRequest) -> Decision {
        self.rule(question)
    }

    async fn decide_with_reason(&self, question: &PermissionRequest) -> (Decision, Option<Reason>) {
        let decision = self.rule(question);
        let rejects = decision == Decision::Reject;
        (
            decision,
            rejects.then(|| Reason::Program(self.refusal().into())),
        )
    }
}

#[cfg(test)]
mod tests {
    use acp_sdk::v1::{RequestPermissionRequest, ToolCallUpdate, ToolKind};

    use super::*;

    fn question(kind: Option<ToolKind>) -> PermissionRequest {
        let mut call = ToolCallUpdate::new("call");
        call.kind = kind;
        PermissionRequest::new(RequestPermissionRequest::new("s", call, Vec::new()))
    }

    #[test]
    fn policies_decide_by_the_kind_of_the_tool_call() {
        let reads = [ToolKind::Read, ToolKind::Search, ToolKind::Think];
        for kind in reads {
            let question = question(Some(kind));
            assert_eq!(Policy::ApproveReads.rule(&question), Decision::AllowOnce);
            assert_eq!(Policy::DenyAll.rule(&question), Decision::Reject);
        }
        let others = [
            Some(ToolKind::Edit),
            Some(ToolKind::Delete),
            Some(ToolKind::Move),
            Some(ToolKind::Execute),
            Some(ToolKind::Fetch),
            Some(ToolKind::SwitchMode),
            Some(ToolKind::Other),
            Some(ToolKind::Unknown("read ".to_owned())),
            None,
        ];
        for kind in others {
            let question = question(kind);
            assert_eq!(Policy::ApproveReads.rule(&question), Decision::Reject);
            assert_eq!(Policy::ApproveAll.rule(&question), Decision::Allow);
        }
    }
}
