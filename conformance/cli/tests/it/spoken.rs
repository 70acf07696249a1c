//! `check` and `proxy` on traffic of version 2, and on traffic that does not say what it is.

use std::fs;
use std::io::Write;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::command::{Ran, acp_conformance};
use crate::proxy::started;

/// What the proxy recorded between a client and the example `agent-v2` of `acp-sdk`.
const RECORDED: &str = include_str!("transcripts/version-2.jsonl");

fn check(text: &str, options: &[&str]) -> Ran {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("recorded.jsonl");
    fs::write(&path, text).unwrap();
    let path = path.display().to_string();
    acp_conformance(["check"].iter().chain(options).copied().chain([&*path]))
}

#[test]
fn a_recording_of_version_2_is_judged_by_version_2() {
    let ran = check(RECORDED, &["--strict", "--notes"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(
        ran.stdout.contains("client 9, version 2: no findings"),
        "{ran:?}"
    );
    assert!(
        ran.stdout.contains("agent   23 messages: 23 valid"),
        "{ran:?}"
    );

    let ran = check(RECORDED, &["--protocol", "1"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.stdout.contains(", version 1: "), "{ran:?}");
}

#[test]
fn what_version_2_forbids_is_found_in_its_place() {
    for (whole, broken, line, found) in [
        (
            r#""messageId":"message-3","content""#,
            r#""content""#,
            9,
            "error[jsonrpc.schema] agent: session/update at /params/update: ",
        ),
        (
            r#"{"messageId":"message-2"}"#,
            r#"{"stopReason":"end_turn"}"#,
            6,
            "error[jsonrpc.schema] agent: session/prompt at /result: ",
        ),
        (
            r#"{"dir":"c2a","msg":{"jsonrpc":"2.0","id":"a""#,
            r#"{"dir":"a2c","msg":{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"session-1","update":{"sessionUpdate":"agent_message","messageId":"message-7"}}}}
{"dir":"c2a","msg":{"jsonrpc":"2.0","id":"a""#,
            29,
            "error[prompt-lifecycle.silent-after-cancel] agent: session/update at /params/update: ",
        ),
        (
            r#""outcome":"selected","optionId":"yes""#,
            r#""outcome":"selected","optionId":"no""#,
            18,
            "warning[client.permission] client: session/request_permission",
        ),
        (
            r#""cwd":"/w""#,
            r#""cwd":"w""#,
            3,
            "error[client.absolute-cwd] client: session/new",
        ),
        (
            r#""options":[{"#,
            r#""options":[{"optionId":"yes","name":"Yes","kind":"allow_always"},{"#,
            17,
            "error[tool-calls.option-ids] agent: session/request_permission",
        ),
        (
            r#"{"type":"text","text":"hello there"}]}}}"#,
            r#"{"type":"image","mimeType":"image/png","data":"YQ=="}]}}}"#,
            5,
            "error[client.no-undeclared-content] client: session/prompt",
        ),
        (
            r#""id":"b","result":{"sessions":[]}"#,
            r#""id":"b","result":{}"#,
            32,
            "error[jsonrpc.schema] agent: session/list at /result: ",
        ),
    ] {
        let text = RECORDED.replacen(whole, broken, 1);
        assert_ne!(text, RECORDED, "{whole} is there to be broken");
        let ran = check(&text, &["--strict"]);
        assert_eq!(ran.code, Some(1), "{whole}: {ran:?}");
        assert!(
            ran.stdout.contains(&format!(":{line}: {found}")),
            "{whole}: {ran:?}"
        );
    }
}

#[test]
fn without_a_handshake_the_version_is_assumed_and_that_is_said() {
    let rest: String = RECORDED
        .lines()
        .skip(2)
        .map(|line| format!("{line}\n"))
        .collect();
    let ran = check(&rest, &[]);
    assert!(
        ran.stdout
            .contains(", version 1 assumed without `initialize`: "),
        "{ran:?}"
    );
    let ran = check(&rest, &["--protocol", "2", "--json"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let file: Value = serde_json::from_str(ran.stdout.lines().next().unwrap()).unwrap();
    assert_eq!(file["protocol"], json!({"version": 2, "basis": "given"}));
}

/// Says this through a proxy in front of an agent, and waits for the end.
fn proxied(options: &[&str], agent: &[&str], said: &str) -> Ran {
    let options = options.iter().map(|&option| option.to_owned());
    let mut child = started(options, agent);
    let mut input = child.stdin.take().unwrap();
    input.write_all(said.as_bytes()).unwrap();
    drop(input);
    child.wait_with_output().unwrap().into()
}

const HANDSHAKE: &str = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":2,"info":{"name":"editor","version":"1"},"capabilities":{}}}
{"jsonrpc":"2.0","id":1,"method":"session/new","params":{"cwd":"/w"}}
"#;

#[test]
fn the_proxy_judges_by_the_version_that_passes_through() {
    let program = env!("CARGO_BIN_EXE_acp-conformance");
    let agent = [program, "reference-agent", "--protocol", "2"];
    let ran = proxied(&["--strict", "--notes"], &agent, HANDSHAKE);
    assert_eq!((ran.code, &*ran.stderr), (Some(0), ""), "{ran:?}");
    // Two answers, and the commands of the session.
    assert_eq!(ran.stdout.lines().count(), 3, "{ran:?}");

    let script = r#"read a; printf '%s\n' '{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":2,"info":{"name":"a","version":"1"}}}'
        read b; printf '%s\n' '{"jsonrpc":"2.0","id":1,"result":{"sessionId":7}}'; cat > /dev/null"#;
    let ran = proxied(&["--strict"], &["sh", "-c", script], HANDSHAKE);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    let found = "message 4: error[jsonrpc.schema] agent: session/new at /result/sessionId: ";
    assert!(ran.stderr.contains(found), "{ran:?}");
    assert!(
        ran.stderr.contains("4 messages, version 2, 1 error"),
        "{ran:?}"
    );
}

/// What `check` finds in a recording whose `initialize` is answered with version 99.
#[test]
fn a_version_without_a_specification_is_a_finding_and_is_not_judged_as_version_1() {
    // The session and the prompt would be wrong in version 1.
    let recorded = r#"{"dir":"c2a","msg":{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":99,"clientInfo":{"name":"c","version":"1"}}}}
{"dir":"a2c","msg":{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":99}}}
{"dir":"c2a","msg":{"jsonrpc":"2.0","id":1,"method":"session/new","params":{"workspace":"w"}}}
{"dir":"a2c","msg":{"jsonrpc":"2.0","id":1,"result":{"session":7}}}
{"dir":"c2a","msg":{"jsonrpc":"2.0","id":2,"method":"session/prompt","params":{"text":"hi"}}}
{"dir":"a2c","msg":{"jsonrpc":"2.0","id":2,"result":{}}}
"#;
    let ran = check(recorded, &["--notes"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    let found: Vec<_> = ran
        .stdout
        .lines()
        .filter(|line| line.contains("]"))
        .collect();
    let [found] = found.as_slice() else {
        panic!("{ran:?}");
    };
    assert!(
        found.contains(":2: error[initialization.known-version] agent: "),
        "{found}"
    );
    assert!(ran.stdout.contains("version 99"), "{ran:?}");
    // What JSON-RPC says still holds.
    let broken = recorded.replace(r#""id":2,"result":{}"#, r#""id":3,"result":{}"#);
    let ran = check(&broken, &[]);
    assert!(ran.stdout.contains("[jsonrpc.answers-once]"), "{ran:?}");
}

#[test]
fn the_proxy_says_which_version_it_assumed() {
    let news = HANDSHAKE.lines().nth(1).unwrap().to_owned() + "\n";
    let ran = proxied(&[], &["sh", "-c", "cat > /dev/null"], &news);
    let said = "1 messages, version 1 assumed without `initialize`, 1 error";
    assert!(
        ran.stderr
            .contains("error[client.only-messages] client: session/new at /params: "),
        "{ran:?}"
    );
    assert!(ran.stderr.contains(said), "{ran:?}");
    // Only version 1 demands `mcpServers`.
    let ran = proxied(
        &["--protocol", "2"],
        &["sh", "-c", "cat > /dev/null"],
        &news,
    );
    assert_eq!((ran.code, &*ran.stderr), (Some(0), ""), "{ran:?}");
}

/// An agent of version 2 that breaks a rule of the schema and one over messages.
#[test]
fn a_proxy_and_a_check_of_its_log_find_the_same_in_version_2() {
    let script = r#"read a; printf '%s\n' '{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":2,"info":{"name":"a","version":"1"}}}'
        read b; printf '%s\n' '{"jsonrpc":"2.0","id":1,"result":{"sessionId":"s"}}'
        tell() { printf '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"%s","update":%s}}\n' "$1" "$2"; }
        tell stranger '{"sessionUpdate":"state_update","state":"running"}'
        tell s '{"sessionUpdate":"plan_update","plan":{"type":"items","entries":[]}}'
        cat > /dev/null"#;
    let folder = TempDir::new().unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    let (log, findings) = (at("log.jsonl"), at("found"));
    let options = ["--strict", "--log", &log, "--findings", &findings];
    let ran = proxied(&options, &["sh", "-c", script], HANDSHAKE);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    let found = fs::read_to_string(&findings).unwrap();
    for id in ["[session-setup.known-session]", "[jsonrpc.schema]"] {
        assert!(found.contains(id), "{id}: {found}");
    }
    let checked = acp_conformance(["check", "--strict", &log]);
    assert_eq!(checked.code, ran.code, "{checked:?}");
    assert!(checked.stdout.starts_with(&found), "{found}{checked:?}");
}

/// A login of version 2 whose key is in `_meta`, through a proxy with a log.
#[test]
fn the_log_of_a_proxy_has_no_secrets_of_a_login_of_version_2() {
    let folder = TempDir::new().unwrap();
    let log = folder.path().join("log.jsonl");
    let program = env!("CARGO_BIN_EXE_acp-conformance");
    let agent = [program, "reference-agent", "--protocol", "2"];
    let login = r#"{"jsonrpc":"2.0","id":2,"method":"auth/login","params":{"methodId":"none","_meta":{"gateway":{"key":"s3cret"}}}}"#;
    let said = format!("{HANDSHAKE}{login}\n");
    let ran = proxied(&["--log", log.to_str().unwrap()], &agent, &said);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let text = fs::read_to_string(&log).unwrap();
    assert!(
        text.contains("auth/login") && text.contains("[redacted]"),
        "{text}"
    );
    assert!(!text.contains("s3cret"), "{text}");
}
