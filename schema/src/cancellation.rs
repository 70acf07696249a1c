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
}

impl Document {
    /// Returns the notification that is marked with `x-cancels`, `None` when none is.
    ///
    /// # Errors
    /// When two definitions are marked, or a marked one is not the params of a notification with
    /// the named required member.
    pub fn cancellation(&self) -> Result<Option<CancellationInfo>, Error> {
        let mut found: Option<(&str, CancellationInfo)> = None;
        for (name, schema) in self.defs() {
            let Some(keyword) = schema.get("x-cancels") else {
                continue;
            };
            let at = format!("/$defs/{}/x-cancels", escaped(name));
            if let Some((other, _)) = found {
                let message = format!("`{other}` cancels requests already; remove one of the two");
                return Err(self.invalid(&at, message));
            }
            let is_required = |member: &&str| {
                let required = schema.get("required").and_then(Value::as_array);
                required.is_some_and(|required| required.iter().any(|one| one == member))
            };
            let Some(member) = keyword.as_str().filter(is_required) else {
                let message = "not the name of a required member, which holds the request's id";
                return Err(self.invalid(&at, message));
            };
            let method = schema.get("x-method").and_then(Value::as_str);
            let is_notification = !name.ends_with("Request") && !name.ends_with("Response");
            let Some(method) = method.filter(|_| is_notification) else {
                let message = "not the params of a notification; mark one with `x-method`";
                return Err(self.invalid(&at, message));
            };
            let info = CancellationInfo {
                method: method.to_owned(),
                request_id: member.to_owned(),
            };
            found = Some((name, info));
        }
        Ok(found.map(|(_, info)| info))
    }
}
