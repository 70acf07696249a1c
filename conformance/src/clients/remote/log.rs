//! What a client sent to the server that the suite plays.

use std::collections::BTreeMap;

use serde_json::Value;

/// Everything that a client sent, in order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Log {
    /// Its requests.
    pub requests: Vec<Asked>,
    /// The messages of its WebSocket, as text frames.
    pub messages: Vec<Value>,
    /// What was wrong with its frames.
    pub faults: Vec<String>,
    /// The payloads of its pongs.
    pub pongs: Vec<Vec<u8>>,
    /// Whether it sent a close frame.
    pub closed: bool,
}

/// A request.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Asked {
    /// Its method.
    pub method: String,
    /// Its headers, with names in lower case.
    pub headers: BTreeMap<String, String>,
    /// The message in its body; `null` if it has none.
    pub message: Value,
    /// The status of the response.
    pub status: u16,
}

impl Asked {
    /// The value of a header.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(String::as_str)
    }

    /// Whether it asks for a WebSocket, which clients may try before they use HTTP.
    #[must_use]
    pub fn is_upgrade(&self) -> bool {
        let upgrade = self.header("upgrade");
        upgrade.is_some_and(|to| to.eq_ignore_ascii_case("websocket"))
    }

    /// The method of the message.
    #[must_use]
    pub fn calls(&self) -> Option<&str> {
        self.message["method"].as_str()
    }

    /// The request in one line.
    #[must_use]
    pub fn describe(&self) -> String {
        let about = match (self.calls(), self.header("acp-session-id")) {
            (Some(method), _) => format!(" of {method}"),
            (None, _) if self.message.is_object() => " of an answer".to_owned(),
            (None, Some(_)) if self.method == "GET" => " of the stream of the session".to_owned(),
            (None, None) if self.method == "GET" => " of the stream of the connection".to_owned(),
            _ => String::new(),
        };
        format!("{}{about}", self.method)
    }
}
