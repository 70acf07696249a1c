//! Sets the values again that were in force before a connection was lost.

use serde_json::Value;

use super::settings::{Reported, Setting};
use super::*;

impl Resume {
    /// Requests the former values where the agent reports others in the result that continues a
    /// session. Messages of the client wait until they are set.
    pub(super) fn restore(&mut self, id: &str, envelope: &Envelope<'_>, out: &mut Outgoing) {
        for reported in Reported::all(&envelope.value()) {
            let Some(session) = self.sessions.get_mut(id) else {
                return;
            };
            let Some((request, former)) = session.settings.restore(id, &reported) else {
                session.settings.report([reported]);
                continue;
            };
            let layer_id = self.layer_id();
            if let Some(request) = with_id(request.to_string().as_bytes(), &layer_id) {
                out.to_agent.push_back(request);
                let request = LayerRequest::Restore(id.to_owned(), reported, former);
                self.layer_requests.insert(layer_id, request);
            }
        }
        self.release_if_restored(id, out);
    }

    /// Handles the response to a request that sets a former value.
    pub(super) fn restored(
        &mut self,
        id: &str,
        reported: Reported,
        former: &Value,
        envelope: &Envelope<'_>,
        out: &mut Outgoing,
    ) {
        if envelope.error.is_some() && reported.never_asks() {
            self.layer_requests
                .retain(|_, other| !other.is_restore_of(id));
            let reason = format!(
                "the agent came back in the mode {}, in which it does not ask for permission, and \
                 refused {former}",
                reported.value
            );
            return self.lose(id, &reason, out);
        }
        if envelope.error.is_some() {
            // The client was notified of the value that is in force now.
            if let Some(session) = self.sessions.get_mut(id) {
                session.settings.report([reported]);
            }
        } else {
            let result = match reported.setting {
                Setting::Mode => json!({"modes": {"currentModeId": former}}),
                _ => envelope.value(),
            };
            if let Some(session) = self.sessions.get_mut(id)
                && reported.setting != Setting::Mode
            {
                session.settings.report(Reported::all(&result));
            }
            out.to_client.extend(messages::settings(id, &result));
        }
        self.release_if_restored(id, out);
    }

    /// Sends what was lost of a session again, then the messages that wait for it, unless a former value is still to be set.
    fn release_if_restored(&mut self, id: &str, out: &mut Outgoing) {
        let mut requests = self.layer_requests.values();
        if requests.any(|request| request.is_restore_of(id)) {
            return self.continuing.begin(id);
        }
        self.repeat(id, out);
        for message in self.continuing.end(id) {
            let sent = self.sent(message);
            out.to_agent.extend(sent);
        }
    }
}

impl LayerRequest {
    fn is_restore_of(&self, id: &str) -> bool {
        matches!(self, Self::Restore(session, ..) if session == id)
    }
}
