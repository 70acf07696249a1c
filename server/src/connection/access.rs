//! What a client may do, checked before its messages are handled.

use std::borrow::Cow;
use std::sync::Arc;

use acp_sdk::service::{HandlerFuture, IncomingNotification, IncomingRequest, Layer, Service};
use acp_sdk::v1::{ErrorCode, SessionId};
use acp_sdk::{HandlerError, HandlerResult};
use serde::Deserialize;
use serde_json::value::RawValue;

/// What a client may do.
///
/// With the feature `remote` an extension of every request that
/// `remote::protect` lets through.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Access {
    /// Everything.
    Full,
    /// Everything in one session, and nothing elsewhere. Copying the session is elsewhere.
    Session(SessionId),
    /// Reading, in every session. The client is sent what happens, and is asked nothing.
    ReadOnly,
}

impl Access {
    /// Returns whether the client may change sessions and answer questions.
    pub(crate) fn may_write(&self) -> bool {
        *self != Self::ReadOnly
    }

    /// Checks a message by its method and parameters, of whichever protocol version.
    fn check(&self, method: &str, params: Option<&RawValue>) -> HandlerResult<()> {
        self.check_for(method, || params.and_then(session))
    }

    /// Checks a message by its method and session.
    pub(crate) fn check_for<'a>(
        &self,
        method: &str,
        session: impl FnOnce() -> Option<Cow<'a, str>>,
    ) -> HandlerResult<()> {
        // The end of a request, which is the client's own.
        let is_own = method.starts_with("$/");
        let permitted = match self {
            Self::Full => true,
            Self::Session(own) => match method {
                // The list contains no other session.
                "initialize" | "authenticate" | "auth/login" | "session/list" => true,
                "session/fork" => false,
                _ => is_own || session().is_some_and(|id| id == own.as_str()),
            },
            Self::ReadOnly => {
                is_own
                    || matches!(
                        method,
                        "initialize"
                            | "session/list"
                            | "session/load"
                            | "session/resume"
                            | "_acp-sdk/session/resume"
                            | "_acp-sdk/session/state"
                            | "_acp-sdk/session/prompt_result"
                    )
            }
        };
        if permitted {
            return Ok(());
        }
        let reason = match self {
            Self::Session(own) => {
                format!("the token does not permit {method}: it is for session {own} only")
            }
            _ => format!("the token does not permit {method}: it is for reading only"),
        };
        Err(HandlerError::new(ErrorCode::INVALID_REQUEST, reason))
    }
}

/// Returns the session that the parameters of a message name.
pub(crate) fn session(params: &RawValue) -> Option<Cow<'_, str>> {
    #[derive(Deserialize)]
    struct Params<'a> {
        #[serde(borrow, rename = "sessionId")]
        session: Cow<'a, str>,
    }
    let params: Params<'_> = serde_json::from_str(params.get()).ok()?;
    Some(params.session)
}

/// Refuses what the client may not do.
impl Layer for Access {
    fn layer(&self, inner: Arc<dyn Service>) -> Arc<dyn Service> {
        let access = self.clone();
        Arc::new(Restricted { inner, access })
    }
}

struct Restricted {
    inner: Arc<dyn Service>,
    access: Access,
}

impl Service for Restricted {
    fn request(&self, request: IncomingRequest<'_>) -> HandlerFuture {
        match self.access.check(request.method(), request.params()) {
            Ok(()) => self.inner.request(request),
            Err(error) => request.refuse(error),
        }
    }

    fn notification(&self, notification: IncomingNotification<'_>) -> HandlerFuture {
        let checked = self
            .access
            .check(notification.method(), notification.params());
        match checked {
            Ok(()) => self.inner.notification(notification),
            Err(error) => notification.ignore(&error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn permits(access: &Access, method: &str, params: &str) -> bool {
        let params = RawValue::from_string(params.to_owned()).unwrap();
        access.check(method, Some(&params)).is_ok()
    }

    #[test]
    fn a_session_is_permitted_by_its_parameter() {
        let own = Access::Session("s".into());
        for (method, params, expected) in [
            ("initialize", "{}", true),
            ("session/list", "{}", true),
            ("session/new", "{}", false),
            ("session/prompt", r#"{"sessionId":"s"}"#, true),
            ("session/prompt", r#"{"sessionId":"\u0073"}"#, true),
            ("session/prompt", r#"{"sessionId":"t"}"#, false),
            // Two members: neither of them counts.
            (
                "session/prompt",
                r#"{"sessionId":"s","sessionId":"t"}"#,
                false,
            ),
            ("session/prompt", r#"{"sessionId":["s"]}"#, false),
            ("session/prompt", "[]", false),
            ("session/fork", r#"{"sessionId":"s"}"#, false),
            ("logout", "{}", false),
            ("_example.com/anything", "{}", false),
            ("_example.com/anything", r#"{"sessionId":"s"}"#, true),
            ("$/cancel_request", r#"{"requestId":1}"#, true),
        ] {
            assert_eq!(permits(&own, method, params), expected, "{method} {params}");
        }
        assert!(own.check("session/prompt", None).is_err());
    }

    #[test]
    fn reading_is_permitted_by_method() {
        for (method, expected) in [
            ("initialize", true),
            ("session/list", true),
            ("session/load", true),
            ("session/resume", true),
            ("_acp-sdk/session/resume", true),
            ("_acp-sdk/session/state", true),
            ("_acp-sdk/session/prompt_result", true),
            ("$/cancel_request", true),
            ("session/new", false),
            ("session/prompt", false),
            ("session/cancel", false),
            ("session/close", false),
            ("session/delete", false),
            ("session/fork", false),
            ("session/set_mode", false),
            ("session/set_config_option", false),
            ("authenticate", false),
            ("auth/login", false),
            ("auth/logout", false),
            ("logout", false),
            ("_example.com/anything", false),
        ] {
            let params = r#"{"sessionId":"s"}"#;
            assert_eq!(
                permits(&Access::ReadOnly, method, params),
                expected,
                "{method}"
            );
            assert!(permits(&Access::Full, method, params));
        }
    }
}
