//! What a client may do, checked before its messages are handled.

use std::borrow::Cow;
use std::sync::Arc;

use acp_sdk::facts::{AccessRight, MethodTable, Scope};
use acp_sdk::service::{HandlerFuture, IncomingNotification, IncomingRequest, Layer, Service};
use acp_sdk::v1::{ErrorCode, SessionId};
use acp_sdk::{HandlerError, HandlerResult};
use serde_json::value::RawValue;

use super::{Client, ServerConnection};

/// What a client may do.
///
/// An extension of every request that `protect` of `acp-server-remote` lets through.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Access {
    /// Everything.
    Full,
    /// Everything in one session, and nothing elsewhere. Copying the session is elsewhere.
    /// Extension methods that are not known must name the session in `sessionId`.
    Session(SessionId),
    /// Reading, in every session. The client is sent what happens, and is asked nothing. It opens no
    /// session, and none stays open for it: it joins those that other clients use.
    ReadOnly,
}

impl Access {
    /// Returns whether the client may change sessions and answer questions.
    pub fn may_write(&self) -> bool {
        *self != Self::ReadOnly
    }

    /// Checks a message by its method, the facts of the methods of its protocol version, and its
    /// session.
    ///
    /// A session's token also permits extension methods that the documents do not name, with its
    /// session. Other unknown methods need the owner: nobody knows what they do with the session.
    pub fn check<'a>(
        &self,
        methods: &MethodTable,
        method: &str,
        session: impl FnOnce() -> Option<Cow<'a, str>>,
    ) -> HandlerResult<()> {
        let permitted = match (self, methods.get(method)) {
            (Self::Full, _) => true,
            // Of the connection, such as the end of a request, which is the client's own.
            (_, None) if method.starts_with("$/") => true,
            (Self::Session(own), facts) => {
                let in_own = || session().is_some_and(|id| id == own.as_str());
                match facts {
                    Some(facts) if facts.access > AccessRight::Session => false,
                    Some(facts) => facts.scope == Scope::Connection || in_own(),
                    None => method.starts_with('_') && in_own(),
                }
            }
            (Self::ReadOnly, facts) => {
                facts.is_some_and(|facts| facts.access == AccessRight::Reader)
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

/// Refuses what the client of a connection may not do.
pub(crate) struct Restriction(Arc<Client>);

impl Restriction {
    pub(crate) fn of(connection: &ServerConnection) -> Self {
        Self(connection.client.clone())
    }
}

impl Layer for Restriction {
    fn layer(&self, inner: Arc<dyn Service>) -> Arc<dyn Service> {
        let client = self.0.clone();
        Arc::new(Restricted { inner, client })
    }
}

struct Restricted {
    inner: Arc<dyn Service>,
    client: Arc<Client>,
}

impl Restricted {
    fn check(&self, method: &str, params: Option<&RawValue>) -> HandlerResult<()> {
        let (access, methods) = (self.client.access(), self.client.methods());
        access.check(methods, method, || {
            params.and_then(acp_sdk::envelope::session)
        })
    }
}

impl Service for Restricted {
    fn request(&self, request: IncomingRequest<'_>) -> HandlerFuture {
        match self.check(request.method(), request.params()) {
            Ok(()) => self.inner.request(request),
            Err(error) => request.refuse(error),
        }
    }

    fn notification(&self, notification: IncomingNotification<'_>) -> HandlerFuture {
        match self.check(notification.method(), notification.params()) {
            Ok(()) => self.inner.notification(notification),
            Err(error) => notification.ignore(&error),
        }
    }
}

#[cfg(test)]
mod tests {
    use acp_sdk::facts::Attachment;
    use acp_sdk::v1;

    use super::*;

    fn permits(access: &Access, method: &str, params: &str) -> bool {
        let params = RawValue::from_string(params.to_owned()).unwrap();
        let checked = access.check(&v1::AGENT_METHODS, method, || {
            acp_sdk::envelope::session(&params)
        });
        checked.is_ok()
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
            // Of version 2, a proposal, and what is in no document.
            ("auth/login", "{}", false),
            ("session/set_title", r#"{"sessionId":"s"}"#, true),
            ("session/copy", r#"{"sessionId":"s"}"#, false),
            ("logout", "{}", false),
            ("_example.com/anything", "{}", false),
            ("_example.com/anything", r#"{"sessionId":"s"}"#, true),
            ("$/cancel_request", r#"{"requestId":1}"#, true),
        ] {
            assert_eq!(permits(&own, method, params), expected, "{method} {params}");
        }
        let without = own.check(&v1::AGENT_METHODS, "session/prompt", || None);
        assert!(without.is_err());
    }

    /// Whatever copies a session makes another one, which a session's token does not permit.
    #[test]
    fn a_session_token_permits_no_method_that_creates_a_session() {
        let own = Access::Session("s".into());
        for table in [&v1::AGENT_METHODS, &acp_sdk::v2::AGENT_METHODS] {
            let creating = table.iter().filter(|row| row.joins == Attachment::Creates);
            let mut count = 0;
            for row in creating {
                let checked = own.check(table, row.name, || Some("s".into()));
                assert!(checked.is_err(), "{}", row.name);
                count += 1;
            }
            assert_eq!(count, 2);
        }
    }

    /// The same name can mean something else in another version.
    #[test]
    fn methods_are_those_of_the_version() {
        let own = Access::Session("s".into());
        let permits = |table, method| own.check(table, method, || None).is_ok();
        assert!(permits(&v1::AGENT_METHODS, "authenticate"));
        assert!(!permits(&acp_sdk::v2::AGENT_METHODS, "authenticate"));
        assert!(permits(&acp_sdk::v2::AGENT_METHODS, "auth/login"));
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
            ("_acp-sdk/session/undo", false),
            ("_acp-sdk/session/redo", false),
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
