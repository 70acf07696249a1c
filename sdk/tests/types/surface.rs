//! The Rust side: constructors, conversions, what users write.

use acp_sdk::runtime::{Method, Notification, Params};
use acp_sdk::v1::*;
use serde_json::json;

use crate::json;

#[test]
fn constructors_take_what_is_at_hand() {
    let request = PromptRequest::new("s", vec!["hi".into()]);
    assert_eq!(
        json(&request),
        r#"{"sessionId":"s","prompt":[{"type":"text","text":"hi"}]}"#
    );
    let call = ToolCallUpdate::new("c")
        .with_kind(ToolKind::Edit)
        .with_status("completed")
        .with_title(String::from("t"))
        .with_raw_input(json!({ "a": 1 }))
        .with_content(vec![Diff::new("/a", "new").with_old_text("old").into()]);
    assert_eq!(
        json(&call),
        r#"{"toolCallId":"c","kind":"edit","status":"completed","title":"t","content":[{"type":"diff","path":"/a","oldText":"old","newText":"new"}],"rawInput":{"a":1}}"#
    );
}

#[test]
fn setters_take_values_and_options() {
    let title: Option<&str> = None;
    let status = Some(ToolCallStatus::Completed);
    let call = ToolCallUpdate::new("c")
        .with_title("t")
        .with_title(title)
        .with_kind(Some("edit"))
        .with_status(status)
        .with_raw_input(Some(json!(1)));
    assert_eq!(
        json(&call),
        r#"{"toolCallId":"c","kind":"edit","status":"completed","rawInput":1}"#
    );
    let read = ReadTextFileRequest::new("s", "/f")
        .with_line(3)
        .with_limit(None);
    assert_eq!((read.line, read.limit), (Some(3), None));
    let read = read.with_limit(Some(5)).with_line(None);
    assert_eq!((read.line, read.limit), (None, Some(5)));
}

#[test]
fn ids_come_first_and_lists_last() {
    let load = LoadSessionRequest::new("s", "/w", vec![]);
    let resume = ResumeSessionRequest::new("s", "/w");
    assert_eq!((load.session_id, load.cwd), (resume.session_id, resume.cwd));
}

#[test]
fn maps_by_id_are_searched_by_text() {
    let map = std::collections::HashMap::from([(SessionId::from("s"), 1)]);
    assert_eq!(map.get("s"), Some(&1));
    let map = std::collections::BTreeMap::from([(ToolCallId::from("c"), 2)]);
    assert_eq!((map.get("c"), map.get("d")), (Some(&2), None));
}

#[test]
fn text_is_content() {
    let content = ContentBlock::Text(TextContent::new("hi"));
    assert_eq!(ContentChunk::new("hi").content, content);
    assert_eq!(ContentBlock::from(String::from("hi")), content);
}

#[test]
fn a_new_value_of_an_option_is_what_it_is() {
    let flag = SetSessionConfigOptionRequest::new("s", "c", true);
    assert_eq!(
        json(&flag),
        r#"{"sessionId":"s","configId":"c","type":"boolean","value":true}"#
    );
    let id = SetSessionConfigOptionRequest::new("s", "c", SessionConfigValueId::from("v"));
    assert_eq!(json(&id), r#"{"sessionId":"s","configId":"c","value":"v"}"#);
}

#[test]
fn ids_are_cheap_texts() {
    let id = SessionId::from("s");
    assert_eq!(id.as_str(), "s");
    assert_eq!(id.to_string(), "s");
    assert_eq!(id, *"s");
    assert_eq!(id.clone().as_str().as_ptr(), id.as_str().as_ptr());
    assert_eq!(CancelNotification::new(&id).session_id, id);
}

#[test]
fn enums_of_strings_convert_both_ways() {
    assert_eq!(ToolKind::from("switch_mode"), ToolKind::SwitchMode);
    assert_eq!(
        ToolKind::from(String::from("odd")),
        ToolKind::Unknown("odd".into())
    );
    assert_eq!(ToolKind::SwitchMode.to_string(), "switch_mode");
}

#[test]
fn markers_tie_names_to_types() {
    fn request<M: Method<Params = PromptRequest, Result = PromptResponse>>() -> &'static str {
        M::NAME
    }
    fn notification<N: Notification<Params = SessionNotification>>() -> &'static str {
        N::NAME
    }
    assert_eq!(request::<methods::Prompt>(), "session/prompt");
    assert_eq!(notification::<methods::SessionUpdate>(), "session/update");
}

#[test]
fn params_know_their_session() {
    assert_eq!(CancelNotification::new("s").session_id(), Some("s"));
    assert_eq!(ListSessionsRequest::new().session_id(), None);
}
