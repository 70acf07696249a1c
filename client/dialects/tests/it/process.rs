//! Agents that are processes, and their ends.

use std::time::Duration;

use acp_client::{AgentCommand, Client, Error, Event, ExternalAgent, Gap, Reconnect};
use acp_client_dialects::Chimera;
use acp_sdk::v1::StopReason;

use crate::fake::within;

/// Functions for scripts. The session is always `s`.
const PRELUDE: &str = r#"
message() { IFS= read -r line || exit 0; id=${line#*'"id":'}; id=${id%%[,\}]*}; }
send() { printf '%s\n' "$1"; }
answer() { message; send '{"jsonrpc":"2.0","id":'"$id"',"result":'"$1"'}'; }
create() { answer '{"session_id":"s"}'; }
say() { send '{"jsonrpc":"2.0","method":"agent/messageChunk","params":{"text":"'"$1"'"}}'; }
"#;

/// Hangs with a message that has begun. `exec`, so that the signal ends it at once.
const HANGS: &str = "create; message; say part; exec sleep 1000";

fn agent(text: &str) -> AgentCommand {
    let agent = AgentCommand::new("sh").args(["-c".to_owned(), format!("{PRELUDE}{text}")]);
    Chimera::new().drain_delay(Duration::ZERO).adapt(agent)
}

#[tokio::test]
async fn an_agent_that_exits_fails_the_message_with_its_end() {
    let agent = agent("create; message; say part; echo 'out of memory' >&2; exit 3");
    let client = within(Client::builder().spawn(agent)).await.unwrap();
    let session = within(client.new_session("/")).await.unwrap();
    let mut turn = session.prompt("hi").await.unwrap();
    assert!(matches!(
        within(turn.next()).await.unwrap().event,
        Event::Update(_)
    ));
    let error = within(turn.outcome()).await.unwrap_err();
    let Error::AgentExited {
        method,
        exit,
        stderr,
        ..
    } = &error
    else {
        panic!("{error}");
    };
    assert_eq!((method.as_str(), exit.code), ("session/prompt", Some(3)));
    assert_eq!(stderr, &["out of memory"]);
}

#[tokio::test]
async fn shutting_the_client_down_ends_the_agent() {
    let client = within(Client::builder().spawn(agent("create; cat >/dev/null; exit 6")));
    let client = client.await.unwrap();
    within(client.new_session("/")).await.unwrap();
    let exit = within(client.shutdown()).await.unwrap();
    assert_eq!(exit.code, Some(6), "the end of its input is enough");
}

#[tokio::test]
async fn cancelling_ends_the_process() {
    let client = within(Client::builder().spawn(agent(HANGS))).await.unwrap();
    let session = within(client.new_session("/")).await.unwrap();
    let mut turn = session.prompt("hi").await.unwrap();
    within(turn.next()).await.unwrap();
    turn.cancel();
    let outcome = within(turn.outcome()).await.unwrap();
    assert_eq!(
        (outcome.text.as_str(), outcome.stop_reason),
        ("part", StopReason::Cancelled)
    );
    // The session is gone with the process, whose end is the reason.
    let turn = session.prompt("again").await.unwrap();
    let error = within(turn.outcome()).await.unwrap_err();
    assert!(
        error.to_string().contains("was ended by SIGTERM"),
        "{error}"
    );
    let exit = within(client.shutdown()).await.unwrap();
    assert_eq!(exit.signal_name().as_deref(), Some("SIGTERM"));
}

#[tokio::test]
async fn an_external_agent_starts_again_after_a_cancelled_call() {
    let dir = tempfile::tempdir().unwrap();
    let mark = dir.path().join("started");
    let text = format!(
        "if [ -e '{0}' ]; then create; message; say done; send '{{\"jsonrpc\":\"2.0\",\"id\":'$id',\"result\":{{}}}}'; \
         cat >/dev/null; fi; : >'{0}'; {HANGS}",
        mark.display()
    );
    let external = ExternalAgent::start_with(move || Client::builder().spawn(agent(&text)));
    let external = external.directory("/").timeout(Duration::from_secs(20));
    let token = tokio_util::sync::CancellationToken::new();
    let cancelled = token.clone();
    let call = external
        .call("work")
        .cancelled_by(token)
        .on_event(move |_| cancelled.cancel());
    let result = within(call).await.unwrap();
    assert_eq!(result.metadata.stop_reason, StopReason::Cancelled);
    let result = within(external.call("work")).await.unwrap();
    assert_eq!(result.text, "done");
    within(external.cleanup()).await;
}

#[tokio::test]
async fn an_agent_that_restarts_has_lost_its_sessions() {
    let agent = agent(HANGS).restart(Reconnect::default());
    let client = within(Client::builder().spawn(agent)).await.unwrap();
    let session = within(client.new_session("/")).await.unwrap();
    let mut events = session.events();
    let mut turn = session.prompt("hi").await.unwrap();
    within(turn.next()).await.unwrap();
    turn.cancel();
    let outcome = within(turn.outcome()).await.unwrap();
    assert_eq!(outcome.stop_reason, StopReason::Cancelled);
    loop {
        if let Event::Gap(gap) = within(events.next()).await.unwrap().event {
            assert_eq!(gap, Gap::Lost);
            break;
        }
    }
    drop((session, events));
    let session = within(client.new_session("/")).await.unwrap();
    let mut turn = session.prompt("hi").await.unwrap();
    assert!(matches!(
        within(turn.next()).await.unwrap().event,
        Event::Update(_)
    ));
}
