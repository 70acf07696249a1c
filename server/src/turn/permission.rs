//! Asking the user whether a tool call may go on.
//!
//! Spec: <https://agentclientprotocol.com/protocol/v1/tool-calls#requesting-permission>

use std::sync::Arc;

use acp_sdk::v1::{
    PermissionOption, PermissionOptionId, PermissionOptionKind, RequestPermissionOutcome,
    RequestPermissionRequest,
};

use super::{ToolCall, TurnCore, question};
use crate::session::{Ask, Reply, audit};
use crate::{Error, Result};

/// What the user chose.
#[derive(Clone, Debug, PartialEq)]
pub struct Decision {
    option: PermissionOptionId,
    kind: PermissionOptionKind,
}

impl Decision {
    /// Returns whether the call may go on.
    #[must_use]
    pub fn is_allowed(&self) -> bool {
        matches!(
            self.kind,
            PermissionOptionKind::AllowOnce | PermissionOptionKind::AllowAlways
        )
    }

    /// Returns whether the choice is also for later calls of the same kind and title. The session
    /// remembers it and answers those calls without asking, as long as it is open.
    #[must_use]
    pub fn is_always(&self) -> bool {
        matches!(
            self.kind,
            PermissionOptionKind::AllowAlways | PermissionOptionKind::RejectAlways
        )
    }

    /// Returns the id of the chosen option.
    #[must_use]
    pub fn option(&self) -> &PermissionOptionId {
        &self.option
    }

    /// Returns the kind of the chosen option.
    #[must_use]
    pub fn kind(&self) -> &PermissionOptionKind {
        &self.kind
    }
}

/// The options to allow or to reject a call once.
pub(super) fn once() -> Vec<PermissionOption> {
    vec![
        PermissionOption::new("allow", "Allow", PermissionOptionKind::AllowOnce),
        PermissionOption::new("reject", "Reject", PermissionOptionKind::RejectOnce),
    ]
}

pub(super) async fn ask(
    core: &Arc<TurnCore>,
    call: &ToolCall,
    options: Vec<PermissionOption>,
) -> Result<Decision> {
    let key = call.remembered_as();
    let remembered = core.session.state().remembered.get(&key).cloned();
    let decision = match remembered {
        // Only what is offered again counts again.
        Some(decision)
            if options
                .iter()
                .any(|option| option.option_id == decision.option) =>
        {
            audit::remembered(core.session.id(), &call.summary(), &decision);
            decision
        }
        _ => choose(core, call, options).await?,
    };
    if decision.is_always() {
        let mut state = core.session.state();
        state.remembered.insert(key, decision.clone());
    }
    if decision.is_allowed() {
        call.start().await?;
    }
    Ok(decision)
}

async fn choose(
    core: &Arc<TurnCore>,
    call: &ToolCall,
    options: Vec<PermissionOption>,
) -> Result<Decision> {
    let kinds: Vec<_> = options
        .iter()
        .map(|option| (option.option_id.clone(), option.kind.clone()))
        .collect();
    let request = RequestPermissionRequest::new(call.session(), call.summary(), options);
    match question::ask(core, Ask::Permission(request)).await? {
        Reply::Permission(RequestPermissionOutcome::Selected(chosen)) => kinds
            .into_iter()
            .find(|(option, _)| *option == chosen.option_id)
            .map(|(option, kind)| Decision { option, kind })
            .ok_or_else(|| Error::UnknownOption(chosen.option_id.to_string())),
        Reply::Permission(RequestPermissionOutcome::Cancelled) => {
            // It means that the turn is cancelled, whether or not `session/cancel` has come.
            core.cancel.cancel();
            Err(Error::Cancelled)
        }
        other => Err(Error::UnknownOption(format!("{other:?}"))),
    }
}
