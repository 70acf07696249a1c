//! Answering a permission request.

use std::borrow::Cow;

use acp_sdk::v1::{
    PermissionOption, PermissionOptionKind, RequestPermissionOutcome, SelectedPermissionOutcome,
    SessionId,
};
use acp_server::event::QuestionId;
use acp_server::internal::session::Reply;
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::body::Object;
use super::failure::Failure;
use super::state::Rest;
use crate::caller::Caller;

/// The answer to a permission request.
#[derive(Debug, Default, Deserialize, ToSchema)]
pub(super) struct Approval {
    #[schema(value_type = String, required = true)]
    session_id: Option<String>,
    /// Of the event `permission_request` or the list `pending_permissions`.
    #[schema(value_type = IdText, required = true)]
    permission_id: Option<IdText>,
    #[schema(value_type = bool, required = true)]
    approved: Option<bool>,
    /// One of the options that were offered. Default: to allow or to reject once, else always.
    option_id: Option<IdText>,
}

/// An id. Responses have the text; a number is accepted, too.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(untagged, expecting = "expected a text or an integer")]
enum IdText {
    Text(String),
    Number(i64),
}

impl IdText {
    fn text(&self) -> Cow<'_, str> {
        match self {
            Self::Text(text) => Cow::Borrowed(text),
            Self::Number(number) => Cow::Owned(number.to_string()),
        }
    }
}

/// A permission request that has been answered.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Resolved {
    /// `true`.
    resolved: bool,
    approved: bool,
    /// The option that was chosen.
    option_id: String,
}

pub(super) async fn approve_tool(
    State(rest): State<Rest>,
    caller: Caller,
    Object(approval): Object<Approval>,
) -> Result<Json<Resolved>, Failure> {
    let (Some(session), Some(permission)) = (&approval.session_id, &approval.permission_id) else {
        return Err(Failure::bad_request("missing_session_id_or_permission_id"));
    };
    let approved = approval
        .approved
        .ok_or_else(|| Failure::bad_request("missing_approved"))?;
    let id = SessionId::from(session.as_str());
    rest.check_login(&caller, Some(&id)).await?;
    rest.record(&id).await?;
    // Nothing waits in a session that is not in memory.
    let session = rest.in_memory(&id).ok_or_else(not_found)?;
    let permission = permission.text();
    // The interface `/rpc` puts the session before the number.
    let of_session = permission.strip_prefix(session.id().as_str());
    let number = of_session.and_then(|rest| rest.strip_prefix('/'));
    let number = number.unwrap_or(&permission).parse();
    let question = QuestionId(number.map_err(|_| not_found())?);
    let pending = session.pending_permissions();
    let pending = pending
        .into_iter()
        .find(|pending| pending.question == question);
    let options = pending.ok_or_else(not_found)?.request.options;
    let option = match approval.option_id.as_ref().map(IdText::text) {
        Some(wanted) => options
            .iter()
            .find(|option| option.option_id.as_str() == wanted && allows(option) == approved)
            .ok_or_else(|| {
                let message = format!(
                    "the option {wanted:?} is not among those offered, or contradicts `approved`"
                );
                Failure::bad_request("unknown_option").message(message)
            })?,
        None => once_or_always(&options, approved).ok_or_else(|| {
            let message = format!("no option stands for `approved`: {approved}; name one");
            Failure::new(StatusCode::CONFLICT, "no_option").message(message)
        })?,
    };
    let outcome = SelectedPermissionOutcome::new(option.option_id.clone());
    let outcome = RequestPermissionOutcome::Selected(outcome);
    // Somebody else may have been first.
    session
        .answer_for(
            &caller.answerer("rest"),
            question,
            Reply::Permission(outcome),
        )
        .map_err(|_| not_found())?;
    Ok(Json(Resolved {
        resolved: true,
        approved,
        option_id: option.option_id.to_string(),
    }))
}

fn allows(option: &PermissionOption) -> bool {
    matches!(
        option.kind,
        PermissionOptionKind::AllowOnce | PermissionOptionKind::AllowAlways
    )
}

/// Returns the option that allows or rejects, for this time only if there is one.
fn once_or_always(options: &[PermissionOption], approved: bool) -> Option<&PermissionOption> {
    let (once, always) = match approved {
        true => (
            PermissionOptionKind::AllowOnce,
            PermissionOptionKind::AllowAlways,
        ),
        false => (
            PermissionOptionKind::RejectOnce,
            PermissionOptionKind::RejectAlways,
        ),
    };
    let find = |kind: &PermissionOptionKind| options.iter().find(|option| option.kind == *kind);
    find(&once).or_else(|| find(&always))
}

fn not_found() -> Failure {
    Failure::not_found("permission_not_found")
        .message("no such request is open; it was answered or withdrawn, or never made")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn once_is_preferred_to_always() {
        let option = |id: &str, kind| PermissionOption::new(id, id, kind);
        let options = [
            option("always", PermissionOptionKind::AllowAlways),
            option("once", PermissionOptionKind::AllowOnce),
            option("never", PermissionOptionKind::RejectAlways),
        ];
        let chosen = |approved| once_or_always(&options, approved).map(|o| o.option_id.to_string());
        assert_eq!(chosen(true).as_deref(), Some("once"));
        assert_eq!(chosen(false).as_deref(), Some("never"));
        assert_eq!(once_or_always(&options[..2], false), None);
    }
}
