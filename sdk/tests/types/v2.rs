//! Version 2: the forms that version 1 does not have.

use acp_sdk::runtime::Patch;
use acp_sdk::v2::*;

use crate::{json, same, valid};

#[test]
fn a_tool_call_is_patched() {
    for (text, status) in [
        (r#"{"toolCallId":"c"}"#, Patch::Absent),
        (r#"{"toolCallId":"c","status":null}"#, Patch::Null),
        (
            r#"{"toolCallId":"c","status":"paused"}"#,
            Patch::Value(ToolCallStatus::Paused),
        ),
    ] {
        let update: ToolCallUpdate = valid(text);
        assert_eq!(update.status, status);
        assert_eq!(json(&update), text);
    }
    let update = ToolCallUpdate::new("c")
        .with_title("t")
        .with_raw_output(Patch::Null);
    assert_eq!(
        json(&update),
        r#"{"toolCallId":"c","title":"t","rawOutput":null}"#
    );
}

#[test]
fn a_session_at_rest_may_say_why() {
    for (text, reason) in [
        (r#"{"state":"idle"}"#, None),
        (
            r#"{"state":"idle","stopReason":"end_turn"}"#,
            Some(StopReason::EndTurn),
        ),
    ] {
        let state: StateUpdate = valid(text);
        let StateUpdate::Idle(idle) = &state else {
            panic!("{state:?}");
        };
        assert_eq!(idle.stop_reason, reason);
        assert_eq!(json(&state), text);
    }
}

#[test]
fn a_change_to_a_file_names_one_path_or_two() {
    let text = r#"{"fileType":"text","operation":"move","oldPath":"/a","path":"/b"}"#;
    let change: DiffChange = valid(text);
    let DiffOperation::Move(paths) = &change.operation else {
        panic!("{change:?}");
    };
    assert_eq!((paths.old_path.as_str(), paths.path.as_str()), ("/a", "/b"));
    assert_eq!(json(&change), text);
}

#[test]
fn data_of_an_error_is_preserved_and_has_a_type() {
    let text = r#"{"code":-32022,"message":"m","data":{"requested":3,"supported":[1,2]}}"#;
    let error: RpcError = valid(text);
    let data: ErrorData = valid(error.data.as_ref().unwrap().get());
    assert!(
        matches!(data, ErrorData::UnsupportedProtocolVersion(_)),
        "{data:?}"
    );
    assert_eq!(error.code, error_codes::UNSUPPORTED_PROTOCOL_VERSION);
    assert_eq!(json(&error), text);
    same::<RpcError>(r#"{"code":-32603,"message":"m","data":[1,"two"]}"#);
}

#[test]
fn what_is_not_known_is_kept() {
    same::<SessionUpdate>(r#"{"sessionUpdate":"_mine","a":{"b":1}}"#);
    same::<McpServer>(r#"{"type":"pigeon","name":"n"}"#);
    same::<AuthMethod>(r#"{"type":"pigeon","methodId":"m","name":"n"}"#);
    same::<ToolKind>(r#""dance""#);
}

#[test]
fn a_version_is_a_number() {
    assert_eq!(json(&ProtocolVersion::V2), "2");
}
