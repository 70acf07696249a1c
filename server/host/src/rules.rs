//! Permission rules of the client, for the questions of a server's sessions.

use acp_client::{Decision, PermissionRequest, Permissions, Reason, Remember, Rules};
use acp_sdk::v1::{RequestPermissionOutcome, RequestPermissionRequest};
use acp_server::{BoxFuture, DecidePermissions, DecidedPermission, Session};

/// Decides permission requests by [`Rules`], for [`ServerBuilder::permissions`](acp_server::ServerBuilder::permissions).
/// What no rule decides, and what is unclear to a rule that denies, is for the clients.
///
/// ```no_run
/// # fn example(handler: impl acp_server::Handler) -> Result<(), acp_client::RulesError> {
/// use acp_client::Rules;
/// use acp_server::Server;
/// use acp_server_host::PermissionRules;
///
/// let rules = PermissionRules::new(Rules::read("/etc/acp/rules.toml")?);
/// let server = Server::builder(handler).permissions(rules).build();
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct PermissionRules(Rules);

/// The fallback of the rules: leaves a request to the clients of the session.
struct Undecided;

impl Permissions for Undecided {
    async fn decide(&self, _: &PermissionRequest) -> Decision {
        // No rule decides so.
        Decision::Cancelled
    }

    /// The clients: rules leave what is unclear to them.
    fn asks_person(&self) -> bool {
        true
    }
}

impl PermissionRules {
    /// Takes rules. Their fallback is not used, and they remember nothing.
    #[must_use]
    pub fn new(rules: Rules) -> Self {
        Self::remembering(rules.remember(Remember::No))
    }

    /// Takes rules that remember what clients answer with "always", as
    /// [`Rules::remember`](acp_client::Rules::remember) says. Their fallback is not used.
    #[must_use]
    pub fn remembering(rules: Rules) -> Self {
        Self(rules.fallback(Undecided))
    }
}

/// The fallback of the rules: what a client has answered.
struct Answered(Decision);

impl Permissions for Answered {
    async fn decide(&self, _: &PermissionRequest) -> Decision {
        self.0.clone()
    }

    fn asks_person(&self) -> bool {
        true
    }
}

fn question(session: &Session, request: &RequestPermissionRequest) -> PermissionRequest {
    let mut question = PermissionRequest::new(request.clone());
    question.cwd = Some(session.cwd().into());
    question
}

impl DecidePermissions for PermissionRules {
    fn decide<'a>(
        &'a self,
        session: &'a Session,
        request: &'a RequestPermissionRequest,
    ) -> BoxFuture<'a, Option<DecidedPermission>> {
        Box::pin(async move {
            let question = question(session, request);
            let (decision, reason) = self.0.decide_with_reason(&question).await;
            if decision == Decision::Cancelled {
                return None;
            }
            let by = reason
                .as_ref()
                .map_or_else(|| "a rule".to_owned(), Reason::to_string);
            let outcome = decision.among(&request.options);
            Some(DecidedPermission { outcome, by })
        })
    }

    fn answered<'a>(
        &'a self,
        session: &'a Session,
        request: &'a RequestPermissionRequest,
        outcome: &'a RequestPermissionOutcome,
    ) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            let RequestPermissionOutcome::Selected(chosen) = outcome else {
                return;
            };
            let given = Answered(Decision::Option(chosen.option_id.clone()));
            let rules = self.0.clone().fallback(given);
            let (_, reason) = rules.decide_with_reason(&question(session, request)).await;
            if let Some(Reason::NotRemembered(reason)) = reason {
                tracing::warn!(session = %session.id(), reason, "an answer is not remembered");
            }
        })
    }
}
