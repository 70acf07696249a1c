//! `acp conduct`.

use rustix::process::Signal;
use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use super::acp::Acp;
use super::agents::Home;
use super::script::script;

const QUESTION: &str = r#"{"jsonrpc":"2.0","id":1,"method":"session/prompt","params":{"sessionId":"s","prompt":[{"type":"text","text":"AKIAABCDEFGHIJKLMNOP"}]}}"#;

/// Answers a request with its params, and exits at the end of its input.
const ECHO: &str = r#"read line; printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$(printf %s "$line" | sed 's/.*"id":\([^,]*\),.*/\1/')" "$(printf %s "$line" | sed 's/.*"params"://; s/}$//')"; cat > /dev/null"#;

fn started(home: &Home, args: &[&str], agent: &str) -> Acp {
    let mut command = home.command(&["conduct"]);
    command.args(args);
    if !agent.is_empty() {
        command.args(["--", "sh", "-c", agent]);
    }
    Acp::spawn(command)
}

#[tokio::test]
async fn messages_pass_the_proxies_in_order() {
    let home = Home::new();
    let trace = home.path("trace.html");
    for before in [&[][..], &["--"]] {
        let mut args = before.to_vec();
        args.extend(["redact", "redact xx"]);
        if before.is_empty() {
            args.extend(["--trace", trace.to_str().unwrap()]);
        }
        let mut acp = started(&home, &args, ECHO);
        acp.types(&format!("{QUESTION}\n")).await;
        let ended = acp.end().await;
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        let answer: Value = serde_json::from_str(&ended.stdout).expect(&ended.stdout);
        assert_eq!(answer["id"], 1);
        assert_eq!(answer["result"]["prompt"][0]["text"], "[redacted]");
    }
    let trace = std::fs::read_to_string(trace).unwrap();
    assert!(trace.contains("AKIAABCDEFGHIJKLMNOP") && trace.contains("[redacted]"));
}

#[tokio::test]
async fn a_chain_without_an_agent_is_a_proxy_of_another() {
    let home = Home::new();
    let own = env!("CARGO_BIN_EXE_acp");
    let agent = r#"read line; printf '{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":1}}\n' ; read line; echo "$line" >&2; cat > /dev/null"#;
    let agent = agent.replace(
        "\"id\":0",
        "\"id\":'\"$(printf %s \"$line\" | sed 's/.*\"id\":\\([^,]*\\),.*/\\1/')\"'",
    );
    let mut acp = started(&home, &[&format!("{own} conduct redact")], &agent);
    let initialize =
        r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1}}"#;
    acp.types(&format!("{initialize}\n{QUESTION}\n")).await;
    // The chain takes MCP servers inside of the connection for the agent.
    acp.printed(r#""mcpCapabilities":{"acp":true}"#).await;
    acp.complained("[redacted]").await;
    let ended = acp.end().await;
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
}

#[tokio::test]
async fn what_ends_too_early_is_named() {
    let home = Home::new();
    for (proxy, agent, named) in [
        ("redact", "echo gone >&2; exit 4", "exited with code 4"),
        ("sh -c 'exit 5'", "cat > /dev/null", "exited with code 5"),
        ("/no/such/proxy", "cat", "/no/such/proxy"),
    ] {
        let acp = started(&home, &[proxy], agent);
        let ended = acp.exited().await;
        assert_eq!(ended.code, Some(3), "{proxy}: {}", ended.stderr);
        assert!(ended.stderr.contains(named), "{proxy}: {}", ended.stderr);
    }
}

#[tokio::test]
async fn wrong_arguments_are_explained() {
    let home = Home::new();
    for (args, explained) in [
        (&["policy"][..], "it needs one argument, a file of rules"),
        (&["policy /no/file"], "/no/file"),
        (&["redact ("], "regex parse error"),
        (&["context"], "it needs files"),
        (&[""], "it is empty"),
        (
            &["--trace", "/no/folder/file", "redact"],
            "cannot write the trace to /no/folder/file",
        ),
        (&[], "no agent is given"),
    ] {
        let agent = if args.is_empty() { "" } else { "cat" };
        let ended = started(&home, args, agent).end().await;
        assert_eq!(ended.code, Some(2), "{args:?}: {}", ended.stderr);
        assert!(
            ended.stderr.contains(explained),
            "{args:?}: {}",
            ended.stderr
        );
    }
}

#[tokio::test]
async fn a_signal_ends_the_chain_and_its_processes() {
    let home = Home::new();
    let agent = String::from("echo started >&2; cat > /dev/null; echo ended >&2");
    let mut acp = started(&home, &["redact"], &agent);
    acp.complained("started").await;
    acp.signal(Signal::TERM);
    let ended = acp.exited().await;
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert!(ended.stderr.contains("ended"), "{}", ended.stderr);
}

/// Standard output and input of the command are those of who listens, once it has shown the secret.
#[tokio::test]
async fn an_agent_reaches_a_server_inside_of_the_connection() {
    let home = Home::new();
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let mut command = home.command(&["mcp-bridge", &address]);
    command.env("ACP_BRIDGE_SECRET", "secret");
    let mut acp = Acp::spawn(command);
    let (mut stream, _) = listener.accept().await.unwrap();
    acp.types("question\n").await;
    let mut shown = [0; 16];
    stream.read_exact(&mut shown).await.unwrap();
    assert_eq!(&shown, b"secret\nquestion\n");
    stream.write_all(b"answer\n").await.unwrap();
    acp.printed("answer").await;
    // The session has ended.
    drop(stream);
    let ended = acp.exited().await;
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""));
}

#[tokio::test]
async fn a_server_that_is_gone_and_a_missing_secret_are_explained() {
    let home = Home::new();
    let free = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let address = free.local_addr().unwrap().to_string();
    drop(free);
    for (secret, explained) in [
        (Some("secret"), "so the session has ended"),
        (None, "the variable ACP_BRIDGE_SECRET is missing"),
    ] {
        let mut command = home.command(&["mcp-bridge", &address]);
        if let Some(secret) = secret {
            command.env("ACP_BRIDGE_SECRET", secret);
        }
        let ended = Acp::spawn(command).exited().await;
        assert_eq!(ended.code, Some(1), "{}", ended.stderr);
        assert!(ended.stderr.contains(explained), "{}", ended.stderr);
    }
}

/// An agent of version 2 that asks three times, and reports a call about which it did not ask. What it is sent
/// goes to standard error.
const ASKS: &str = r#"
answer '{"protocolVersion":2,"info":{"name":"a","version":"1"},"capabilities":{"session":{}}}'
answer '{"sessionId":"s"}'
answer '{"messageId":"u"}'
may() { send '{"jsonrpc":"2.0","id":"q","method":"session/request_permission","params":{"sessionId":"s","title":"May I?","subject":{"type":"command","command":"'"$1"'","cwd":"/"},"options":[{"optionId":"no","name":"No","kind":"reject_once"},{"optionId":"yes","name":"Yes","kind":"allow_once"}]}}'; }
may 'cargo test'; message; printf 'cargo test: %s\n' "$line" >&2
may 'rm x'; message; printf 'rm x: %s\n' "$line" >&2
may ls
update '{"sessionUpdate":"tool_call_update","toolCallId":"c","title":"Remove it","kind":"execute","status":"completed","rawInput":{"command":"rm x"}}'
message; printf '%s\n' "$line" >&2
update '{"sessionUpdate":"state_update","state":"idle","stopReason":"cancelled"}'
cat > /dev/null"#;

#[tokio::test]
async fn rules_judge_an_agent_of_version_2() {
    let home = Home::new();
    let rules = "[[rule]]\neffect = \"deny\"\ncommand = \"rm\"\n[[rule]]\neffect = \"allow\"\ncommand = \"cargo test\"\n";
    home.write("rules.toml", rules);
    let policy = format!("policy {}", home.path("rules.toml").display());
    let mut acp = started(&home, &[&policy], &script(ASKS));
    let mut input = acp.input();
    for (id, method, params) in [
        (
            0,
            "initialize",
            r#"{"protocolVersion":2,"info":{"name":"c","version":"1"}}"#,
        ),
        (1, "session/new", r#"{"cwd":"/","mcpServers":[]}"#),
        (2, "session/prompt", r#"{"sessionId":"s","prompt":[]}"#),
    ] {
        let request =
            format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#);
        input
            .write_all(format!("{request}\n").as_bytes())
            .await
            .unwrap();
        acp.printed(&format!(r#""id":{id}"#)).await;
    }
    // Only what no rule decides is asked.
    acp.printed(r#""command":"ls""#).await;
    acp.complained("session/cancel").await;
    acp.printed(r#""stopReason":"cancelled""#).await;
    drop(input);
    let ended = acp.end().await;
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let answered = |command: &str| {
        ended
            .stderr
            .lines()
            .find(|line| line.contains(command))
            .unwrap()
    };
    assert!(
        answered("cargo test: ").contains(r#""optionId":"yes""#),
        "{}",
        ended.stderr
    );
    assert!(
        answered("rm x: ").contains(r#""optionId":"no""#),
        "{}",
        ended.stderr
    );
    assert!(
        ended
            .stdout
            .contains("Remove it: it is done, nobody was asked before, and it is denied"),
        "{}",
        ended.stdout
    );
    assert_eq!(
        ended.stdout.matches("session/request_permission").count(),
        1,
        "{}",
        ended.stdout
    );
}
