//! What the citation of a requirement stands for: a page and a heading, or a definition of a schema.

use super::{PINNED, schema};

/// Where the pages of the protocol stand.
const PROTOCOL: &str = "https://agentclientprotocol.com/protocol";

/// Where the proposal of the remote transport stands.
const TRANSPORT: &str = "https://agentclientprotocol.com/rfds/streamable-http-websocket-transport";

/// A page of another standard. It is not read, and the quotes of it are not verified.
struct Other {
    /// The name before the `#` of a citation.
    name: &'static str,
    /// The address without the anchor.
    address: &'static str,
    /// The anchors that are cited.
    anchors: &'static [&'static str],
}

const OTHERS: &[Other] = &[
    Other {
        name: "jsonrpc",
        address: "https://www.jsonrpc.org/specification",
        anchors: &[
            "conventions",
            "request_object",
            "notification",
            "response_object",
            "error_object",
            "batch",
        ],
    },
    Other {
        name: "http",
        address: "https://www.rfc-editor.org/rfc/rfc9110",
        anchors: &[
            "section-7.4",
            "section-8.3.1",
            "section-9.1",
            "section-11.4",
            "section-12.5.1",
            "section-15.5.14",
        ],
    },
    Other {
        name: "http-fields",
        address: "https://www.rfc-editor.org/rfc/rfc6585",
        anchors: &["section-5"],
    },
    Other {
        name: "event-streams",
        address: "https://html.spec.whatwg.org/multipage/server-sent-events.html",
        anchors: &[
            "parsing-an-event-stream",
            "the-last-event-id-header",
            "authoring-notes",
        ],
    },
    Other {
        name: "websocket",
        address: "https://www.rfc-editor.org/rfc/rfc6455",
        anchors: &[
            "section-4.2.2",
            "section-5.1",
            "section-5.2",
            "section-5.4",
            "section-5.5",
            "section-5.5.1",
            "section-5.5.2",
            "section-7.3",
            "section-8.1",
            "section-10.2",
            "section-10.4",
        ],
    },
];

/// Whether no facts are known of a page.
pub(super) fn is_other(page: &str) -> bool {
    OTHERS.iter().any(|other| other.name == page)
}

/// Splits a citation into the page whose facts are kept, and the anchor. A definition of a schema is
/// a page of its own.
pub(super) fn parts(cite: &str) -> Option<(&str, &str)> {
    let (page, anchor) = cite.split_once('#')?;
    Some((if schema::is_schema(page) { cite } else { page }, anchor))
}

/// Returns the address that a citation stands for; `None` if the page or its heading does not exist.
#[must_use]
pub fn address(cite: &str) -> Option<String> {
    let (page, anchor) = cite.split_once('#')?;
    if let Some(other) = OTHERS.iter().find(|other| other.name == page) {
        let known = other.anchors.contains(&anchor);
        return known.then(|| format!("{}#{anchor}", other.address));
    }
    let path = match page.starts_with("v2/") {
        true => page.to_owned(),
        false => format!("v1/{page}"),
    };
    if !PINNED.has_anchor(page, anchor) {
        return None;
    }
    Some(match page {
        "remote-transport" => format!("{TRANSPORT}#{anchor}"),
        _ => format!("{PROTOCOL}/{path}#{anchor}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_citation_names_a_heading_that_exists() {
        let of = |cite| address(cite).unwrap_or_default();
        let stdio = "https://agentclientprotocol.com/protocol/v1/transports#stdio";
        assert_eq!(of("transports#stdio"), stdio);
        assert_eq!(of("v2/transports#stdio"), stdio.replace("v1", "v2"));
        assert_eq!(
            of("v2/schema#errorcode"),
            "https://agentclientprotocol.com/protocol/v2/schema#errorcode"
        );
        assert_eq!(
            of("jsonrpc#batch"),
            "https://www.jsonrpc.org/specification#batch"
        );
        assert_eq!(
            of("remote-transport#v1"),
            "https://agentclientprotocol.com/rfds/streamable-http-websocket-transport#v1"
        );
        for none in [
            "transports#nowhere",
            "nowhere#stdio",
            "jsonrpc#stdio",
            "v2/schema#nowhere",
            "stdio",
        ] {
            assert_eq!(address(none), None, "{none}");
        }
    }
}
