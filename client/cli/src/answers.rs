//! Decides what no rule decides: by a flag, by a person, or by the default without one.

use super::args::PermissionArgs;
use acp_client::{Decision, PermissionRequest, Permissions, Policy, Reason};

/// The permission handler. A refusal that no person decided has the flag that would change it.
pub(super) enum Answers<A> {
    ApproveAll,
    DenyAll,
    Ask {
        ask: Option<A>,
        approve_reads: bool,
        /// The reason for a refusal without a person.
        refusal: &'static str,
    },
}

impl<A> Answers<A> {
    pub(super) fn new(args: &PermissionArgs, ask: Option<A>) -> Self {
        match args {
            PermissionArgs {
                approve_all: true, ..
            } => Self::ApproveAll,
            PermissionArgs { deny_all: true, .. } => Self::DenyAll,
            PermissionArgs { approve_reads, .. } => Self::Ask {
                ask,
                approve_reads: *approve_reads,
                refusal: match approve_reads {
                    true => {
                        "--approve-reads allows reading only, and there is no terminal to ask on: use \
                         --approve-all or --rules FILE"
                    }
                    false => {
                        "no flag or rule allows it, and there is no terminal to ask on: use \
                         --approve-all, --approve-reads or --rules FILE"
                    }
                },
            },
        }
    }
}

impl<A: Permissions> Permissions for Answers<A> {
    async fn decide(&self, question: &PermissionRequest) -> Decision {
        self.decide_with_reason(question).await.0
    }

    async fn decide_with_reason(&self, question: &PermissionRequest) -> (Decision, Option<Reason>) {
        let refused = |why: &'static str| (Decision::Reject, Some(Reason::Program(why.into())));
        match self {
            Self::ApproveAll => Policy::ApproveAll.decide_with_reason(question).await,
            Self::DenyAll => refused("--deny-all rejects everything"),
            Self::Ask { approve_reads, .. } if question.asks_nobody(*approve_reads) => {
                (Decision::AllowOnce, None)
            }
            Self::Ask { ask: Some(ask), .. } => ask.decide_with_reason(question).await,
            Self::Ask { refusal, .. } => refused(refusal),
        }
    }

    fn in_order(&self) -> bool {
        match self {
            Self::Ask { ask: Some(ask), .. } => ask.in_order(),
            _ => false,
        }
    }
}
