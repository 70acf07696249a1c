//! What the schema tolerates is dropped, and each loss is reported with its path.

use acp_sdk::runtime::{Leniency, decode, decode_result};
use acp_sdk::v1::*;

use crate::{error, json, read, valid};

#[test]
fn an_odd_field_is_dropped_and_the_rest_stays() {
    let (update, dropped) = read::<SessionNotification>(
        r#"{"sessionId":"s","update":{"sessionUpdate":"tool_call","toolCallId":"c","title":"t",
        "kind":7,"status":"completed","locations":{},"_meta":[]}}"#,
    );
    assert_eq!(
        dropped,
        ["/update/kind", "/update/locations", "/update/_meta"]
    );
    let call = ToolCall::new("c", "t").with_status(ToolCallStatus::Completed);
    assert_eq!(update, SessionNotification::new("s", call));
}

#[test]
fn one_odd_item_does_not_drop_the_list() {
    let (update, dropped) = read::<SessionUpdate>(
        r#"{"sessionUpdate":"tool_call_update","toolCallId":"c","content":[
        {"type":"terminal"},{"type":"terminal","terminalId":"t"},5,{"type":"later"}]}"#,
    );
    assert_eq!(dropped, ["/content/0", "/content/2"]);
    assert_eq!(
        json(&update),
        r#"{"sessionUpdate":"tool_call_update","toolCallId":"c","content":[{"type":"terminal","terminalId":"t"},{"type":"later"}]}"#
    );
}

#[test]
fn free_json_of_any_depth_outlives_a_dropped_field() {
    let deep = format!("{}1{}", "[".repeat(5_000), "]".repeat(5_000));
    // The contents are kept until their members tell what they are.
    let text = format!(
        r#"{{"type":"resource","annotations":5,"resource":{{"text":"t","uri":"u","_meta":{{"d":{deep}}}}}}}"#
    );
    let (block, dropped) = read::<ContentBlock>(&text);
    assert_eq!(dropped, ["/annotations"]);
    assert_eq!(json(&block), text.replace(r#""annotations":5,"#, ""));
    // As those of an object that shares its members with a union.
    let text = format!(
        r#"{{"id":"c","name":"n","description":5,"_meta":{{"d":{deep}}},"type":"boolean","currentValue":true}}"#
    );
    let (option, dropped) = read::<SessionConfigOption>(&text);
    assert_eq!(dropped, ["/description"]);
    assert!(json(&option).contains(&deep));
}

#[test]
fn the_reason_says_what_is_wrong_deep_inside() {
    let mut reports: Vec<Leniency> = Vec::new();
    let text = r#"{"toolCallId":"c","content":[{"type":"content","content":{"type":"text"}}]}"#;
    decode::<ToolCallUpdate>(text, &mut |leniency| reports.push(leniency)).unwrap();
    let report = &reports[0];
    assert_eq!(report.path, "/content/0");
    assert_eq!(report.reason, "/content/text: required member is missing");
}

#[test]
fn what_a_dropped_value_had_dropped_itself_is_not_reported_twice() {
    // The block has a tolerable fault and a fatal one: only the whole block counts.
    let (_, dropped) = read::<ToolCallUpdate>(
        r#"{"toolCallId":"c","content":[{"type":"content","content":
        {"type":"image","annotations":5,"data":"AA=="}}]}"#,
    );
    assert_eq!(dropped, ["/content/0"]);
}

#[test]
fn capabilities_survive_nulls_and_nonsense() {
    let (response, dropped) = read::<InitializeResponse>(
        r#"{"protocolVersion":1,"agentCapabilities":{"loadSession":null,"promptCapabilities":{"image":"yes","audio":true},
        "mcpCapabilities":null},"authMethods":null,"agentInfo":null}"#,
    );
    assert_eq!(
        dropped,
        [
            "/agentCapabilities/loadSession",
            "/agentCapabilities/promptCapabilities/image",
            "/agentCapabilities/mcpCapabilities",
            "/authMethods"
        ]
    );
    assert!(response.agent_capabilities.prompt_capabilities.audio);
    assert!(!response.agent_capabilities.load_session);
}

#[test]
fn descriptions_may_be_null() {
    let mode: SessionMode = valid(r#"{"id":"a","name":"n","description":null}"#);
    assert_eq!(mode, SessionMode::new("a", "n"));
}

#[test]
fn null_lists_are_empty_where_the_schema_says_so_and_not_a_leniency() {
    let request: NewSessionRequest = valid(r#"{"cwd":"/w","mcpServers":null}"#);
    assert_eq!(request, NewSessionRequest::new("/w", vec![]));
    let request: CreateTerminalRequest =
        valid(r#"{"sessionId":"s","command":"c","args":null,"env":null}"#);
    assert_eq!(request, CreateTerminalRequest::new("s", "c"));
}

#[test]
fn a_required_list_may_be_odd_but_not_absent() {
    let (plan, dropped) = read::<Plan>(r#"{"entries":"none"}"#);
    assert_eq!(
        (plan, dropped),
        (Plan::new(vec![]), vec!["/entries".to_owned()])
    );
    assert_eq!(error::<Plan>("{}").path, "/entries");
}

#[test]
fn an_odd_config_option_is_dropped_alone() {
    let (response, dropped) = read::<NewSessionResponse>(
        r#"{"sessionId":"s","configOptions":[{"id":"a","name":"n","type":"boolean","currentValue":1},
        {"id":"b","name":"n","category":5,"type":"boolean","currentValue":true}]}"#,
    );
    assert_eq!(dropped, ["/configOptions/0", "/configOptions/1/category"]);
    let options = response.config_options.unwrap();
    assert_eq!(
        options,
        [SessionConfigOption::new(
            "b",
            "n",
            SessionConfigBoolean::new(true)
        )]
    );
}

#[test]
fn an_item_with_an_unknown_terminal_keeps_the_update() {
    let (update, dropped) = read::<SessionUpdate>(
        r#"{"content":[{"type":"terminal","terminalId":null}],"sessionUpdate":"tool_call_update","toolCallId":"c"}"#,
    );
    assert_eq!(dropped, ["/content/0"]);
    assert!(matches!(update, SessionUpdate::ToolCallUpdate(_)));
}

#[test]
fn a_member_given_twice_counts_once_and_is_reported() {
    let (id, dropped) = read::<AuthenticateRequest>(r#"{"methodId":"a","methodId":"b"}"#);
    assert_eq!(
        (id, dropped),
        (AuthenticateRequest::new("b"), vec!["/methodId".to_owned()])
    );
}

#[test]
fn a_null_result_is_an_empty_one_where_nothing_is_required() {
    let mut reports = 0;
    let mut observer = |_| reports += 1;
    let loaded = decode_result::<LoadSessionResponse>("null", &mut observer).unwrap();
    assert_eq!(loaded, LoadSessionResponse::new());
    let created = decode_result::<NewSessionResponse>("null", &mut observer).unwrap_err();
    assert_eq!(
        created.to_string(),
        "invalid type: null, expected an object"
    );
    assert_eq!(reports, 1);
}

#[test]
fn numbers_that_must_be_there_may_not_be_null() {
    let text = r#"{"sessionUpdate":"usage_update","used":null,"size":1}"#;
    assert_eq!(error::<SessionUpdate>(text).path, "/used");
}

#[test]
fn reports_of_one_message_are_bounded() {
    let items = vec!["1"; 5_000].join(",");
    let mut reports = Vec::new();
    let text = format!(r#"{{"entries":[{items}]}}"#);
    decode::<Plan>(&text, &mut |leniency| reports.push(leniency)).unwrap();
    assert_eq!(reports.len(), 101);
    assert_eq!(
        reports[100].reason,
        "4900 more values were dropped from this message"
    );
}

#[test]
fn a_flood_of_equal_members_takes_linear_time() {
    // Quadratic work would take minutes here.
    let flood = r#""methodId":"a","#.repeat(300_000);
    let (request, dropped) = read::<AuthenticateRequest>(&format!(r#"{{{flood}"methodId":"b"}}"#));
    assert_eq!(request, AuthenticateRequest::new("b"));
    assert_eq!(dropped.len(), 101);
}

#[test]
fn nothing_is_reported_of_a_message_that_is_refused() {
    let mut reports = 0;
    let text = r#"{"toolCallId":5,"kind":5}"#;
    decode::<ToolCallUpdate>(text, &mut |_| reports += 1).unwrap_err();
    assert_eq!(reports, 0);
}

#[test]
fn a_null_in_place_of_a_default_is_reported() {
    let (schema, dropped) = read::<ElicitationSchema>(r#"{"type":null}"#);
    assert_eq!(dropped, ["/type"]);
    assert_eq!(schema, ElicitationSchema::new());
}
