//! What an agent sends: updates to the log, requests to the clients.
//!
//! The connection handles a request of a session after the updates before it.

use std::sync::Arc;

use acp_client::internal::SessionGap;
use acp_sdk::service::{HandlerFuture, IncomingNotification, IncomingRequest, Service};
use acp_sdk::{HandlerError, HandlerResult, Json};
use acp_server::internal::raw_object::RawObject;
use serde_json::value::RawValue;

use super::logging_in::Logins;
use super::routes::Routes;
use super::session::HostedSession;
use super::uses::Uses;
use super::v2::Question;
use super::version::Version;

/// The client's side of the connection to a process.
pub(super) struct Incoming {
    routes: Arc<Routes>,
    uses: Arc<Uses>,
    logins: Arc<Logins>,
    version: Version,
}

impl Incoming {
    pub(super) fn new(
        routes: Arc<Routes>,
        uses: Arc<Uses>,
        logins: Arc<Logins>,
        version: Version,
    ) -> Self {
        Self {
            routes,
            uses,
            logins,
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
        let (used, logins) = (self.uses.begin(), self.logins.clone());
        request.answer_ext(move |ctx, method, _| async move {
            let _used = used;
            let params = params.unwrap_or_default();
            let answer = answer_in(version, &method, params, async |params| match hosted {
                Some(hosted) => answer(&hosted, &routes, &method, params).await,
                None => without_session(&logins, &method, session.as_deref(), &params).await,
            });
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
        let mut of_login = None;
        let hosted = match notification.method() {
            "elicitation/complete" => {
                let id = params.text("elicitationId");
                let hosted = id.as_ref().and_then(|id| self.routes.elicited(id));
                of_login = id.filter(|_| hosted.is_none());
                hosted
            }
            _ => id.and_then(|id| self.routes.find(&id)),
        };
        let logins = self.logins.clone();
        notification.handle_ext(move |_, method, _| async move {
            if let Some(hosted) = hosted {
                hosted.notify_clients(&method, params).await;
            } else if let Some(id) = of_login {
                logins.complete(id).await;
            }
            Ok(())
        })
    }
}

/// Answers a request of the agent in its version, by what answers it in version 1.
async fn answer_in(
    version: Version,
    method: &str,
    params: RawObject,
    answer: impl AsyncFnOnce(RawObject) -> HandlerResult<Json>,
) -> HandlerResult<Json> {
    if version == Version::V2
        && let Some(question) = Question::of(method)
    {
        let params = question.params(&params)?;
        return question.answer(&answer(params).await?);
    }
    answer(params).await
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
async fn without_session(
    logins: &Logins,
    method: &str,
    session: Option<&str>,
    params: &RawObject,
) -> HandlerResult<Json> {
    match (method, session) {
        ("elicitation/create", None) => logins.elicitation(params).await,
        (_, Some(id)) => Err(HandlerError::resource_not_found(format!("session {id}"))),
        _ => Err(HandlerError::method_not_found(method)),
    }
}
