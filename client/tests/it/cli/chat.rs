//! `acp chat` in a pseudo-terminal.

use std::process::Stdio;

use tokio::process::Command;

use super::pty::Terminal;
use crate::agent::within;

#[tokio::test]
async fn a_conversation_in_a_terminal() {
    let agent = r#"start
        prompt; say '**Hello** \u001b[2Jthere.\n'; ask execute; say "$(quoted)"; end end_turn
        prompt; say 'waiting\n'; message; end cancelled
        message"#;
    let mut terminal = Terminal::start(agent);
    terminal.shows("› ").await;
    terminal.types("hi\r");
    terminal.shows("Hello there.\r\n").await;
    terminal.shows("? May the agent: Do it (execute)").await;
    terminal.shows("y  allow once: Yes").await;
    terminal.types("y");
    terminal.shows("'optionId':'2'").await;
    terminal.shows(" s\r\n").await;
    terminal.shows("› ").await;
    terminal.types("again\r");
    terminal.shows("waiting\r\n").await;
    terminal.types("\u{3}");
    terminal.shows("cancelled after ").await;
    terminal.shows("› ").await;
    terminal.types("\u{4}");
    assert_eq!(terminal.code().await, Some(0));
}

#[tokio::test]
async fn two_interrupts_end_it() {
    let mut terminal = Terminal::start("start; prompt; say 'waiting\\n'; message; message");
    terminal.shows("› ").await;
    terminal.types("hi\r");
    terminal.shows("waiting\r\n").await;
    terminal.types("\u{3}");
    terminal.shows("cancelling").await;
    terminal.types("\u{3}");
    assert_eq!(terminal.code().await, Some(130));
}

#[tokio::test]
async fn without_a_terminal_it_refuses() {
    let ended = Command::new(env!("CARGO_BIN_EXE_acp"))
        .args(["chat", "--", "sh"])
        .stdin(Stdio::null())
        .output();
    let ended = within(ended).await.unwrap();
    assert_eq!(ended.status.code(), Some(2));
    let stderr = String::from_utf8(ended.stderr).unwrap();
    assert!(stderr.contains("Use `acp run`"), "{stderr}");
}
