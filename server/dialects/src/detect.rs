//! The protocol of a client, by its first message and the framing of that.

use acp_sdk::v1;
use acp_sdk::{Framing, Json};
use serde::Deserialize;

use crate::Dialect;
use crate::chimera;
use crate::otter_acp::{self, InitializeRequest, ProtocolVersion};
use crate::otter_http_acp;

/// What distinguishes the protocols: methods, and the params of `initialize`.
#[derive(Deserialize)]
struct First {
    method: String,
    params: Option<Json>,
}

pub(crate) fn detect(framing: Framing, text: &[u8]) -> Option<Dialect> {
    if framing == Framing::ContentLength {
        return Some(Dialect::OpenOxide);
    }
    let First { method, params } = serde_json::from_slice(text).ok()?;
    if method == "initialize" {
        let params = params.as_ref().map_or("{}", Json::get);
        let request = acp_sdk::json::from_str::<InitializeRequest>(params);
        return match request.unwrap_or_default().protocol_version {
            Some(ProtocolVersion::Integer(_)) => None,
            _ => Some(Dialect::OtterAcp),
        };
    }
    // Of a method that several protocols have, ACP comes first.
    let tables = [
        (&v1::AGENT_METHODS, None),
        (&otter_acp::AGENT_METHODS, Some(Dialect::OtterAcp)),
        (&chimera::AGENT_METHODS, Some(Dialect::Chimera)),
        (&otter_http_acp::AGENT_METHODS, Some(Dialect::OtterHttpAcp)),
    ];
    let mut known = tables
        .iter()
        .filter(|(table, _)| table.get(&method).is_some());
    known.next().and_then(|(_, dialect)| *dialect)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_message_tells_the_protocol() {
        let initialize = |params: &str| {
            format!(r#"{{"jsonrpc":"2.0","id":1,"method":"initialize","params":{params}}}"#)
        };
        let method = |name: &str| format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{name}"}}"#);
        let otter = Some(Dialect::OtterAcp);
        for (first, expected) in [
            (initialize(r#"{"protocolVersion":1}"#), None),
            (
                initialize(r#"{"protocolVersion":2,"clientCapabilities":{}}"#),
                None,
            ),
            (initialize("{}"), otter),
            (initialize("null"), otter),
            (method("initialize"), otter),
            (initialize(r#"{"protocolVersion":"0.1"}"#), otter),
            (method("session/message"), otter),
            (method("session/create"), Some(Dialect::Chimera)),
            (method("session/sendMessage"), Some(Dialect::Chimera)),
            (method("session/turn"), Some(Dialect::OtterHttpAcp)),
            (method("session/get"), Some(Dialect::OtterHttpAcp)),
            (method("session/fork"), None),
            (method("session/prompt"), None),
            (method("session/new"), None),
            (method("no/such"), None),
            ("no JSON".to_owned(), None),
            ("[]".to_owned(), None),
        ] {
            for framing in [Framing::Lines, Framing::Auto] {
                let found = Dialect::detect(framing, first.as_bytes());
                assert_eq!(found, expected, "{first}");
            }
            let framed = Dialect::detect(Framing::ContentLength, first.as_bytes());
            assert_eq!(framed, Some(Dialect::OpenOxide), "{first}");
        }
    }
}
