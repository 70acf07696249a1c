//! Which methods of the documents the server answers.

use acp_reference_agent::Reference;
use acp_schema::{Document, EXTENSIONS, Protocol, Side};
use acp_sdk::ErrorCode;
use serde_json::json;

use super::*;

/// Requests that the server does not answer: proposals.
const UNANSWERED: [&str; 8] = [
    "auth/status",
    "providers/disable",
    "providers/list",
    "providers/set",
    "session/archive",
    "session/set_title",
    "session/status",
    "session/unarchive",
];

/// A method that is added to a document must be added to the server, or to the list above. The
/// server declares the capabilities of all methods that it answers, and no others.
#[tokio::test]
async fn every_request_of_the_documents_is_answered_and_declared_or_listed() {
    let document = Document::v1_unstable()
        .and_then(|document| document.overlay("extensions.json", EXTENSIONS));
    let protocol = Protocol::from_document(&document.unwrap()).unwrap();
    let server = Server::builder(Reference);
    #[cfg(feature = "unstable")]
    let server = server.announce_fork(true);
    let server = server.build();
    let guest = Guest::new(&server).await;
    // Valid for all methods that are answered. An error about params is no answer: it precedes the
    // one about a method without a handler.
    let params = json!({
        "protocolVersion": 1, "methodId": "none", "sessionId": "none", "cwd": "/w", "prompt": [],
        "mcpServers": [], "modeId": "m", "configId": "c", "value": "v", "promptId": "p",
    });
    let refusals = [ErrorCode::METHOD_NOT_FOUND, ErrorCode::INVALID_PARAMS];
    let initialized = guest.ext("initialize", params.clone()).await.unwrap();
    let capabilities = &initialized["agentCapabilities"];
    let declares = |pointer| {
        let value = capabilities.pointer(pointer);
        value.is_some_and(|value| !value.is_null() && *value != json!(false))
    };
    let mut unanswered = Vec::new();
    for method in protocol.methods() {
        if !method.side.includes(Side::AGENT) || !method.kind.is_request() {
            continue;
        }
        // Each by a client of its own, for one of them ends the login.
        let guest = Guest::new(&server).await;
        let answer = guest.ext(&method.name, params.clone()).await;
        let code = answer.err().and_then(|error| error.code());
        let is_answered = !code.is_some_and(|code| refusals.contains(&code));
        if !is_answered {
            unanswered.push(method.name.as_str());
        }
        let facts = method.facts.as_ref();
        if let Some(pointer) = facts.and_then(|facts| facts.capability.as_deref()) {
            assert_eq!(declares(pointer), is_answered, "{}: {pointer}", method.name);
        }
    }
    unanswered.sort_unstable();
    assert_eq!(unanswered, UNANSWERED);
}
