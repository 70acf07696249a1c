//! Which sessions there are, by the requests that open and close them.

use std::borrow::Cow;
use std::sync::Arc;

use acp_sdk::envelope;
use serde_json::value::RawValue;

use crate::Proxy;

/// The requests that open a session, and give it servers.
pub(crate) const OPENING: [&str; 4] = [
    "session/new",
    "session/load",
    "session/resume",
    "session/fork",
];

/// Returns the session that a request with this `sessionId` has opened.
pub(crate) fn opened(named: Option<String>, response: &RawValue) -> Option<String> {
    // Only a new session has its id in the response.
    envelope::session(response).map(Cow::into_owned).or(named)
}

/// Returns the `sessionId` of a request.
pub(crate) fn named(params: Option<&RawValue>) -> Option<String> {
    params.and_then(envelope::session).map(Cow::into_owned)
}

/// Calls `ended` with each session that was closed or deleted.
pub(crate) fn on_end(mut proxy: Proxy, ended: impl Fn(&str) + Send + Sync + 'static) -> Proxy {
    let ended = Arc::new(ended);
    for method in ["session/close", "session/delete"] {
        let ended = ended.clone();
        proxy = proxy.on_raw_request(Some(method), move |next, params| {
            let session = named(params.as_deref());
            let ended = ended.clone();
            async move {
                let response = next.call(params).await?;
                if let Some(session) = session {
                    ended(&session);
                }
                Ok(response)
            }
        });
    }
    proxy
}
