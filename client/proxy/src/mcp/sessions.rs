//! Which sessions there are, by the requests that open and close them.

use std::sync::Arc;

use serde_json::Value;

use crate::Proxy;
use crate::message::value;

/// The requests that open a session, and give it servers.
pub(crate) const OPENING: [&str; 4] = [
    "session/new",
    "session/load",
    "session/resume",
    "session/fork",
];

/// Returns the session that a request has opened.
pub(crate) fn opened<'a>(request: &'a Value, response: &'a Value) -> Option<&'a str> {
    // Only a new session has its id in the response.
    let id = |from: &'a Value| from["sessionId"].as_str();
    id(response).or_else(|| id(request))
}

/// Calls `ended` with each session that was closed or deleted.
pub(crate) fn on_end(mut proxy: Proxy, ended: impl Fn(&str) + Send + Sync + 'static) -> Proxy {
    let ended = Arc::new(ended);
    for method in ["session/close", "session/delete"] {
        let ended = ended.clone();
        proxy = proxy.on_raw_request(Some(method), move |next, params| {
            let request = value(params.as_deref());
            let ended = ended.clone();
            async move {
                let response = next.call(params).await?;
                if let Some(session) = request["sessionId"].as_str() {
                    ended(session);
                }
                Ok(response)
            }
        });
    }
    proxy
}
