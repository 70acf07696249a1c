//! `acp sessions`.

use serde_json::json;

use super::acp::{Acp, Ended};
use super::agents::Home;
use super::script::script;

/// `acp sessions ARGS -- sh -c AGENT`
async fn sessions(args: &[&str], agent: &str) -> Ended {
    let mut command = Home::new().command(&["sessions"]);
    command.args(args).args(["--", "sh", "-c", &script(agent)]);
    Acp::spawn(command).end().await
}

/// Lists two sessions on two pages.
const LISTS: &str = r#"answer '{"protocolVersion":1,"agentCapabilities":{"loadSession":true,"sessionCapabilities":{"list":{},"delete":{}}}}'
lists() { answer '{"sessions":[{"sessionId":"s","cwd":"/","title":"First\u001b one","updatedAt":"2026-01-31T09:30:00Z"}],"nextCursor":"2"}'
answer '{"sessions":[{"sessionId":"t","cwd":"/tmp"}]}'; }
"#;

/// Replays a conversation for `session/load`, an update of another session among it.
const REPLAYS: &str = r#"message
update '{"sessionUpdate":"user_message_chunk","content":{"type":"text","text":"Hello"}}'
send '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"t","update":{"sessionUpdate":"user_message_chunk","content":{"type":"text","text":"elsewhere"}}}}'
update '{"sessionUpdate":"tool_call","toolCallId":"c","title":"Read it","kind":"read","status":"completed"}'
say 'Hi'
say ' there'
update '{"sessionUpdate":"session_info_update","title":"Greeting"}'
update '{"sessionUpdate":"new_kind","big":12345678901234567890123}'
send '{"jsonrpc":"2.0","id":'"$id"',"result":{}}'
"#;

#[tokio::test]
async fn sessions_are_listed() {
    let ended = sessions(&["list"], &format!("{LISTS}lists; message")).await;
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""));
    assert_eq!(
        ended.stdout,
        "s  2026-01-31T09:30:00Z  /  First one\nt  -  /tmp  -\n"
    );
    let ended = sessions(
        &["list", "--format", "json"],
        &format!("{LISTS}lists; message"),
    )
    .await;
    let lines = ended.lines();
    assert_eq!(lines.len(), 2);
    assert_eq!(lines[1], json!({"sessionId": "t", "cwd": "/tmp"}));
}

#[tokio::test]
async fn what_an_agent_does_not_support_is_told() {
    let plain = r#"answer '{"protocolVersion":1}'; message"#;
    for (args, capability) in [
        (&["list"][..], "sessionCapabilities.list"),
        (&["show", "s"], "loadSession"),
        (&["export", "s"], "loadSession"),
        (&["delete", "s"], "sessionCapabilities.delete"),
    ] {
        let ended = sessions(args, plain).await;
        assert_eq!(ended.code, Some(1), "{args:?}");
        assert!(
            ended.stderr.contains(capability),
            "{args:?}: {}",
            ended.stderr
        );
        assert_eq!(ended.stdout, "");
    }
    let no_fork = r#"answer '{"protocolVersion":1}'; refuse -32601 'Method not found'; message"#;
    let ended = sessions(&["fork", "s"], no_fork).await;
    assert_eq!(ended.code, Some(1));
    assert!(
        ended.stderr.contains("does not support session/fork"),
        "{}",
        ended.stderr
    );
    let ended = Home::new().acp(&["sessions", "list"]).await;
    assert_eq!(ended.code, Some(2));
    assert!(
        ended.stderr.contains("no agent is given"),
        "{}",
        ended.stderr
    );
}

#[tokio::test]
async fn a_history_is_exported() {
    let agent = format!("{LISTS}lists; {REPLAYS}message");
    let ended = sessions(&["export", "s"], &agent).await;
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""));
    assert_eq!(
        ended.stdout,
        "## User\n\nHello\n\n## Agent\n\n- **Read it** (read): completed\n\nHi there\n\n"
    );
    let ended = sessions(&["export", "s", "--format", "json"], &agent).await;
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let lines = ended.lines();
    assert_eq!(
        (&lines[0]["type"], &lines[0]["cwd"]),
        (&json!("session"), &json!("/"))
    );
    let kinds: Vec<_> = lines[1..]
        .iter()
        .map(|line| line["update"]["sessionUpdate"].as_str().unwrap())
        .collect();
    assert_eq!(
        kinds,
        [
            "user_message_chunk",
            "tool_call",
            "agent_message_chunk",
            "agent_message_chunk",
            "session_info_update",
            "new_kind"
        ]
    );
    // Unmodified, including numbers.
    assert!(ended.stdout.contains(r#""big":12345678901234567890123"#));
}

#[tokio::test]
async fn a_long_history_passes_a_slow_reader() {
    let agent = format!(
        "{LISTS}lists; message; i=0; while [ $i -lt 3000 ]; do say \"$i \"; i=$((i+1)); done\n\
         send '{{\"jsonrpc\":\"2.0\",\"id\":'\"$id\"',\"result\":{{}}}}'; message"
    );
    let ended = sessions(&["export", "s"], &agent).await;
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let words: Vec<&str> = ended.stdout.split_whitespace().skip(2).collect();
    let expected: Vec<String> = (0..3000).map(|number| number.to_string()).collect();
    assert_eq!(words, expected);
}

#[tokio::test]
async fn a_session_is_shown() {
    let agent = format!("{LISTS}lists; {REPLAYS}message");
    let ended = sessions(&["show", "s"], &agent).await;
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert_eq!(
        ended.stdout,
        "session:   s\ndirectory: /\ntitle:     Greeting\nupdated:   2026-01-31T09:30:00Z\n\
         history:   user messages: 1, agent messages: 1, tool calls: 1\n"
    );
    let ended = sessions(&["show", "s", "--format", "json"], &agent).await;
    assert_eq!(ended.lines()[0]["history"]["toolCalls"], 1);
    // The agent rejects unknown sessions.
    let agent = format!("{LISTS}lists; refuse -32002 'No such session'; message");
    let ended = sessions(&["show", "other"], &agent).await;
    assert_eq!(ended.code, Some(1));
    assert!(ended.stderr.contains("No such session"), "{}", ended.stderr);
}

#[tokio::test]
async fn sessions_are_copied_and_deleted() {
    let agent = format!(
        "{LISTS}lists; message; case $line in *'\"method\":\"session/fork\"'*'\"cwd\":\"/tmp\"'*) \
         send '{{\"jsonrpc\":\"2.0\",\"id\":'\"$id\"',\"result\":{{\"sessionId\":\"copy\"}}}}';; esac; message"
    );
    let ended = sessions(&["fork", "t"], &agent).await;
    assert_eq!(
        (ended.code, ended.stdout.as_str()),
        (Some(0), "copy\n"),
        "{}",
        ended.stderr
    );
    let agent = format!(
        "{LISTS}lists; answer '{{}}'; case $line in *'\"method\":\"session/delete\"'*'\"sessionId\":\"t\"'*) echo deleted >&2; esac; message"
    );
    let ended = sessions(&["delete", "t"], &agent).await;
    assert_eq!(
        (ended.code, ended.stdout.as_str()),
        (Some(0), ""),
        "{}",
        ended.stderr
    );
}
