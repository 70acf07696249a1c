//! `acp record`.

use rustix::process::Signal;
use serde_json::{Value, json};

use super::acp::Acp;
use super::agents::{Home, server};
use super::pty::Terminal;
use super::script::script;

/// Answers a request and exits at the end of its input.
const ECHO: &str = "answer '{\"text\":\"s3cret\"}'; message; exit 7";

fn started(home: &Home, args: &[&str], agent: &str) -> (Acp, std::path::PathBuf) {
    let file = home.path("transcript.jsonl");
    let mut command = home.command(&["record"]);
    command.args(args).arg(&file);
    command.args(["--", "sh", "-c", &script(agent)]);
    (Acp::spawn(command), file)
}

fn lines(file: &std::path::Path) -> Vec<Value> {
    let text = std::fs::read_to_string(file).unwrap();
    let lines = text.lines();
    lines
        .map(|line| serde_json::from_str(line).expect(line))
        .collect()
}

const QUESTION: &str =
    r#"{"jsonrpc":"2.0","id":1,"method":"session/prompt","params":{"sessionId":"s","prompt":[]}}"#;

#[tokio::test]
async fn what_passes_is_written_down() {
    let home = Home::new();
    let (mut acp, file) = started(&home, &["--verbatim"], &format!("echo no message; {ECHO}"));
    acp.types(&format!("{QUESTION}\r\n")).await;
    let ended = acp.end().await;
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let answer = r#"{"jsonrpc":"2.0","id":1,"result":{"text":"s3cret"}}"#;
    assert_eq!(ended.stdout, format!("no message\n{answer}\n"));
    let mut lines = lines(&file);
    lines.sort_by_key(|line| line["dir"] == "a2c");
    assert_eq!(lines.len(), 3, "{lines:?}");
    assert_eq!(lines[0]["dir"], "c2a");
    assert_eq!(
        lines[0]["msg"],
        serde_json::from_str::<Value>(QUESTION).unwrap()
    );
    assert_eq!(
        (&lines[1]["dir"], &lines[1]["raw"]),
        (&json!("a2c"), &json!("no message"))
    );
    assert_eq!(lines[2]["msg"]["result"]["text"], "s3cret");
    assert!(lines[2]["at"].as_f64().unwrap() > 1e9);
}

#[tokio::test]
async fn text_is_masked_unless_it_is_asked_for() {
    let home = Home::new();
    let (mut acp, file) = started(&home, &[], ECHO);
    acp.types(&format!("{QUESTION}\n")).await;
    let ended = acp.end().await;
    assert!(ended.stdout.contains("s3cret"));
    let text = std::fs::read_to_string(&file).unwrap();
    assert!(
        !text.contains("s3cret") && text.contains("session/prompt"),
        "{text}"
    );
}

#[tokio::test]
async fn the_exit_code_is_the_agents() {
    let home = Home::new();
    home.configure(&json!({"bob": server("echo oops >&2; exit 7")}));
    let file = home.path("new.jsonl");
    let ended = home
        .acp(&["record", "--agent", "bob", file.to_str().unwrap()])
        .await;
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(7), "oops\n"));
    // The file exists now.
    let ended = home
        .acp(&["record", "--agent", "bob", file.to_str().unwrap()])
        .await;
    assert_eq!(ended.code, Some(2));
    assert!(ended.stderr.contains("does not exist"), "{}", ended.stderr);
    let other = home.path("other.jsonl");
    let ended = home
        .acp(&["record", other.to_str().unwrap(), "--", "no-such-agent"])
        .await;
    assert_eq!(ended.code, Some(3));
    let ended = home.acp(&["record", other.to_str().unwrap()]).await;
    assert_eq!(ended.code, Some(2));
}

/// Writes what a terminal would obey, bytes that are no UTF-8, and a line without an end.
const COMPLAINS: &str =
    r"printf 'a\033[31mred\033]0;title\007\302\233\342\200\256b\r\n\377end' >&2";

#[tokio::test]
async fn standard_error_is_passed_on_byte_for_byte_unless_a_terminal_would_obey_it() {
    let home = Home::new();
    let file = home.path("new.jsonl");
    let mut command = home.command(&["record", file.to_str().unwrap(), "--", "sh", "-c"]);
    let output = crate::agent::within(command.arg(COMPLAINS).output())
        .await
        .unwrap();
    let expected = b"a\x1b[31mred\x1b]0;title\x07\xc2\x9b\xe2\x80\xaeb\r\n\xffend";
    assert_eq!(output.stderr, expected, "{}", output.stderr.escape_ascii());

    let file = home.path("other.jsonl");
    let mut terminal = Terminal::acp(&[
        "record",
        file.to_str().unwrap(),
        "--",
        "sh",
        "-c",
        COMPLAINS,
    ]);
    terminal.shows("aredb\r\n\u{fffd}end\r\n").await;
    assert_eq!(terminal.code().await, Some(0));
}

#[tokio::test]
async fn the_agent_ends_with_the_editor() {
    let home = Home::new();
    // An agent that ignores the end of its input.
    let agent = "trap 'echo bye; exit 3' TERM; echo here; while :; do sleep 0.05; done";
    let (mut acp, file) = started(&home, &["--verbatim"], agent);
    acp.printed("here").await;
    acp.types("").await;
    let ended = acp.end().await;
    assert_eq!(
        (ended.code, ended.stdout.as_str()),
        (Some(3), "here\nbye\n")
    );
    assert_eq!(lines(&file).len(), 2);

    let home = Home::new();
    let (mut acp, _) = started(&home, &[], agent);
    acp.printed("here").await;
    acp.signal(Signal::TERM);
    assert_eq!(acp.end().await.code, Some(3));

    let home = Home::new();
    let (mut acp, _) = started(
        &home,
        &[],
        "trap 'exit 4' TERM; while :; do echo x || exit 5; sleep 0.01; done",
    );
    acp.printed("x").await;
    acp.close_stdout();
    let code = acp.end().await.code;
    assert!(matches!(code, Some(4 | 5)), "{code:?}");
}

#[tokio::test]
async fn completions_and_manual_pages_name_the_commands() {
    let home = Home::new();
    let ended = home.acp(&["completions", "bash"]).await;
    assert_eq!(ended.code, Some(0));
    assert!(ended.stdout.contains("--approve-reads"));
    let ended = home.acp(&["man"]).await;
    assert!(
        ended.stdout.starts_with(".ie") && ended.stdout.contains("acp\\-record"),
        "{}",
        ended.stdout
    );
    let folder = home.path("man");
    let ended = home.acp(&["man", folder.to_str().unwrap()]).await;
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let page = std::fs::read_to_string(folder.join("acp-run.1")).unwrap();
    assert!(page.contains("Exit codes"), "{page}");
}
