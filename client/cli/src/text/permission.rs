//! Permission requests and their answers as lines.

use std::fmt::Write as _;

use acp_sdk::v1::{PermissionOptionKind, RequestPermissionOutcome};

use super::MOST_SHOWN;
use acp_client::{Answered, Outcome, Reason};
use acp_sdk::text::one_line;

/// Returns a line about a permission request and its answer.
pub(in super::super) fn permission(answered: &Answered) -> String {
    let question = &answered.question;
    let title = question.title.as_deref().unwrap_or("a tool call");
    let mut line = format!("permission: {}", one_line(title, MOST_SHOWN));
    if let Some(kind) = &question.kind {
        let _ = write!(line, " ({kind})");
    }
    let outcome = match &answered.outcome {
        RequestPermissionOutcome::Selected(chosen) => {
            match answered.option().map(|option| &option.kind) {
                Some(PermissionOptionKind::AllowOnce) => "allowed once".to_owned(),
                Some(PermissionOptionKind::AllowAlways) => "allowed always".to_owned(),
                Some(PermissionOptionKind::RejectOnce) => "refused".to_owned(),
                Some(PermissionOptionKind::RejectAlways) => "refused always".to_owned(),
                _ => one_line(chosen.option_id.as_str(), MOST_SHOWN),
            }
        }
        _ => "cancelled".to_owned(),
    };
    line = line + ": " + &outcome;
    match answered.reason.as_deref() {
        Some(reason @ Reason::Rule(_)) => {
            let _ = write!(line, " by {}", one_line(&reason.to_string(), MOST_SHOWN));
        }
        Some(reason) => {
            let _ = write!(line, "; {}", one_line(&reason.to_string(), MOST_SHOWN));
        }
        None => {}
    }
    line
}

/// Returns why a turn was ended that did what nobody allowed.
pub(in super::super) fn not_allowed(outcome: &Outcome) -> Option<String> {
    let titles = outcome.not_allowed.iter();
    let titles: Vec<_> = titles.map(|title| one_line(title, MOST_SHOWN)).collect();
    (!titles.is_empty()).then(|| {
        format!(
            "the turn was ended, because the agent did what nobody allowed: {}. Allow it by --rules or \
             --approve-all, or choose a mode of the agent in which it asks",
            titles.join("; ")
        )
    })
}

#[cfg(test)]
mod tests {
    use acp_client::PermissionRequest;
    use acp_sdk::v1::{
        PermissionOption, RequestPermissionRequest, SelectedPermissionOutcome, ToolCallUpdate,
    };

    use super::*;

    #[test]
    fn a_permission_is_told_by_what_was_chosen() {
        let told = |kind: Option<PermissionOptionKind>| {
            let call = ToolCallUpdate::new("1").with_title("Run it");
            let options = kind.iter();
            let options = options.map(|kind| PermissionOption::new("id", "Name", kind.clone()));
            let request = RequestPermissionRequest::new("s", call, options.collect());
            let outcome = match kind {
                Some(_) => RequestPermissionOutcome::Selected(SelectedPermissionOutcome::new("id")),
                None => RequestPermissionOutcome::Cancelled,
            };
            let question = PermissionRequest::new(request);
            permission(&Answered::new(question, outcome))
        };
        use PermissionOptionKind as Kind;
        assert_eq!(
            told(Some(Kind::AllowOnce)),
            "permission: Run it: allowed once"
        );
        assert_eq!(
            told(Some(Kind::AllowAlways)),
            "permission: Run it: allowed always"
        );
        assert_eq!(told(Some(Kind::RejectOnce)), "permission: Run it: refused");
        assert_eq!(told(None), "permission: Run it: cancelled");
    }
}
