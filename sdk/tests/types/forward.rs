//! Nothing is lost to the future: unknown values survive a round trip.

use acp_sdk::v1::*;

use crate::{json, read, same, valid};

#[test]
fn unknown_text_of_an_enum_is_kept() {
    let response: PromptResponse = valid(r#"{"stopReason":"error"}"#);
    assert_eq!(response.stop_reason, StopReason::Unknown("error".into()));
    assert_eq!(response.stop_reason.as_str(), "error");
    assert_eq!(json(&response), r#"{"stopReason":"error"}"#);
}

#[test]
fn an_unknown_update_is_kept_as_it_came() {
    for text in [
        r#"{"sessionUpdate":"later","b":1,"a":[{"x":1.0}],"_meta":{"k":18446744073709551616}}"#,
        r#"{"b":1,"sessionUpdate":"later","a":null}"#,
        r#"{"b":1,"a":null,"sessionUpdate":"later"}"#,
    ] {
        let update: SessionUpdate = valid(text);
        let SessionUpdate::Unknown(unknown) = &update else {
            panic!("{text} is {update:?}");
        };
        assert_eq!(unknown.tag(), "later");
        assert_eq!(unknown.get("b").map(|value| value.get()), Some("1"));
        assert_eq!(json(&update), text);
    }
}

#[test]
fn unknown_variants_inside_lists_and_objects() {
    same::<PromptRequest>(
        r#"{"sessionId":"s","prompt":[{"type":"video","fps":25},{"type":"text","text":"t"}]}"#,
    );
    same::<RequestPermissionResponse>(r#"{"outcome":{"outcome":"deferred","until":"later"}}"#);
    same::<CreateElicitationResponse>(r#"{"action":"later","why":[1,2]}"#);
    same::<ElicitationSchema>(r#"{"type":"object","properties":{"a":{"type":"date","min":1}}}"#);
}

#[test]
fn an_unknown_part_of_an_object_keeps_only_what_is_not_the_objects_own() {
    let text = r#"{"id":"o","name":"n","type":"slider","currentValue":3,"max":9}"#;
    let option: SessionConfigOption = valid(text);
    let SessionConfigKind::Unknown(unknown) = &option.kind else {
        panic!("{option:?}");
    };
    let names: Vec<&str> = unknown
        .fields()
        .iter()
        .map(|(name, _)| name.as_str())
        .collect();
    assert_eq!(names, ["type", "currentValue", "max"]);
    assert_eq!(json(&option), text);

    same::<CreateElicitationRequest>(
        r#"{"message":"m","mode":"voice","sessionId":"s","lang":"en"}"#,
    );

    let (twice, dropped) = read::<SessionConfigOption>(
        r#"{"id":"o","name":"a","name":"n","type":"slider","currentValue":3,"max":9}"#,
    );
    assert_eq!(
        (json(&twice).as_str(), dropped),
        (text, vec!["/name".to_owned()])
    );
}

#[test]
fn a_server_without_a_type_is_stdio_and_so_is_one_that_says_so() {
    let stdio = McpServer::from(McpServerStdio::new("n", "c", vec![], vec![]));
    assert_eq!(
        valid::<McpServer>(r#"{"name":"n","command":"c","args":[],"env":[]}"#),
        stdio
    );
    let named = r#"{"type":"stdio","name":"n","command":"c","args":[],"env":[]}"#;
    assert_eq!(valid::<McpServer>(named), stdio);
    same::<McpServer>(r#"{"type":"pigeon","name":"n","id":"i"}"#);
}

#[test]
fn a_way_to_authenticate_without_a_type_is_the_agents() {
    assert!(matches!(
        valid(r#"{"id":"i","name":"n"}"#),
        AuthMethod::Agent(_)
    ));
    assert!(matches!(
        valid(r#"{"type":"terminal","id":"i","name":"n"}"#),
        AuthMethod::Terminal(_)
    ));
    assert!(matches!(
        valid(r#"{"type":"env_var","id":"i","name":"n"}"#),
        AuthMethod::Unknown(_)
    ));
}

#[test]
fn an_option_of_an_unknown_type_with_a_string_is_a_value_id() {
    let text = r#"{"sessionId":"s","configId":"c","type":"later","value":"v"}"#;
    let request: SetSessionConfigOptionRequest = valid(text);
    assert!(
        matches!(request.value, SessionConfigOptionValue::ValueId(_)),
        "{request:?}"
    );
    same::<SetSessionConfigOptionRequest>(
        r#"{"sessionId":"s","configId":"c","type":"later","value":5}"#,
    );
}

#[test]
fn unknown_fields_are_not_in_the_way() {
    let response: NewSessionResponse =
        valid(r#"{"sessionId":"s","models":{"x":[1]},"providers":null}"#);
    assert_eq!(response, NewSessionResponse::new("s"));
}

#[test]
fn codes_without_a_name_are_kept() {
    let error: RpcError = valid(r#"{"code":400,"message":"m"}"#);
    assert_eq!(error.code, ErrorCode::new(400));
    assert_eq!(ErrorCode::RESOURCE_NOT_FOUND.get(), -32002);
}
