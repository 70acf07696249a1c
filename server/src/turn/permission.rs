//! Asking the user whether a tool call may go on.
//!
//! Spec: <https://agentclientprotocol.com/protocol/v1/tool-calls#requesting-permission>

use std::sync::Arc;

use acp_sdk::v1::{
    PermissionOption, PermissionOptionId, PermissionOptionKind, RequestPermissionOutcome,
    RequestPermissionRequest,
};

use super::{Core, ToolCall};
use crate::{Error, Result};

/// What the user chose.
#[derive(Clone, Debug, PartialEq)]
pub struct Decision {
    option: PermissionOptionId,
    kind: PermissionOptionKind,
}

impl Decision {
    /// Whether the call may go on.
    #[must_use]
    pub fn is_allowed(&self) -> bool {
        matches!(
            self.kind,
            PermissionOptionKind::AllowOnce | PermissionOptionKind::AllowAlways
        )
    }

    /// Whether the choice is meant for the future too. To remember it is the handler's work.
    #[must_use]
    pub fn is_for_good(&self) -> bool {
        matches!(
            self.kind,
            PermissionOptionKind::AllowAlways | PermissionOptionKind::RejectAlways
        )
    }

    /// The id of the chosen option.
    #[must_use]
    pub fn option(&self) -> &PermissionOptionId {
        &self.option
    }

    /// The kind of the chosen option.
    #[must_use]
    pub fn kind(&self) -> &PermissionOptionKind {
        &self.kind
    }
}

/// Yes or no, this once.
pub(super) fn once() -> Vec<PermissionOption> {
    vec![
        PermissionOption::new("allow", "Allow", PermissionOptionKind::AllowOnce),
        PermissionOption::new("reject", "Reject", PermissionOptionKind::RejectOnce),
    ]
}

pub(super) async fn ask(
    core: &Arc<Core>,
    call: &ToolCall,
    options: Vec<PermissionOption>,
) -> Result<Decision> {
    let kinds: Vec<_> = options
        .iter()
        .map(|option| (option.option_id.clone(), option.kind.clone()))
        .collect();
    let request = RequestPermissionRequest::new(core.session.id(), call.summary(), options);
    let asking = core.client.request_permission(request);
    let decision = match core.unless_cancelled(asking).await?.outcome {
        RequestPermissionOutcome::Selected(chosen) => kinds
            .into_iter()
            .find(|(option, _)| *option == chosen.option_id)
            .map(|(option, kind)| Decision { option, kind })
            .ok_or_else(|| Error::NotOffered(chosen.option_id.to_string()))?,
        RequestPermissionOutcome::Cancelled => {
            // It means that the turn is cancelled, whether or not `session/cancel` has come.
            core.cancel.cancel();
            return Err(Error::Cancelled);
        }
        other => return Err(Error::NotOffered(format!("{other:?}"))),
    };
    if decision.is_allowed() {
        call.start().await?;
    }
    Ok(decision)
}
