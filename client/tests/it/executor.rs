//! The client under another executor than tokio's, as docs/client.md shows it.

use std::time::Duration;

use acp_client::{AgentCommand, Client, Error, Policy, Workspace};
use async_compat::CompatExt as _;
use futures_executor::{block_on, block_on_stream};

use crate::script::script;

fn agent(text: &str) -> AgentCommand {
    AgentCommand::new("sh").args(["-c".to_owned(), script(text)])
}

/// Processes, files, timers and tasks of the client: all that needs a reactor.
#[test]
fn futures_and_streams_run_under_any_executor() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("file");
    std::fs::write(&path, "content").unwrap();
    let read = format!(
        r#"call fs/read_text_file '{{"sessionId":"s","path":"{}"}}'"#,
        path.display()
    );
    let text = format!(r#"start; prompt; {read}; say "$(quoted)"; end end_turn; cat >/dev/null"#);
    let builder = Client::builder()
        .workspace(Workspace::new())
        .permissions(Policy::ApproveReads);
    let client = block_on(builder.spawn(agent(&text)).compat()).unwrap();
    let session = block_on(client.new_session(dir.path()).compat()).unwrap();
    let mut turn = block_on(session.prompt("hi").compat()).unwrap();
    let events = block_on_stream(&mut turn).count();
    assert_eq!(events, 1, "the text; reading asks nobody");
    let outcome = block_on(turn.outcome().compat()).unwrap();
    assert!(outcome.text.contains("'content':'content'"), "{outcome}");
    assert!(block_on(client.shutdown().compat()).is_some());
}

#[test]
fn timers_of_the_client_run_under_any_executor() {
    let builder = Client::builder().answer_within(Duration::from_millis(50));
    let error = block_on(builder.spawn(agent("cat >/dev/null")).compat()).unwrap_err();
    assert!(matches!(error, Error::Timeout { .. }), "{error}");
}

/// Nothing that is dropped needs a reactor.
#[test]
fn clients_sessions_and_turns_are_dropped_without_an_executor() {
    let builder = Client::builder().workspace(Workspace::new());
    let text = "start; prompt; say Hello; message; end cancelled; cat >/dev/null";
    let client = block_on(builder.spawn(agent(text)).compat()).unwrap();
    let session = block_on(client.new_session("/").compat()).unwrap();
    let events = session.events();
    let mut turn = block_on(session.prompt("hi").compat()).unwrap();
    assert!(block_on(turn.next()).is_some());
    drop(turn);
    drop(session);
    drop(client);
    // The start of the turn and the text; the end may follow.
    assert!(block_on_stream(events).count() >= 2);
}
