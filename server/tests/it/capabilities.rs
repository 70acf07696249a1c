//! What the client does not offer is not used, and the agent says so in words.

use acp_sdk::v1::*;
use serde_json::json;

use crate::editor::{Desk, Editor, everything};

#[tokio::test]
async fn nothing_is_asked_of_a_client_that_offers_nothing() {
    let desk = Desk::with(Editor::default(), ClientCapabilities::new()).await;
    let cases = [
        ("read /w/a", "fs.readTextFile"),
        ("write /w/a b", "fs.writeTextFile"),
        ("terminal echo", "terminal"),
        ("elicit form", "elicitation.form"),
        ("elicit url", "elicitation.url"),
        ("notice", "session.notices"),
        ("compact", "session.compaction"),
    ];
    for (said, missing) in cases {
        assert_eq!(
            desk.prompt(said).await.unwrap(),
            StopReason::EndTurn,
            "{said}"
        );
        let log = desk.editor.take();
        assert_eq!(log.len(), 1, "{said}: {log:?}");
        let words = log[0]["params"]["update"]["content"]["text"]
            .as_str()
            .unwrap();
        assert!(words.contains(missing), "{said}: {words}");
    }
}

#[tokio::test]
async fn the_tool_call_does_without_a_terminal() {
    let desk = Desk::with(Editor::default(), ClientCapabilities::new()).await;
    desk.prompt("tool").await.unwrap();
    assert_eq!(
        desk.editor.told(),
        [
            "tool_call pending",
            "tool_call_update in_progress",
            "tool_call_update",
            "tool_call_update",
            "tool_call_update completed"
        ]
    );
}

#[tokio::test]
async fn boolean_options_are_for_clients_that_know_them() {
    for (offered, expected) in [(ClientCapabilities::new(), false), (everything(), true)] {
        let desk = Desk::with(Editor::default(), offered).await;
        let request = NewSessionRequest::new("/w", vec![]);
        let created = desk.agent.new_session(request).await.unwrap();
        desk.prompt("config").await.unwrap();
        let updated = desk.editor.take();
        let model = SetSessionConfigOptionRequest::new(
            desk.session.clone(),
            "model",
            SessionConfigOptionValueValueId::new("large"),
        );
        let set = desk.agent.set_session_config_option(model).await.unwrap();
        let loaded = desk.load().await.unwrap();
        for options in [
            json!(created.config_options),
            updated[0]["params"]["update"]["configOptions"].clone(),
            json!(set.config_options),
            json!(loaded.config_options),
        ] {
            assert!(
                options
                    .as_array()
                    .is_some_and(|options| !options.is_empty())
            );
            assert_eq!(
                options.to_string().contains("boolean"),
                expected,
                "{options}"
            );
        }
    }
}

#[tokio::test]
async fn half_an_offer_is_half_used() {
    let offered = json!({ "fs": { "readTextFile": true }, "elicitation": { "url": {} } });
    let offered: ClientCapabilities = serde_json::from_value(offered).unwrap();
    let desk = Desk::with(Editor::default(), offered).await;
    for (said, first) in [
        ("read /w/a", "fs/read_text_file"),
        ("write /w/a b", "agent_message_chunk"),
        ("elicit form", "agent_message_chunk"),
        ("elicit url", "elicitation/create"),
    ] {
        desk.prompt(said).await.unwrap();
        let told = desk.editor.told();
        assert!(told[0].starts_with(first), "{said}: {told:?}");
    }
}
