//! Calls for sessions that other nodes have.

use acp_sdk::v1::SessionId;
use acp_sdk::{HandlerError, Json};
use axum::body::{Body, to_bytes};
use axum::http::{Request, header};
use axum::response::Response;
use jsonrpsee::types::ErrorObjectOwned;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::context::{Answer, Context, refusal};
use super::request_id::RequestId;
use crate::nodes::NodeCaller;

#[derive(Serialize)]
struct Call<'a> {
    jsonrpc: &'static str,
    id: u64,
    method: &'a str,
    params: &'a Json,
}

/// What names the session of a call.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Named {
    session_id: Option<SessionId>,
    request_id: Option<RequestId>,
}

#[derive(Deserialize)]
struct Answered {
    result: Option<Box<RawValue>>,
    error: Option<ErrorObjectOwned>,
}

/// Makes a call at the node that has its session; `None` if that is this one, or none.
pub(super) async fn call(context: &Context, method: &str, params: &Json) -> Option<Answer<Json>> {
    let nodes = context.nodes.as_ref()?;
    // What names none, or wrongly, is answered here.
    let named: Named = serde_json::from_str(params.get()).ok()?;
    let session = named.session_id.or(named.request_id.map(|id| id.session))?;
    let call = Call {
        jsonrpc: "2.0",
        id: 1,
        method,
        params,
    };
    let request = Request::post(&*context.path)
        .header(header::CONTENT_TYPE, "application/json")
        .body(Body::from(serde_json::to_vec(&call).ok()?));
    let caller = NodeCaller::new(context.caller(), "rpc");
    let server = context.server.clone();
    let answer = nodes.forward(server, session.clone(), request.ok()?, caller);
    Some(read(context, &session, answer.await.ok()?).await)
}

async fn read(context: &Context, session: &SessionId, answer: Response) -> Answer<Json> {
    let status = answer.status();
    let body = to_bytes(answer.into_body(), context.message_bytes).await;
    let body = body.unwrap_or_default();
    match serde_json::from_slice(&body) {
        Ok(Answered {
            error: Some(error), ..
        }) => Err(error),
        Ok(Answered {
            result: Some(result),
            ..
        }) => Ok(Json::from(result)),
        _ => Err(refusal(&HandlerError::internal(format!(
            "the node with session {session} does not answer the call (status {status}); try again \
             in 2 s"
        )))),
    }
}
