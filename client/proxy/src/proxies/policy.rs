//! Decides by rules.

mod sessions;
mod unasked;

use std::sync::Arc;

use acp_client::internal::{Effect, tool_question};
use acp_client::{Decision, PermissionRequest, Permissions, Reason, Rules};
use acp_sdk::v1::methods::{CreateTerminal, ReadTextFile, RequestPermission, WriteTextFile};
use acp_sdk::v1::{RequestPermissionOutcome, RequestPermissionRequest, RequestPermissionResponse};
use acp_sdk::{ErrorCode, HandlerError, HandlerResult, convert::convert_logged, v2};

use self::sessions::Sessions;
use crate::mcp::{MESSAGE, ToolCallOf};
use crate::{Next, Proxy, Side};

/// Decides nothing, so that the client does.
struct Undecided;

impl Permissions for Undecided {
    async fn decide(&self, _: &PermissionRequest) -> Decision {
        Decision::Cancelled
    }

    // What a rule may have to deny is for a person, whom the client asks.
    fn asks_person(&self) -> bool {
        true
    }
}

/// Creates a proxy that decides by rules what an agent may do.
///
/// What a rule denies is refused: a permission request by its option that rejects, a file, a command or a call of
/// a tool that a client or a proxy has in its process by an error. A permission request that a rule allows is
/// answered without the client. All else is the client's decision.
///
/// An agent may do something without asking, such as in a mode in which it never asks. When it reports that a
/// tool call has completed that changed, ran or sent something and that a rule denies, the turn is cancelled, and
/// the client is sent the reason as text of the agent. A session that the agent has announced as the child of another,
/// such as that of a subagent, belongs to the turn of its parent.
///
/// In protocol version 2 clients serve neither files nor commands.
pub fn policy(rules: Rules) -> Proxy {
    let policy = Arc::new(PolicyState {
        rules: rules.fallback(Undecided),
        sessions: Sessions::default(),
    });
    let proxy = policy.sessions.follow(Proxy::new("policy"));
    macro_rules! guarded {
        ($proxy:ident, $method:ty, $effect:ident) => {{
            let policy = policy.clone();
            $proxy.on_request(move |next: Next<$method>, request| {
                let policy = policy.clone();
                async move {
                    policy.effect(Effect::$effect(&request)).await?;
                    next.pass().await
                }
            })
        }};
    }
    let proxy = guarded!(proxy, ReadTextFile, Read);
    let proxy = guarded!(proxy, WriteTextFile, Write);
    let proxy = guarded!(proxy, CreateTerminal, Run);
    let of_tools = policy.clone();
    let proxy = proxy.on_raw_request(Some(MESSAGE), move |next, params| {
        let policy = of_tools.clone();
        async move {
            if let (Some(call), Side::Agent) = (ToolCallOf::read(params.as_deref()), next.from()) {
                let question = tool_question("", &call.server, &call.tool, call.arguments);
                let what = format!("calling the tool {}", call.tool);
                policy.refuse_denied(&question, what).await?;
            }
            next.call(params).await
        }
    });
    let proxy = unasked::follow(&policy, proxy);
    let of_v2 = policy.clone();
    let proxy = proxy.on_request_v2(
        move |next: Next<v2::methods::RequestPermission>, request: v2::RequestPermissionRequest| {
            let policy = of_v2.clone();
            async move {
                let no_form = |what| HandlerError::internal(format!("{what} cannot be judged"));
                let request = convert_logged(request).ok_or_else(|| no_form("the request"))?;
                match policy.permission(request).await {
                    Some(answer) => convert_logged(answer).ok_or_else(|| no_form("the answer")),
                    None => next.pass().await,
                }
            }
        },
    );
    proxy.on_request(
        move |next: Next<RequestPermission>, request: RequestPermissionRequest| {
            let policy = policy.clone();
            async move {
                match policy.permission(request).await {
                    Some(answer) => Ok(answer),
                    None => next.pass().await,
                }
            }
        },
    )
}

/// The judgement, for all versions of the protocol: it is about requests in the form of version 1.
struct PolicyState {
    rules: Rules,
    sessions: Sessions,
}

impl PolicyState {
    /// Answers a permission request; `None` if it is for the client to decide.
    async fn permission(
        &self,
        request: RequestPermissionRequest,
    ) -> Option<RequestPermissionResponse> {
        let question = self.sessions.question(request);
        let decision = self.rules.decide(&question).await;
        let outcome = decision.among(&question.request.options);
        let is_rejected = decision == Decision::Reject;
        // The agent may offer no option that fits.
        let is_decided = is_rejected || outcome != RequestPermissionOutcome::Cancelled;
        if is_rejected || !is_decided {
            self.sessions.settled(&question);
        }
        is_decided.then(|| RequestPermissionResponse::new(outcome))
    }

    /// Refuses what the client is to do for the agent, if a rule denies it.
    async fn effect(&self, effect: Effect<'_>) -> HandlerResult<()> {
        let cwd = self.sessions.cwd(effect.session().as_str());
        let question = effect.question(cwd.unwrap_or_default(), None);
        self.refuse_denied(&question, effect.what()).await
    }

    async fn refuse_denied(&self, question: &PermissionRequest, what: String) -> HandlerResult<()> {
        let Some(why) = self.denies(question).await else {
            return Ok(());
        };
        let message = format!("{what} is refused by a rule of the proxy `policy`{why}");
        Err(HandlerError::new(ErrorCode::INVALID_REQUEST, message))
    }

    /// Returns the reason, as the end of a sentence, if a rule denies.
    async fn denies(&self, question: &PermissionRequest) -> Option<String> {
        let (decision, reason) = self.rules.decide_with_reason(question).await;
        let why = |reason: Reason| format!(": {reason}");
        (decision == Decision::Reject).then(|| reason.map_or_else(String::new, why))
    }
}
