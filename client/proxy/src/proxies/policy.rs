//! Rules for what an agent may do, in front of any client.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use acp_client::internal::{Effect, tool_question};
use acp_client::{Decision, PermissionRequest, Permissions, Reason, Rules};
use acp_sdk::v1::methods::{
    CreateTerminal, LoadSession, NewSession, ReadTextFile, RequestPermission, ResumeSession,
    WriteTextFile,
};
use acp_sdk::v1::{
    LoadSessionRequest, NewSessionRequest, RequestPermissionOutcome, RequestPermissionRequest,
    RequestPermissionResponse, ResumeSessionRequest, SessionId,
};
use acp_sdk::{ErrorCode, HandlerError, HandlerResult};

use crate::mcp::{MESSAGE, ToolCallOf};
use crate::{Next, Proxy, Side};

/// The maximum number of sessions whose directories are known. Paths of others are judged as they are.
const MOST_SESSIONS: usize = 10_000;

type Directories = Arc<Mutex<HashMap<SessionId, PathBuf>>>;

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

/// Creates a proxy that decides by rules what an agent may do, for agents and clients of protocol version 1.
///
/// What a rule denies is refused: a permission request by its option that rejects, a file or a command by an
/// error, so also a call of a tool that a client or a proxy has in its process. A permission request that a rule allows is answered without the client. All else is the client's
/// decision.
pub fn policy(rules: Rules) -> Proxy {
    let rules = Arc::new(rules.fallback(Undecided));
    let directories = Directories::default();
    let proxy = with_directories(Proxy::new("policy"), &directories);
    macro_rules! guarded {
        ($proxy:ident, $method:ty, $effect:ident) => {{
            let (rules, directories) = (rules.clone(), directories.clone());
            $proxy.on_request(move |next: Next<$method>, request| {
                let (rules, directories) = (rules.clone(), directories.clone());
                async move {
                    let effect = Effect::$effect(&request);
                    let cwd = directory(&directories, effect.session()).unwrap_or_default();
                    refuse_denied(&rules, &effect.question(cwd, None), effect.what()).await?;
                    next.pass().await
                }
            })
        }};
    }
    let proxy = guarded!(proxy, ReadTextFile, Read);
    let proxy = guarded!(proxy, WriteTextFile, Write);
    let proxy = guarded!(proxy, CreateTerminal, Run);
    let of_tools = rules.clone();
    let proxy = proxy.on_raw_request(Some(MESSAGE), move |next, params| {
        let rules = of_tools.clone();
        async move {
            let call = ToolCallOf::read(params.as_deref());
            if let (Some(call), Side::Agent) = (call, next.from()) {
                let question = tool_question("", &call.server, &call.tool, call.arguments);
                let what = format!("calling the tool {}", call.tool);
                refuse_denied(&rules, &question, what).await?;
            }
            next.call(params).await
        }
    });
    proxy.on_request(
        move |next: Next<RequestPermission>, request: RequestPermissionRequest| {
            let (rules, directories) = (rules.clone(), directories.clone());
            async move {
                let mut question = PermissionRequest::new(request);
                let session = &question.request.session_id;
                question.cwd = directory(&directories, session);
                let decision = rules.decide(&question).await;
                if decision == Decision::Cancelled {
                    return next.pass().await;
                }
                match decision.among(&question.request.options) {
                    // The agent offers no option that fits.
                    RequestPermissionOutcome::Cancelled if decision != Decision::Reject => {
                        next.pass().await
                    }
                    outcome => Ok(RequestPermissionResponse::new(outcome)),
                }
            }
        },
    )
}

/// Refuses an effect that a rule denies.
async fn refuse_denied(
    rules: &Rules,
    question: &PermissionRequest,
    what: String,
) -> HandlerResult<()> {
    match rules.decide_with_reason(question).await {
        (Decision::Reject, reason) => {
            let why = reason.map_or_else(String::new, |reason: Reason| format!(": {reason}"));
            let message = format!("{what} is refused by a rule of the proxy `policy`{why}");
            Err(HandlerError::new(ErrorCode::INVALID_REQUEST, message))
        }
        _ => Ok(()),
    }
}

/// Remembers the working directories of sessions.
fn with_directories(proxy: Proxy, directories: &Directories) -> Proxy {
    let [of_new, of_load, of_resume] = [directories; 3].map(Clone::clone);
    proxy
        .on_request(move |next: Next<NewSession>, request: NewSessionRequest| {
            let directories = of_new.clone();
            async move {
                let created = next.pass().await?;
                remember(&directories, &created.session_id, request.cwd.as_str());
                Ok(created)
            }
        })
        .on_request(
            move |next: Next<LoadSession>, request: LoadSessionRequest| {
                remember(&of_load, &request.session_id, request.cwd.as_str());
                next.pass()
            },
        )
        .on_request(
            move |next: Next<ResumeSession>, request: ResumeSessionRequest| {
                remember(&of_resume, &request.session_id, request.cwd.as_str());
                next.pass()
            },
        )
}

fn remember(directories: &Directories, session: &SessionId, cwd: &str) {
    let mut directories = directories.lock().unwrap_or_else(PoisonError::into_inner);
    if directories.len() < MOST_SESSIONS {
        directories.insert(session.clone(), cwd.into());
    }
}

fn directory(directories: &Directories, session: &SessionId) -> Option<PathBuf> {
    let directories = directories.lock().unwrap_or_else(PoisonError::into_inner);
    directories.get(session).cloned()
}
