//! `acp chat`: turns that go on while another session is shown.

use super::acp::{Acp, Ended, Gate};
use super::pty::Terminal;
use super::script::script;

/// Has the sessions `s` and `t`; `in_t` says something in the second.
const TWO: &str = r#"
in_t() { send '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"t","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"'"$1"'\n\n"}}}}'; }
answer '{"protocolVersion":1,"agentCapabilities":{"loadSession":true}}'; answer '{"sessionId":"s"}'; answer '{"sessionId":"t"}'
prompt; first=$prompt; in_t 'First words.'
"#;

/// A chat whose second session runs a turn, in the first session.
async fn left(options: &[&str], agent: &str, later: &str) -> Terminal {
    let agent = script(&format!("{TWO}{agent}"));
    let command = ["--session", "work", "--", "sh", "-c", &agent];
    let mut terminal = Terminal::acp(&[&["chat"], options, &command].concat());
    terminal.shows("› ").await;
    terminal.types("/new\r");
    terminal.shows("A new session.").await;
    terminal.shows("› ").await;
    terminal.types("go\r");
    terminal.shows("First words.").await;
    terminal.types("/switch 7\r");
    terminal.shows("no other session of this number").await;
    terminal.types(later);
    terminal.types("/switch 1\r");
    terminal.shows("the turn of session 2 goes on").await;
    terminal.shows("Session 1: s").await;
    terminal.shows("› ").await;
    terminal.shows("session 2 runs").await;
    terminal
}

async fn leave(mut terminal: Terminal) {
    terminal.shows("› ").await;
    terminal.types("\u{4}");
    assert_eq!(terminal.code().await, Some(0));
}

async fn acp(terminal: &Terminal, args: &[&str]) -> Ended {
    Acp::spawn(terminal.command(args)).end().await
}

#[tokio::test]
async fn a_turn_goes_on_while_another_session_has_one() {
    let agent = r#"prompt; say 'An answer.\n'; in_t 'More words.'; end end_turn
        message; in_t "$(quoted)"; prompt=$first; end cancelled
        prompt; in_t "$(quoted)"; end end_turn; message"#;
    let mut terminal = left(&[], agent, "later\r").await;
    terminal.types("hi\r");
    let shown = terminal.shows("An answer.").await;
    assert!(!shown.contains("More words."), "{shown}");
    terminal.shows(" s\r\n").await;
    terminal.shows("› ").await;
    let status = acp(&terminal, &["status", "--session", "work"]).await;
    assert!(status.stdout.starts_with("a turn of t runs"), "{status:?}");
    let cancelled = acp(&terminal, &["cancel", "--session", "work"]).await;
    assert_eq!(cancelled.code, Some(0), "{cancelled:?}");
    let line = "the turn of session 2 has ended; 1 typed for later: t · /switch 2";
    terminal.shows(line).await;
    let status = acp(&terminal, &["status", "--session", "work"]).await;
    assert!(status.stdout.starts_with("no turn runs"), "{status:?}");
    terminal.types("/switch 2\r");
    let before = terminal.shows("Session 2: t").await;
    assert!(!before.contains("More words."), "{before}");
    terminal.shows("More words.").await;
    terminal.shows("session/cancel").await;
    terminal.shows("cancelled after").await;
    // It was typed for after the turn, which was cancelled.
    terminal.shows("› later").await;
    terminal.types("!\r");
    terminal.shows("'text':'later!'").await;
    terminal.shows(" s\r\n").await;
    leave(terminal).await;
}

/// A question of a turn waits until its session is shown; a prompt of another command waits until the turn ends.
#[tokio::test]
async fn a_question_in_the_background_waits() {
    let gate = Gate::new();
    let ask = r#"asks() { call session/request_permission '{"sessionId":"'"$1"'","toolCall":{"toolCallId":"c","title":"Do it","kind":"execute"},"options":[{"optionId":"2","name":"Yes","kind":"allow_once"}]}'; }"#;
    let ask = format!(
        r#"{ask}; {}; asks s; asks t; in_t "$(quoted)"; end end_turn
        prompt; in_t "$(quoted)"; end end_turn; message"#,
        gate.pass()
    );
    let mut terminal = left(&[], &ask, "").await;
    let waits = acp(
        &terminal,
        &["prompt", "--session", "work", "--no-wait", "outside"],
    )
    .await;
    assert_eq!(waits.code, Some(0), "{waits:?}");
    gate.open();
    // No turn runs in the session that is shown.
    terminal.shows("outside of a turn, and was").await;
    terminal.shows("session 2 asks something: /switch 2").await;
    terminal.types("/switch 2\r");
    terminal.shows("Session 2: t").await;
    terminal.shows("? May the agent: Do it (execute)").await;
    terminal.shows("y  allow once: Yes").await;
    terminal.types("y");
    terminal.shows("'optionId':'2'").await;
    terminal.shows(" s\r\n").await;
    terminal.shows("'text':'outside'").await;
    terminal.shows(" s\r\n").await;
    leave(terminal).await;
}

/// What a turn changes while another session is shown is named and undone, as far as it has come.
#[tokio::test]
async fn a_turn_in_the_background_is_undone() {
    let dir = tempfile::tempdir().unwrap();
    let (first, second) = (dir.path().join("first"), dir.path().join("second"));
    let gate = Gate::new();
    let agent = format!(
        "prompt; printf 1 >first; say 'An answer.\\n'; end end_turn
        {}; printf 2 >second; prompt=$first; end end_turn; message",
        gate.pass()
    );
    let options = ["--undo", "always", "--cwd", dir.path().to_str().unwrap()];
    let mut terminal = left(&options, &agent, "").await;
    terminal.types("hi\r");
    terminal.shows("An answer.").await;
    terminal.shows("changed: first").await;
    terminal.shows("› ").await;
    gate.open();
    terminal.shows("the turn of session 2 has ended").await;
    terminal.shows("changed: second").await;
    for (file, others) in [(&second, true), (&first, false)] {
        terminal.types("/undo\r");
        terminal.shows("Restored: ").await;
        assert_eq!((file.exists(), first.exists()), (false, others));
        terminal.shows("› ").await;
    }
    terminal.types("\u{4}");
    assert_eq!(terminal.code().await, Some(0));
}
