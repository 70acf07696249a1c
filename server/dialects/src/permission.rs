//! Replies of a dialect to a request for permission, as options of the agent.

use acp_sdk::v1::{
    PermissionOption, PermissionOptionKind, RequestPermissionOutcome, SelectedPermissionOutcome,
};

use acp_server::Session;
use acp_server::event::QuestionId;
use acp_server::internal::session::{self, Answerer};

/// What the user of a dialect can reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reply {
    Allow,
    Always,
    Deny,
}

impl Reply {
    pub(crate) const ALL: [Self; 3] = [Self::Allow, Self::Always, Self::Deny];

    /// Returns whether the agent has an option for it. A rejection is always possible.
    pub(crate) fn is_offered(self, options: &[PermissionOption]) -> bool {
        let has = |kind| find(options, &kind).is_some();
        match self {
            Self::Allow => has(PermissionOptionKind::AllowOnce),
            Self::Always => has(PermissionOptionKind::AllowAlways),
            Self::Deny => true,
        }
    }

    /// Returns the agent's option, never one that allows more than the user did: `always` may become
    /// once. Without an option that rejects, a rejection cancels the turn. `None` if nothing fits.
    pub(crate) fn outcome(self, options: &[PermissionOption]) -> Option<RequestPermissionOutcome> {
        let kinds: &[_] = match self {
            Self::Allow => &[PermissionOptionKind::AllowOnce],
            Self::Always => &[
                PermissionOptionKind::AllowAlways,
                PermissionOptionKind::AllowOnce,
            ],
            Self::Deny => &[
                PermissionOptionKind::RejectOnce,
                PermissionOptionKind::RejectAlways,
            ],
        };
        let chosen = kinds.iter().find_map(|kind| find(options, kind));
        match chosen {
            Some(option) => Some(SelectedPermissionOutcome::new(option.option_id.clone()).into()),
            None => (self == Self::Deny).then_some(RequestPermissionOutcome::Cancelled),
        }
    }
}

/// Answers a question with the option of a reply, for a client of the dialect `route`. Returns `false` if
/// no option fits.
///
/// # Errors
///
/// As [`Session::answer_permission`].
pub(crate) fn answer(
    session: &Session,
    question: QuestionId,
    reply: Reply,
    options: &[PermissionOption],
    route: &'static str,
) -> acp_server::Result<bool> {
    let Some(outcome) = reply.outcome(options) else {
        return Ok(false);
    };
    let answerer = Answerer {
        by: "local client".into(),
        route,
        client: None,
    };
    let reply = session::Reply::Permission(outcome);
    session.answer_for(&answerer, question, reply)?;
    Ok(true)
}

fn find<'a>(
    options: &'a [PermissionOption],
    kind: &PermissionOptionKind,
) -> Option<&'a PermissionOption> {
    options.iter().find(|option| option.kind == *kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn option(id: &str, kind: PermissionOptionKind) -> PermissionOption {
        PermissionOption::new(id, id, kind)
    }

    fn chosen(reply: Reply, options: &[PermissionOption]) -> Option<String> {
        reply.outcome(options).map(|outcome| match outcome {
            RequestPermissionOutcome::Selected(chosen) => chosen.option_id.to_string(),
            _ => "cancelled".to_owned(),
        })
    }

    #[test]
    fn no_option_allows_more_than_the_user() {
        let once = [option("once", PermissionOptionKind::AllowOnce)];
        assert_eq!(chosen(Reply::Allow, &once).as_deref(), Some("once"));
        assert_eq!(chosen(Reply::Always, &once).as_deref(), Some("once"));
        assert_eq!(chosen(Reply::Deny, &once).as_deref(), Some("cancelled"));
        let always = [
            option("always", PermissionOptionKind::AllowAlways),
            option("never", PermissionOptionKind::RejectAlways),
        ];
        assert_eq!(chosen(Reply::Allow, &always), None);
        assert_eq!(chosen(Reply::Always, &always).as_deref(), Some("always"));
        assert_eq!(chosen(Reply::Deny, &always).as_deref(), Some("never"));
    }

    #[test]
    fn what_is_offered_has_an_option() {
        let once = [option("once", PermissionOptionKind::AllowOnce)];
        let offered = Reply::ALL.map(|reply| reply.is_offered(&once));
        assert_eq!(offered, [true, false, true]);
    }
}
