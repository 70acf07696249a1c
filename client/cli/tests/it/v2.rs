//! `acp --protocol-version 2`.

use serde_json::json;

use super::acp::{Acp, run};
use super::agents::Home;
use super::script::script;

/// A whole conversation of version 2.
const TURN: &str = r#"
answer '{"protocolVersion":2,"info":{"name":"a","version":"1"},"capabilities":{"session":{}}}'
message; printf '%s' "$line" | grep -q mcpServers && exit 9
send '{"jsonrpc":"2.0","id":'"$id"',"result":{"sessionId":"s"}}'
answer '{"messageId":"u"}'
chunk() { update '{"sessionUpdate":"agent_message_chunk","messageId":"m","content":{"type":"text","text":"'"$1"'"}}'; }
update '{"sessionUpdate":"user_message","messageId":"u","content":[{"type":"text","text":"hi"}]}'
update '{"sessionUpdate":"state_update","state":"running"}'
chunk One
update '{"sessionUpdate":"agent_message","messageId":"m","content":[{"type":"text","text":"One."}]}'
update '{"sessionUpdate":"tool_call_update","toolCallId":"c","title":"Read it","kind":"read"}'
update '{"sessionUpdate":"state_update","state":"requires_action"}'
call session/request_permission '{"sessionId":"s","title":"May I?","subject":{"type":"tool_call","toolCall":{"toolCallId":"c"}},"options":[{"optionId":"1","name":"No","kind":"reject_once"},{"optionId":"2","name":"Yes","kind":"allow_once"}]}'
update '{"sessionUpdate":"tool_call_update","toolCallId":"c","status":"completed"}'
update '{"sessionUpdate":"agent_message","messageId":"m","content":[{"type":"text","text":"Two."}]}'
update '{"sessionUpdate":"state_update","state":"idle","stopReason":"end_turn"}'
message"#;

const V2: &[&str] = &["--protocol-version", "2", "--approve-reads"];

#[tokio::test]
async fn a_prompt_is_answered_in_version_2() {
    let ended = run(&[V2, &["hi"]].concat(), TURN).await;
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert_eq!(ended.stdout, "One.\n");
    let expected = "tool: Read it (read)\npermission: May I? (read): allowed once\n\
        tool: Read it (read): completed\nmessage replaced by: Two.\n";
    assert_eq!(ended.stderr, expected);
    let ended = run(&[V2, &["--format", "json", "hi"]].concat(), TURN).await;
    let result = ended.result();
    assert_eq!(
        (&result["text"], &result["stopReason"]),
        (&json!("Two."), &json!("end_turn"))
    );
}

#[tokio::test]
async fn an_agent_that_answers_with_version_1_is_used_in_it() {
    let ended = run(
        &[V2, &["hi"]].concat(),
        "start; prompt; say one; end end_turn",
    )
    .await;
    assert_eq!(
        (ended.code, ended.stdout.as_str()),
        (Some(0), "one\n"),
        "{}",
        ended.stderr
    );
}

#[tokio::test]
async fn a_version_that_does_not_exist_is_wrong_usage() {
    let ended = run(&["--protocol-version", "3", "hi"], "start").await;
    assert_eq!(ended.code, Some(2));
    let mut command = Home::new().command(&["record", "--protocol-version", "2", "/no/file"]);
    command.args(["--", "true"]);
    let ended = Acp::spawn(command).end().await;
    assert_eq!(ended.code, Some(2));
    assert!(
        ended
            .stderr
            .contains("--protocol-version cannot be used here"),
        "{}",
        ended.stderr
    );
}

/// Replays a conversation for `session/resume`.
const REPLAYS: &str = r#"
answer '{"protocolVersion":2,"info":{"name":"a","version":"1"},"capabilities":{"session":{}}}'
answer '{"sessions":[{"sessionId":"s","cwd":"/"}]}'
message
update '{"sessionUpdate":"user_message","messageId":"u","content":[{"type":"text","text":"Hello"}]}'
update '{"sessionUpdate":"tool_call_update","toolCallId":"c","title":"Read it","status":"completed"}'
update '{"sessionUpdate":"agent_message","messageId":"m","content":[{"type":"text","text":"Hi there"}]}'
send '{"jsonrpc":"2.0","id":'"$id"',"result":{}}'
message"#;

#[tokio::test]
async fn a_history_is_counted_and_exported() {
    let sessions = async |args: &[&str]| {
        let mut command = Home::new().command(&["sessions"]);
        command.args(args).args([
            "--protocol-version",
            "2",
            "--",
            "sh",
            "-c",
            &script(REPLAYS),
        ]);
        Acp::spawn(command).end().await
    };
    let shown = sessions(&["show", "s"]).await;
    let history = "history:   user messages: 1, agent messages: 1, tool calls: 1\n";
    assert!(shown.stdout.ends_with(history), "{shown:?}");
    let exported = sessions(&["export", "s"]).await;
    assert!(
        exported.stdout.contains("Hello") && exported.stdout.contains("Hi there"),
        "{exported:?}"
    );
    let lines = sessions(&["export", "--format", "json", "s"]).await.lines();
    assert_eq!(
        lines[1]["update"]["sessionUpdate"], "user_message",
        "as the agent wrote it"
    );
}
