//! The proposals of the feature `unstable`: the forms that version 1 does not have.

use acp_sdk::runtime::Patch;
use acp_sdk::v1::*;

use crate::{json, valid};

#[test]
fn a_child_session_is_patched() {
    for (text, state) in [
        (r#"{"sessionId":"c"}"#, Patch::Absent),
        (r#"{"sessionId":"c","state":null}"#, Patch::Null),
        (
            r#"{"sessionId":"c","state":{"state":"running"}}"#,
            Patch::Value(StateUpdate::Running(RunningStateUpdate::new())),
        ),
    ] {
        let update: SubagentUpdate = valid(text);
        assert_eq!(update.state, state);
        assert_eq!(json(&update), text);
    }
}

#[test]
fn a_union_among_members_may_be_absent() {
    for text in [
        r#"{"state":"idle"}"#,
        r#"{"state":"idle","stopReason":"end_turn"}"#,
        r#"{"state":"idle","stopReason":"error","error":{"code":-32603,"message":"m"}}"#,
        r#"{"state":"idle","stopReason":"_other","more":1}"#,
    ] {
        let state: StateUpdate = valid(text);
        assert!(matches!(state, StateUpdate::Idle(_)), "{state:?}");
        assert_eq!(json(&state), text);
    }
}

#[test]
fn an_mcp_answer_is_a_result_or_an_error() {
    let text = r#"{"result":null}"#;
    let answer: MessageMcpResponse = valid(text);
    assert!(
        matches!(answer, MessageMcpResponse::Result(_)),
        "{answer:?}"
    );
    assert_eq!(json(&answer), text);
    let text = r#"{"error":{"code":1,"message":"m","data":null}}"#;
    let answer: MessageMcpResponse = valid(text);
    assert!(matches!(answer, MessageMcpResponse::Error(_)), "{answer:?}");
    assert_eq!(json(&answer), text);
}
