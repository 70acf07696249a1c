//! Absent, null and value: defaults, options and patches.

use acp_sdk::runtime::{Json, Meta, Patch};
use acp_sdk::v1::*;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::{json, valid};

#[test]
fn absent_fields_stay_absent() {
    assert_eq!(json(&ToolCallUpdate::new("c")), r#"{"toolCallId":"c"}"#);
    assert_eq!(
        json(&ToolCall::new("c", "t")),
        r#"{"toolCallId":"c","title":"t"}"#
    );
    assert_eq!(json(&valid::<SessionInfoUpdate>(r#"{"_meta":null}"#)), "{}");
}

#[test]
fn an_empty_list_in_a_patch_is_not_an_absent_one() {
    let text = r#"{"toolCallId":"c","content":[]}"#;
    let update: ToolCallUpdate = valid(text);
    assert_eq!(update.content, Some(vec![]));
    assert_eq!(json(&update), text);
}

#[test]
fn defaults_of_the_schema() {
    let response: InitializeResponse = valid(r#"{"protocolVersion":1}"#);
    assert_eq!(response, InitializeResponse::new(ProtocolVersion::V1));
    assert_eq!(
        valid::<ElicitationSchema>("{}").type_,
        ElicitationSchemaType::Object
    );
    assert_eq!(
        ElicitationSchema::default().type_,
        ElicitationSchemaType::Object
    );
}

#[test]
fn metadata_is_kept_as_text_and_read_on_demand() {
    let text = r#"{"stopReason":"end_turn","_meta":{"b":1e400,"a":{"x":[1,2]}}}"#;
    let response: PromptResponse = valid(text);
    let meta = response.meta.as_ref().unwrap();
    assert_eq!(meta.get::<Json>("b").unwrap().get(), "1e400");
    assert_eq!(json(&response), text);

    let mut meta = Meta::new();
    meta.insert("k", &json!({ "n": 1 })).unwrap();
    meta.insert("k", &[1, 2]).unwrap();
    assert_eq!(meta.get::<Vec<u8>>("k"), Some(vec![1, 2]));
    assert_eq!(meta.get::<String>("k"), None);
    assert!(meta.contains_key("k") && !meta.contains_key("j"));
}

#[test]
fn updates_of_the_session_are_patches() {
    for (text, title) in [
        ("{}", Patch::Absent),
        (r#"{"title":null}"#, Patch::Null),
        (r#"{"title":"t"}"#, Patch::Value("t".to_owned())),
    ] {
        let update: SessionInfoUpdate = valid(text);
        assert_eq!(update.title, title);
        assert_eq!(update.updated_at, Patch::Absent);
        assert_eq!(json(&update), text);
    }
    let update = SessionInfoUpdate::new()
        .with_title("t")
        .with_updated_at(Patch::Null);
    assert_eq!(json(&update), r#"{"title":"t","updatedAt":null}"#);
}

#[test]
fn updates_of_a_compaction_are_patches() {
    const HEAD: &str = r#"{"compactionId":"c","status":"completed""#;
    for (rest, summary, error, has_meta) in [
        ("", Patch::Absent, Patch::Absent, false),
        (r#","summary":null"#, Patch::Null, Patch::Absent, false),
        (
            r#","summary":[]"#,
            Patch::Value(vec![]),
            Patch::Absent,
            false,
        ),
        (
            r#","error":null,"_meta":null"#,
            Patch::Absent,
            Patch::Null,
            false,
        ),
        (
            r#","error":"e","_meta":{"a":1}"#,
            Patch::Absent,
            Patch::Value("e".to_owned()),
            true,
        ),
    ] {
        let text = format!("{HEAD}{rest}}}");
        let update: CompactionUpdate = valid(&text);
        assert_eq!(update.summary, summary);
        assert_eq!(update.error, error);
        assert_eq!(update.meta.value().is_some(), has_meta);
        assert_eq!(json(&update), text);
    }
}

#[test]
fn an_invalid_patch_changes_nothing() {
    let text = r#"{"title":7,"updatedAt":"2026-01-31T09:30:00Z"}"#;
    let mut notes = Vec::new();
    let update: SessionInfoUpdate =
        acp_sdk::runtime::decode(text, &mut |note| notes.push(note.path.to_string())).unwrap();
    assert_eq!(update.title, Patch::Absent);
    assert_eq!(notes, ["/title"]);
}

#[test]
fn a_patch_tells_absence_from_null() {
    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Info {
        #[serde(default, skip_serializing_if = "Patch::is_absent")]
        title: Patch<String>,
    }
    for (text, title) in [
        ("{}", Patch::Absent),
        (r#"{"title":null}"#, Patch::Null),
        (r#"{"title":"t"}"#, Patch::Value("t".to_owned())),
    ] {
        let info: Info = serde_json::from_str(text).unwrap();
        assert_eq!(info, Info { title });
        assert_eq!(json(&info), text);
    }
    let mut title = Some("old".to_owned());
    Patch::Absent.apply(&mut title);
    assert_eq!(title.as_deref(), Some("old"));
    Patch::Null.apply(&mut title);
    assert_eq!(title, None);
}
