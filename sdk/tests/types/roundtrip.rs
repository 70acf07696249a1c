//! Valid messages come out as they went in, in either decoder.

use acp_sdk::v1::*;

use crate::{json, same, tree, valid};

#[test]
fn updates_of_every_kind() {
    for update in [
        r#"{"sessionUpdate":"user_message_chunk","content":{"type":"text","text":"a"}}"#,
        r#"{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"a\u0000\"b"},"messageId":"m"}"#,
        r#"{"sessionUpdate":"agent_thought_chunk","content":{"type":"image","data":"AA==","mimeType":"image/png"}}"#,
        r#"{"sessionUpdate":"tool_call","toolCallId":"c","title":"t","kind":"edit","status":"pending",
            "content":[{"type":"diff","path":"/a","oldText":"x","newText":"y"},{"type":"terminal","terminalId":"t"},
            {"type":"content","content":{"type":"audio","data":"AA==","mimeType":"audio/wav"}}],
            "locations":[{"path":"/a","line":3}],"rawInput":{"b":1,"a":[1.50,12345678901234567890123]}}"#,
        r#"{"sessionUpdate":"tool_call_update","toolCallId":"c","status":"completed","rawOutput":"text"}"#,
        r#"{"sessionUpdate":"plan","entries":[{"content":"c","priority":"high","status":"in_progress"}]}"#,
        r#"{"sessionUpdate":"available_commands_update","availableCommands":[{"name":"n","description":"d","input":{"hint":"h"}}]}"#,
        r#"{"sessionUpdate":"current_mode_update","currentModeId":"ask"}"#,
        r#"{"sessionUpdate":"config_option_update","configOptions":[
            {"id":"m","name":"n","category":"model","type":"select","currentValue":"a","options":[{"value":"a","name":"A"}]},
            {"id":"g","name":"n","type":"select","currentValue":"a","options":[{"group":"g","name":"G","options":[{"value":"a","name":"A"}]}]},
            {"id":"b","name":"n","type":"boolean","currentValue":true}]}"#,
        r#"{"sessionUpdate":"session_info_update","title":"t","updatedAt":"2026-01-01T00:00:00Z"}"#,
        r#"{"sessionUpdate":"usage_update","used":1,"size":18446744073709551615,"cost":{"amount":0.25,"currency":"USD"}}"#,
        r#"{"sessionUpdate":"notice","severity":"warning","title":"t"}"#,
        r#"{"sessionUpdate":"compaction_update","compactionId":"c","status":"in_progress"}"#,
        r#"{"sessionUpdate":"compaction_summary_chunk","compactionId":"c","content":{"type":"text","text":"t"}}"#,
    ] {
        same::<SessionNotification>(&format!(r#"{{"sessionId":"s","update":{update}}}"#));
    }
}

#[test]
fn requests_and_answers() {
    same::<InitializeRequest>(
        r#"{"protocolVersion":1,"clientCapabilities":{"fs":{"readTextFile":true,"writeTextFile":false},
        "terminal":true,"auth":{"terminal":false}},"clientInfo":{"name":"n","version":"1"}}"#,
    );
    same::<NewSessionRequest>(
        r#"{"cwd":"/w","mcpServers":[{"name":"a","command":"c","args":["x"],"env":[{"name":"K","value":"V"}]},
        {"type":"http","name":"h","url":"http://h","headers":[]},
        {"type":"sse","name":"s","url":"http://s","headers":[{"name":"A","value":"B"}]}]}"#,
    );
    same::<PromptRequest>(
        r#"{"sessionId":"s","prompt":[{"type":"resource_link","name":"n","uri":"file:///a","size":3},
        {"type":"resource","resource":{"uri":"file:///a","text":"t"}},
        {"type":"resource","resource":{"uri":"file:///a","blob":"AA=="}}]}"#,
    );
    same::<SetSessionConfigOptionRequest>(r#"{"sessionId":"s","configId":"c","value":"v"}"#);
    same::<SetSessionConfigOptionRequest>(
        r#"{"sessionId":"s","configId":"c","type":"boolean","value":true}"#,
    );
    same::<RequestPermissionResponse>(r#"{"outcome":{"outcome":"cancelled"}}"#);
    same::<RequestPermissionResponse>(
        r#"{"outcome":{"outcome":"selected","optionId":"o"},"_meta":{"k":[null]}}"#,
    );
    same::<RpcError>(r#"{"code":-32002,"message":"m","data":{"uri":"file:///a"}}"#);
}

#[test]
fn elicitation_in_all_forms() {
    for text in [
        r#"{"message":"m","mode":"url","elicitationId":"e","url":"https://a","sessionId":"s","toolCallId":"t"}"#,
        r#"{"message":"m","mode":"url","elicitationId":"e","url":"https://a","requestId":7}"#,
        r#"{"message":"m","mode":"form","sessionId":"s","requestedSchema":{"type":"object","properties":{
            "z":{"type":"string","enum":["a"]},"a":{"type":"number","minimum":1.5},"m":{"type":"boolean","default":true},
            "c":{"type":"array","items":{"type":"string","enum":["x"]}},
            "b":{"type":"array","items":{"anyOf":[{"const":"k","title":"K"}]}}},"required":["z"]}}"#,
    ] {
        same::<CreateElicitationRequest>(text);
    }
    same::<CreateElicitationResponse>(
        r#"{"action":"accept","content":{"s":"a","i":1,"f":1.5,"b":true,"l":["x"]}}"#,
    );
    same::<CreateElicitationResponse>(r#"{"action":"decline"}"#);
}

#[test]
fn the_fields_of_a_form_keep_their_order() {
    let text = r#"{"type":"object","properties":{"z":{"type":"string"},"a":{"type":"string"}}}"#;
    let schema: ElicitationSchema = valid(text);
    let names: Vec<&str> = schema.properties.iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["z", "a"]);
}

#[test]
fn raw_values_keep_big_numbers_order_and_depth() {
    let deep = format!("{}1{}", "[".repeat(5_000), "]".repeat(5_000));
    for raw in [
        "123456789012345678901234567890",
        "1.0",
        r#"{"b":1,"a":2}"#,
        deep.as_str(),
    ] {
        let text = format!(r#"{{"toolCallId":"c","rawInput":{raw}}}"#);
        let update: ToolCallUpdate = valid(&text);
        assert_eq!(json(&update), text);
    }
}

#[test]
fn a_tag_in_any_place_reads_the_same() {
    let first: SessionUpdate =
        valid(r#"{"sessionUpdate":"tool_call","toolCallId":"c","title":"t","rawInput":[1]}"#);
    for text in [
        r#"{"toolCallId":"c","sessionUpdate":"tool_call","title":"t","rawInput":[1]}"#,
        r#"{"toolCallId":"c","title":"t","rawInput":[1],"sessionUpdate":"tool_call"}"#,
        r#"{"session\u0055pdate":"tool\u005fcall","toolCallId":"c","title":"t","rawInput":[1]}"#,
    ] {
        assert_eq!(valid::<SessionUpdate>(text), first, "{text}");
    }
}

#[test]
fn values_trees_and_readers_are_read_alike() {
    let text =
        r#"{"sessionId":"s","update":{"title":"t","sessionUpdate":"tool_call","toolCallId":"c"}}"#;
    let value: SessionNotification = valid(text);
    assert_eq!(
        serde_json::from_value::<SessionNotification>(tree(text)).unwrap(),
        value
    );
    assert_eq!(
        serde_json::from_reader::<_, SessionNotification>(text.as_bytes()).unwrap(),
        value
    );
}

#[test]
fn ids_of_requests() {
    for (text, id) in [
        ("null", RequestId::Null),
        ("0", RequestId::from(0)),
        ("-9223372036854775808", RequestId::Number(i64::MIN)),
        (r#""a\nb""#, RequestId::from("a\nb")),
    ] {
        assert_eq!(valid::<RequestId>(text), id);
        assert_eq!(json(&id), text);
    }
}
