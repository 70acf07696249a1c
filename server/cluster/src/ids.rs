//! Ids of requests that nodes send to a client: those of several nodes may be the same.

use std::collections::HashMap;

use acp_client::internal::Envelope;
use acp_client::internal::message::replace;
use bytes::Bytes;

/// The maximum number of requests of other nodes that the client has not answered.
const MOST: usize = 10_000;

/// The start of an id that stands for that of another node, as JSON.
const PREFIX: &str = "\"node-";

/// The requests of other nodes that the client has not answered.
#[derive(Debug, Default)]
pub(crate) struct NodeRequests {
    last: u64,
    /// By the id that the client knows, as JSON.
    open: HashMap<Box<str>, NodeRequest>,
}

/// A request of another node.
#[derive(Debug)]
pub(crate) struct NodeRequest {
    pub(crate) session: Box<str>,
    /// Its id there, as JSON.
    pub(crate) id: Box<str>,
}

impl NodeRequests {
    /// Returns the request with an id that is unique for the client; `None` if the client leaves too
    /// many unanswered.
    pub(crate) fn add(&mut self, session: &str, id: &str, message: &Bytes) -> Option<Bytes> {
        if self.open.len() >= MOST {
            return None;
        }
        self.last += 1;
        let own = format!("{PREFIX}{}\"", self.last);
        let renamed = replace(message, id, &own);
        let request = NodeRequest {
            session: session.into(),
            id: id.into(),
        };
        self.open.insert(own.into(), request);
        Some(renamed)
    }

    /// Returns the request that the client answers, and removes it; `None` if it is not one of another
    /// node.
    pub(crate) fn answered(&mut self, id: &str) -> Option<NodeRequest> {
        self.open.remove(id)
    }

    /// Returns whether no other id than one of these looks like this.
    pub(crate) fn is_ours(id: &str) -> bool {
        id.starts_with(PREFIX)
    }

    /// Returns the cancellation of a session's request with the id that the client knows; `None` if it is
    /// answered.
    pub(crate) fn cancelled(
        &mut self,
        session: &str,
        envelope: &Envelope<'_>,
        message: &Bytes,
    ) -> Option<Bytes> {
        let id = envelope.cancelled_request()?;
        let mut open = self.open.iter();
        let (own, _) =
            open.find(|(_, request)| *request.session == *session && *request.id == *id)?;
        Some(replace(message, id, own))
    }

    /// Forgets the requests of a session.
    pub(crate) fn forget(&mut self, session: &str) {
        self.open.retain(|_, request| *request.session != *session);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(text: &'static str) -> Bytes {
        Bytes::from_static(text.as_bytes())
    }

    #[test]
    fn requests_of_two_nodes_have_ids_of_their_own() {
        let mut requests = NodeRequests::default();
        let ask = message(
            r#"{"jsonrpc":"2.0","id":1,"method":"session/request_permission","params":{"id":1}}"#,
        );
        let envelope = Envelope::read(&ask);
        let id = envelope.id().unwrap();
        let first = requests.add("a", id, &ask).unwrap();
        let second = requests.add("b", id, &ask).unwrap();
        assert_eq!(
            first,
            r#"{"jsonrpc":"2.0","id":"node-1","method":"session/request_permission","params":{"id":1}}"#
        );
        assert_ne!(first, second);

        let cancel =
            message(r#"{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":1}}"#);
        let envelope = Envelope::read(&cancel);
        let renamed = requests.cancelled("b", &envelope, &cancel).unwrap();
        assert!(
            renamed.ends_with(br#"{"requestId":"node-2"}}"#),
            "{renamed:?}"
        );

        let answered = requests.answered("\"node-2\"").unwrap();
        assert_eq!((&*answered.session, &*answered.id), ("b", "1"));
        assert!(requests.answered("\"node-2\"").is_none(), "answered twice");
        assert!(requests.cancelled("b", &envelope, &cancel).is_none());
        requests.forget("a");
        assert!(requests.answered("\"node-1\"").is_none());
    }
}
