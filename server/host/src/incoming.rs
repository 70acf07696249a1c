//! What an agent sends: updates to the log, requests to the clients.
//!
//! The connection handles a request of a session after the updates before it.

use std::sync::Arc;

use acp_client::internal::SessionGap;
use acp_sdk::service::{HandlerFuture, IncomingNotification, IncomingRequest, Service};
use acp_sdk::{HandlerError, HandlerResult, Json};
use acp_server::internal::raw_object::RawObject;
use serde_json::value::RawValue;

use super::routes::Routes;
use super::session::HostedSession;
use super::uses::Uses;
#[cfg(feature = "v2")]
use super::v2::Question;
use super::version::Version;

/// The client's side of the connection to a process.
pub(super) struct Incoming {
    routes: Arc<Routes>,
    uses: Arc<Uses>,
    version: Version,
}

impl Incoming {
    pub(super) fn new(routes: Arc<Routes>, uses: Arc<Uses>, version: Version) -> Self {
        Self {
            routes,
            uses,
            version,
        }
    }
}

impl Service for Incoming {
    fn request(&self, request: IncomingRequest<'_>) -> HandlerFuture {
        let params = request.params().and_then(|raw| RawObject::parse(raw.get()));
        let session = params.as_ref().and_then(|params| params.text("sessionId"));
        let hosted = session.as_ref().and_then(|id| self.routes.find(id));
        let (routes, version) = (self.routes.clone(), self.version);
        let used = self.uses.begin();
        request.answer_ext(move |ctx, method, _| async move {
            let _used = used;
            let (Some(hosted), Some(params)) = (hosted, params) else {
                return without_session(&method, session.as_deref());
            };
            let answer = answer_in(version, &hosted, &routes, &method, params);
            tokio::select! {
                biased;
                answer = answer => answer,
                () = ctx.cancelled() => Err(HandlerError::cancelled()),
            }
        })
    }

    fn notification(&self, notification: IncomingNotification<'_>) -> HandlerFuture {
        let raw = notification.params();
        let gap = SessionGap::read(notification.method(), raw.map(RawValue::get));
        if let Some(SessionGap { session, gap }) = gap {
            let hosted = self.routes.find(session.as_str());
            return notification.handle_ext(move |_, _, _| async move {
                if let Some(hosted) = hosted {
                    hosted.missed(gap).await;
                }
                Ok(())
            });
        }
        let params = raw.and_then(|raw| RawObject::parse(raw.get()));
        let params = params.unwrap_or_default();
        let id = params.text("sessionId");
        self.uses.touch();
        if notification.method() == "session/update" {
            let hosted = id.and_then(|id| self.routes.route(&id, &params));
            return notification.handle_ext(move |_, _, _| async move {
                if let Some(hosted) = hosted {
                    let _order = hosted.order.lock().await;
                    hosted.update(params).await;
                }
                Ok(())
            });
        }
        let hosted = match notification.method() {
            "elicitation/complete" => params
                .text("elicitationId")
                .and_then(|id| self.routes.elicited(&id)),
            _ => id.and_then(|id| self.routes.find(&id)),
        };
        notification.handle_ext(move |_, method, _| async move {
            if let Some(hosted) = hosted {
                hosted.notify_clients(&method, params).await;
            }
            Ok(())
        })
    }
}

/// Answers a request of the agent in its version.
async fn answer_in(
    version: Version,
    hosted: &Arc<HostedSession>,
    routes: &Routes,
    method: &str,
    params: RawObject,
) -> HandlerResult<Json> {
    #[cfg(feature = "v2")]
    if version == Version::V2
        && let Some(question) = Question::of(method)
    {
        let params = question.params(&params)?;
        return question.answer(&answer(hosted, routes, method, params).await?);
    }
    let _ = version;
    answer(hosted, routes, method, params).await
}

/// Answers a request of the agent.
async fn answer(
    hosted: &Arc<HostedSession>,
    routes: &Routes,
    method: &str,
    params: RawObject,
) -> HandlerResult<Json> {
    match method {
        "session/request_permission" => hosted.permission(params).await,
        "elicitation/create" => hosted.elicitation(routes, params).await,
        "fs/read_text_file" => hosted.read_file(params).await,
        "fs/write_text_file" => hosted.write_file(params).await,
        "terminal/create" => hosted.create_terminal(params).await,
        "terminal/output" | "terminal/wait_for_exit" | "terminal/kill" | "terminal/release" => {
            hosted.use_terminal(method, params).await
        }
        _ => hosted.ask_any_client(method, params).await,
    }
}

/// Answers a request that names no session of ours.
fn without_session(method: &str, session: Option<&str>) -> HandlerResult<Json> {
    match (method, session) {
        // Asked while the user authenticates: nobody knows which client does.
        ("elicitation/create", None) => Ok(serde_json::json!({ "action": "cancel" }).into()),
        (_, Some(id)) => Err(HandlerError::resource_not_found(format!("session {id}"))),
        _ => Err(HandlerError::method_not_found(method)),
    }
}
