//! Every word of a prompt, with a client that offers everything.

use std::collections::BTreeSet;

use acp_sdk::extensions::{AgentHandleExt, SteerOutcome, SteerSessionRequest};
use acp_sdk::v1::*;
use serde_json::{Value, json};

use crate::editor::{Desk, Editor, Permission, everything, text};

#[tokio::test]
async fn steer_repeats_what_is_said_during_the_turn() {
    let desk = Desk::new().await;
    let turn = desk.start("steer 2");
    desk.editor.until("agent_message_chunk Say more.").await;
    for said in ["left", "right"] {
        let request = SteerSessionRequest::new(desk.session.clone(), text(said));
        let answer = desk.agent.steer_session(request).await.unwrap();
        assert_eq!(answer.outcome, SteerOutcome::Injected);
    }
    assert_eq!(turn.await.unwrap().unwrap(), StopReason::EndTurn);
    let said = "Say more.\nYou said: left\nYou said: right\n";
    assert_eq!(desk.editor.said(), said);
}

#[tokio::test]
async fn every_word_does_what_help_says() {
    let desk = Desk::new().await;
    let cases: &[(&str, &[&str])] = &[
        ("hello", &["agent_message_chunk hello"]),
        (
            "think",
            &[
                "agent_thought_chunk Let me think.",
                "agent_message_chunk I have thought.",
            ],
        ),
        ("plan", &["plan"]),
        (
            "tool",
            &[
                "tool_call pending",
                "tool_call_update in_progress",
                "tool_call_update",
                "tool_call_update",
                "terminal/create",
                "tool_call_update",
                "terminal/wait_for_exit",
                "tool_call_update completed",
                "terminal/release",
            ],
        ),
        (
            "permission",
            &[
                "tool_call pending",
                "session/request_permission",
                "tool_call_update in_progress",
                "tool_call_update completed",
                "agent_message_chunk Permission: allow",
            ],
        ),
        (
            "read /w/a",
            &["fs/read_text_file", "agent_message_chunk content of /w/a"],
        ),
        (
            "write /w/a b c",
            &["fs/write_text_file", "agent_message_chunk Wrote /w/a"],
        ),
        (
            "terminal echo hi",
            &[
                "tool_call pending",
                "tool_call_update in_progress",
                "terminal/create",
                "tool_call_update",
                "terminal/wait_for_exit",
                "terminal/output",
                "tool_call_update completed",
                "terminal/release",
                "agent_message_chunk out\nexit code 0",
            ],
        ),
        (
            "kill sleep 60",
            &[
                "tool_call pending",
                "tool_call_update in_progress",
                "terminal/create",
                "tool_call_update",
                "terminal/kill",
                "terminal/wait_for_exit",
                "terminal/output",
                "tool_call_update completed",
                "terminal/release",
                "agent_message_chunk out\nexit code 0",
            ],
        ),
        (
            "elicit form",
            &["elicitation/create", "agent_message_chunk Answer: declined"],
        ),
        (
            "elicit url",
            &["elicitation/create", "agent_message_chunk Answer: declined"],
        ),
        ("usage", &["usage_update"]),
        ("commands", &["available_commands_update"]),
        (
            "title Mine",
            &["session_info_update", "session_info_update"],
        ),
        ("mode", &["current_mode_update"]),
        ("config", &["config_option_update"]),
        ("notice", &["notice"]),
        (
            "compact",
            &[
                "compaction_update in_progress",
                "compaction_summary_chunk A summary.",
                "compaction_update completed",
                "compaction_update in_progress",
                "compaction_update failed",
            ],
        ),
        ("ping", &[]),
    ];
    for (said, expected) in cases {
        assert_eq!(
            desk.prompt(said).await.unwrap(),
            StopReason::EndTurn,
            "{said}"
        );
        assert_eq!(desk.editor.told(), *expected, "{said}");
    }
}

#[tokio::test]
async fn every_word_of_the_help_is_obeyed_and_not_echoed() {
    let words: Vec<&str> = acp_reference_agent::HELP
        .lines()
        .filter_map(|line| line.strip_prefix("  ")?.split_whitespace().next())
        .collect();
    assert!(words.len() > 20, "{words:?}");
    // `slow` takes 30 seconds, and the tests of cancellation have it.
    for word in words.into_iter().filter(|word| *word != "slow") {
        let desk = Desk::new().await;
        // Some lack what should follow, and say so.
        let _ = desk.prompt(word).await;
        assert_ne!(desk.editor.said(), word);
    }
}

#[tokio::test]
async fn a_block_of_a_later_protocol_is_told_of_and_not_echoed() {
    let desk = Desk::new().await;
    let block: ContentBlock = serde_json::from_value(json!({"type": "hologram"})).unwrap();
    let request = PromptRequest::new(desk.session.clone(), vec![block]);
    desk.agent.prompt(request).await.unwrap();
    assert_eq!(desk.editor.said(), "A block of a new kind: hologram");
    desk.load().await.unwrap();
    let replayed = desk.editor.told();
    let expected = [
        "user_message_chunk (a block of a new kind: hologram)",
        "agent_message_chunk A block of a new kind: hologram",
    ];
    assert_eq!(replayed, expected);
}

#[tokio::test]
async fn numbered_words_count_and_fail_fails() {
    let desk = Desk::new().await;
    desk.prompt("stream 100").await.unwrap();
    assert_eq!(desk.editor.take().len(), 100);
    desk.prompt("perm 3").await.unwrap();
    let asked = desk.editor.told();
    assert_eq!(
        asked
            .iter()
            .filter(|method| *method == "session/request_permission")
            .count(),
        3
    );
    let failed = desk.prompt("fail").await.unwrap_err();
    assert_eq!(failed.code(), Some(ErrorCode::INTERNAL_ERROR));
    let failed = desk.prompt("stream many").await.unwrap_err();
    assert_eq!(failed.code(), Some(ErrorCode::INVALID_PARAMS));
}

#[tokio::test]
async fn a_rejected_tool_call_fails_and_the_turn_goes_on() {
    let editor = Editor {
        permission: Permission::Last,
        ..Editor::default()
    };
    let desk = Desk::with(editor, everything()).await;
    assert_eq!(
        desk.prompt("permission").await.unwrap(),
        StopReason::EndTurn
    );
    let told = desk.editor.told();
    assert_eq!(
        told[2..],
        [
            "tool_call_update failed",
            "agent_message_chunk Permission: reject"
        ]
    );
}

#[tokio::test]
async fn the_meta_of_a_prompt_comes_back() {
    let desk = Desk::new().await;
    desk.prompt("meta").await.unwrap();
    let sent = json!({ "traceparent": "00-80e1-7a08-01", "example.com/x": [1, null] });
    let mut request = PromptRequest::new(desk.session.clone(), text("meta"));
    request.meta = Some(serde_json::from_value(sent.clone()).unwrap());
    desk.agent.prompt(request).await.unwrap();
    let log = desk.editor.take();
    assert_eq!(
        log[0]["params"]["update"]["_meta"],
        json!({ "acp-sdk": "hello" })
    );
    assert_eq!(log[1]["params"]["update"]["_meta"], sent);
}

/// Content blocks by their kind, the two kinds of resource apart.
fn kind(block: &Value) -> String {
    match block["type"].as_str().unwrap() {
        "resource" if block["resource"]["text"].is_string() => "text resource".to_owned(),
        "resource" if block["resource"]["blob"].is_string() => "blob resource".to_owned(),
        other => other.to_owned(),
    }
}

#[tokio::test]
async fn content_sends_each_kind_of_block_as_message_and_as_tool_output() {
    let desk = Desk::new().await;
    desk.prompt("content").await.unwrap();
    let (mut said, mut made) = (BTreeSet::new(), BTreeSet::new());
    for entry in desk.editor.take() {
        let update = &entry["params"]["update"];
        if update["sessionUpdate"] == "agent_message_chunk" {
            said.insert(kind(&update["content"]));
        }
        for content in update["content"].as_array().into_iter().flatten() {
            made.insert(kind(&content["content"]));
        }
    }
    let all = [
        "audio",
        "blob resource",
        "image",
        "resource_link",
        "text",
        "text resource",
    ];
    assert!(said.iter().eq(all), "{said:?}");
    assert!(made.iter().eq(all), "{made:?}");
}

#[tokio::test]
async fn the_tool_call_carries_text_a_diff_and_a_terminal() {
    let desk = Desk::new().await;
    desk.prompt("tool").await.unwrap();
    let kinds: BTreeSet<String> = desk
        .editor
        .take()
        .iter()
        .flat_map(|entry| {
            entry["params"]["update"]["content"]
                .as_array()
                .cloned()
                .unwrap_or_default()
        })
        .map(|content| content["type"].as_str().unwrap().to_owned())
        .collect();
    assert!(
        kinds.iter().eq(["content", "diff", "terminal"]),
        "{kinds:?}"
    );
}

#[tokio::test]
async fn tool_call_ids_are_unique_in_a_session() {
    let desk = Desk::new().await;
    for word in [
        "tool",
        "tool",
        "permission",
        "terminal true",
        "content",
        "perm 2",
    ] {
        desk.prompt(word).await.unwrap();
    }
    let ids: Vec<String> = desk
        .editor
        .take()
        .iter()
        .filter(|entry| entry["params"]["update"]["sessionUpdate"] == "tool_call")
        .map(|entry| {
            entry["params"]["update"]["toolCallId"]
                .as_str()
                .unwrap()
                .to_owned()
        })
        .collect();
    assert!(ids.len() >= 5, "{ids:?}");
    assert_eq!(
        ids.iter().collect::<BTreeSet<_>>().len(),
        ids.len(),
        "{ids:?}"
    );
}

#[tokio::test]
async fn an_elicited_form_has_fields_and_what_is_answered_is_said() {
    let editor = Editor {
        accepts: true,
        ..Editor::default()
    };
    let desk = Desk::with(editor, everything()).await;
    desk.prompt("elicit form").await.unwrap();
    let asked = desk.editor.take();
    let schema = &asked[0]["params"]["requestedSchema"];
    assert!(
        schema["properties"].as_object().unwrap().len() > 2,
        "{schema}"
    );
    let said = asked[1]["params"]["update"]["content"]["text"]
        .as_str()
        .unwrap();
    assert_eq!(said, r#"Answer: accepted {"name":"Ada"}"#);
}

#[tokio::test]
async fn an_accepted_url_is_completed_and_each_has_its_own_id() {
    let editor = Editor {
        accepts: true,
        ..Editor::default()
    };
    let desk = Desk::with(editor, everything()).await;
    desk.prompt("elicit url").await.unwrap();
    desk.prompt("elicit url").await.unwrap();
    let log = desk.editor.take();
    let id = |at: usize| &log[at]["params"]["elicitationId"];
    assert_eq!(log[1]["method"], "elicitation/complete");
    assert_eq!(id(0), id(1));
    assert_ne!(id(0), id(3));
}
