//! The extension methods have the form that their document gives them.

use acp_schema::{Checked, Document, EXTENSIONS, Side, Validator};
use acp_sdk::v1::AGENT_METHODS;
use acp_server::Reference;
use serde_json::json;

use super::*;

fn validator() -> Validator {
    let document = Document::v1()
        .unwrap()
        .overlay("extensions.json", EXTENSIONS);
    Validator::new(&document.unwrap()).unwrap()
}

#[tokio::test]
async fn every_extension_method_is_answered_as_documented() {
    let server = Server::new(Reference);
    let editor = Editor {
        permission: Permission::WhenNotified,
        ..Editor::default()
    };
    let mut offered = serde_json::to_value(everything()).unwrap();
    offered["_meta"] = json!({ "acp-sdk": { "sessionState": true } });
    let guest = Guest::offering(&server, editor, serde_json::from_value(offered).unwrap()).await;
    let session = guest.create().await;
    let prompt = json!({
        "sessionId": session,
        "prompt": [{ "type": "text", "text": "permission" }],
        "_meta": { "acp-sdk": { "promptId": "first" } },
    });
    let prompt: PromptRequest = serde_json::from_value(prompt).unwrap();
    let agent = guest.agent.clone();
    let turn = tokio::spawn(async move { agent.prompt(prompt).await });
    guest.editor.until("session/request_permission").await;

    let validator = validator();
    let methods = AGENT_METHODS.iter().map(|facts| facts.name);
    let ours: Vec<&str> = methods
        .filter(|name| name.starts_with("_acp-sdk/"))
        .collect();
    assert_eq!(ours.len(), 3);
    // With an open question first, and at last for the prompt's result, which waits for its end.
    let (last, others): (Vec<&str>, Vec<&str>) = ours
        .into_iter()
        .partition(|name| name.ends_with("prompt_result"));
    for method in others.into_iter().chain(last) {
        if method.ends_with("prompt_result") {
            guest.editor.go_on.notify_one();
        }
        let params = json!({ "sessionId": session, "sinceEventId": 0, "promptId": "first" });
        let answer = guest.ext(method, params).await.unwrap();
        let checked = validator.result(Side::AGENT, method, &answer);
        assert_eq!(checked, Checked::Valid, "{method}: {answer}");
    }
    turn.await.unwrap().unwrap();
    let method = "_acp-sdk/session/state_changed";
    let log = guest.editor.log.lock().unwrap();
    let changes: Vec<_> = log
        .iter()
        .filter(|entry| entry["method"] == method)
        .collect();
    assert!(!changes.is_empty());
    for change in changes {
        let checked = validator.params(Side::CLIENT, method, &change["params"]);
        assert_eq!(checked, Checked::Valid, "{change}");
    }
}
