//! How a protocol cancels requests, from the keyword `x-cancels`.

use serde_json::Value;

use crate::walk::escaped;
use crate::{Document, Error};

/// The notification that cancels a request of its sender.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CancellationInfo {
    /// The name on the wire.
    pub method: String,
    /// The member of the params with the id of the request.
    pub request_id: String,
    /// The notifications that cancel requests of a session.
    pub of_sessions: Vec<SessionCancellationInfo>,
}

/// A notification that cancels the requests of its sender in one session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionCancellationInfo {
    /// The name on the wire.
    pub method: String,
    /// The methods of the requests.
    pub requests: Vec<String>,
}

/// The member of params that names the session.
const SESSION: &str = "sessionId";

impl Document {
    /// Returns the notification that is marked with `x-cancels` and the name of a member, `None` when
    /// none is, with those that are marked with a list of methods.
    ///
    /// # Errors
    /// When two definitions name a member, or a marked one is not the params of a notification with
    /// the named required member, or with the member `sessionId` and requests of the document.
    pub fn cancellation(&self) -> Result<Option<CancellationInfo>, Error> {
        let mut found: Option<(&str, CancellationInfo)> = None;
        let mut of_sessions = Vec::new();
        for (name, schema) in self.defs() {
            let Some(keyword) = schema.get("x-cancels") else {
                continue;
            };
            let at = format!("/$defs/{}/x-cancels", escaped(name));
            let is_required = |member: &str| {
                let required = schema.get("required").and_then(Value::as_array);
                required.is_some_and(|required| required.iter().any(|one| one == member))
            };
            let method = schema.get("x-method").and_then(Value::as_str);
            let is_notification = !name.ends_with("Request") && !name.ends_with("Response");
            let Some(method) = method.filter(|_| is_notification) else {
                let message = "not the params of a notification; mark one with `x-method`";
                return Err(self.invalid(&at, message));
            };
            if let Value::Array(requests) = keyword {
                let requests: Option<Vec<String>> = requests
                    .iter()
                    .map(|request| request.as_str().filter(|name| self.has_request(name)))
                    .map(|request| request.map(ToOwned::to_owned))
                    .collect();
                let Some(requests) = requests.filter(|_| is_required(SESSION)) else {
                    let message = "not a list of requests of the document, or without a required \
                                   member `sessionId`";
                    return Err(self.invalid(&at, message));
                };
                let method = method.to_owned();
                of_sessions.push(SessionCancellationInfo { method, requests });
                continue;
            }
            if let Some((other, _)) = found {
                let message = format!("`{other}` cancels requests already; remove one of the two");
                return Err(self.invalid(&at, message));
            }
            let Some(member) = keyword.as_str().filter(|member| is_required(member)) else {
                let message = "not the name of a required member, which holds the request's id, nor \
                               a list of methods";
                return Err(self.invalid(&at, message));
            };
            let info = CancellationInfo {
                method: method.to_owned(),
                request_id: member.to_owned(),
                of_sessions: Vec::new(),
            };
            found = Some((name, info));
        }
        Ok(found.map(|(_, info)| CancellationInfo {
            of_sessions,
            ..info
        }))
    }

    fn has_request(&self, method: &str) -> bool {
        self.defs().any(|(name, schema)| {
            name.ends_with("Request") && schema.get("x-method").is_some_and(|one| one == method)
        })
    }
}
