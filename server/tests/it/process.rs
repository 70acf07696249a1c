//! The binary: what it makes of bad input, and that it ends with its input.

use std::io::{Read as _, Write as _};
use std::process::{Command, Stdio};

use serde_json::{Value, json};

/// What the agent writes for these lines, after which its input ends.
fn answers(lines: &str) -> Vec<Value> {
    let mut agent = Command::new(env!("CARGO_BIN_EXE_acp-server"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    agent
        .stdin
        .take()
        .unwrap()
        .write_all(lines.as_bytes())
        .unwrap();
    let mut output = String::new();
    agent
        .stdout
        .take()
        .unwrap()
        .read_to_string(&mut output)
        .unwrap();
    assert!(agent.wait().unwrap().success());
    output
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[test]
fn bad_input_gets_clear_errors_and_the_connection_goes_on() {
    let answers = answers(concat!(
        "{\"jsonrpc\": nonsense\n",
        r#"{"jsonrpc":"2.0","id":1,"method":"no/such"}"#,
        "\n",
        r#"{"jsonrpc":"2.0","id":2,"method":"session/new","params":{"mcpServers":[]}}"#,
        "\n",
        r#"{"jsonrpc":"2.0","id":3,"method":"session/prompt","params":{"sessionId":"x","prompt":[]}}"#,
        "\n",
        r#"{"jsonrpc":"2.0","id":4,"method":"initialize","params":{"protocolVersion":1}}"#,
        "\n",
    ));
    let codes: Vec<_> = answers
        .iter()
        .map(|answer| answer["error"]["code"].clone())
        .collect();
    assert_eq!(
        codes,
        [
            json!(-32700),
            json!(-32601),
            json!(-32602),
            json!(-32002),
            json!(null)
        ]
    );
    assert_eq!(answers[1]["error"]["message"], "method not found: no/such");
    assert_eq!(answers[2]["error"]["data"]["path"], "/cwd");
    assert_eq!(answers[3]["error"]["message"], "not found: session x");
    assert_eq!(answers[4]["result"]["protocolVersion"], 1);
}

#[test]
fn a_turn_in_progress_ends_with_the_input() {
    let answers = answers(concat!(
        r#"{"jsonrpc":"2.0","id":1,"method":"session/new","params":{"cwd":"/","mcpServers":[]}}"#,
        "\n",
        r#"{"jsonrpc":"2.0","id":2,"method":"session/prompt","params":{"sessionId":"session-00000001","prompt":[{"type":"text","text":"slow"}]}}"#,
        "\n",
    ));
    assert_eq!(answers.last().unwrap()["result"]["stopReason"], "cancelled");
}
