//! Agents whose processes exit and are restarted.

use std::path::Path;
use std::time::Duration;

use acp_client::{
    AgentCommand, Client, ConnectionState, Error, Event, Events, Gap, Phase, Reconnect, Workspace,
};
use acp_sdk::v1::{ContentBlock, SessionUpdate, StopReason};

use crate::agent::within;
use crate::script::script;

/// Functions for agents that are restarted, and `run`, the number of this process.
const STARTS: &str = r#"
echo run >> runs
run=$(wc -l < runs)
# Answers `initialize` with these capabilities.
able() { answer '{"protocolVersion":1,"agentCapabilities":'"$1"'}'; }
# Reads a message, which must have this method.
expect() { message; case $line in *'"'"$1"'"'*) ;; *) exit 77;; esac; }
"#;

pub fn soon() -> Reconnect {
    let wait = Duration::from_millis(10);
    Reconnect::default().with_waits(wait, wait)
}

/// An agent that works in a directory and is restarted at once.
pub fn agent(dir: &Path, text: &str) -> AgentCommand {
    let text = script(&format!("{STARTS}{text}"));
    let command = AgentCommand::new("sh").args(["-c".to_owned(), text]);
    command.current_dir(dir).restart(soon())
}

/// Returns the next event, in a few words.
pub async fn next(events: &mut Events) -> String {
    let event = within(events.next()).await.unwrap();
    let what = match &event.event {
        Event::Update(SessionUpdate::AgentMessageChunk(chunk)) => match &chunk.content {
            ContentBlock::Text(text) => text.text.clone(),
            other => format!("{other:?}"),
        },
        Event::Update(SessionUpdate::CurrentModeUpdate(mode)) => {
            format!("mode {}", mode.current_mode_id)
        }
        Event::TurnStarted { .. } => "turn".to_owned(),
        Event::TurnEnded { stop_reason } => format!("end {}", stop_reason.is_some()),
        Event::Gap(gap) => format!("{gap:?}"),
        Event::HistoryEnd => "history end".to_owned(),
        other => format!("{other:?}"),
    };
    match event.phase {
        Phase::Replayed => format!("old: {what}"),
        _ => what,
    }
}

#[tokio::test]
async fn a_session_is_loaded_by_the_next_process() {
    let dir = tempfile::tempdir().unwrap();
    let agent = agent(
        dir.path(),
        r#"able '{"loadSession":true}'
        if [ $run = 1 ]; then
            answer '{"sessionId":"s"}'; prompt; say one; kill -9 $$
        fi
        expect session/load; say one; say two
        send '{"jsonrpc":"2.0","id":'"$id"',"result":{"modes":{"currentModeId":"m","availableModes":[]}}}'
        prompt; say three; end end_turn; cat >/dev/null; exit 3"#,
    );
    let client = within(Client::builder().spawn(agent)).await.unwrap();
    let mut state = client.connection_state();
    let first = client.process().unwrap().id();
    let session = within(client.new_session("/")).await.unwrap();
    let mut events = session.events();
    let turn = session.prompt("hi").await.unwrap();
    let error = within(turn.outcome()).await.unwrap_err();
    let Error::ConnectionLost { method, reason } = &error else {
        panic!("{error}");
    };
    assert_eq!(method, "session/prompt");
    assert!(reason.contains("was ended by SIGKILL"), "{reason}");
    let lost = |state: &ConnectionState| matches!(state, ConnectionState::Lost { .. });
    // It may already be open again.
    assert!(state.has_changed().unwrap());
    let turn = session.prompt("go on").await.unwrap();
    assert_eq!(within(turn.outcome()).await.unwrap().text, "three");
    assert!(!lost(&state.borrow_and_update()));
    assert_ne!(client.process().unwrap().id(), first);
    let mut seen = Vec::new();
    for _ in 0..11 {
        seen.push(next(&mut events).await);
    }
    // The second prompt may have been made before the session was loaded or afterwards.
    seen.retain(|event| event != "turn");
    let expected = [
        "one",
        "end false",
        "Loaded",
        "old: one",
        "old: two",
        "history end",
        "mode m",
        "three",
        "end true",
    ];
    assert_eq!(seen, expected);
    let exit = within(client.shutdown()).await.unwrap();
    assert_eq!(exit.code, Some(3));
    assert_eq!(*state.borrow_and_update(), ConnectionState::Closed);
}

#[tokio::test]
async fn a_session_that_cannot_be_loaded_is_resumed() {
    let dir = tempfile::tempdir().unwrap();
    let agent = agent(
        dir.path(),
        r#"able '{"sessionCapabilities":{"resume":{}}}'
        if [ $run = 1 ]; then answer '{"sessionId":"s"}'; message; exit 1; fi
        expect session/resume; send '{"jsonrpc":"2.0","id":'"$id"',"result":{}}'
        prompt; say hello; end end_turn; cat >/dev/null"#,
    );
    let client = within(Client::builder().spawn(agent)).await.unwrap();
    let session = within(client.new_session("/")).await.unwrap();
    let mut events = session.events();
    within(client.authenticate("x")).await.unwrap_err();
    assert_eq!(next(&mut events).await, format!("{:?}", Gap::Resumed));
    let turn = session.prompt("hi").await.unwrap();
    assert_eq!(within(turn.outcome()).await.unwrap().text, "hello");
}

#[tokio::test]
async fn an_agent_that_keeps_no_sessions_gets_new_ones() {
    let dir = tempfile::tempdir().unwrap();
    let agent = agent(
        dir.path(),
        r#"able '{}'
        if [ $run = 1 ]; then answer '{"sessionId":"s"}'; message; exit 1; fi
        answer '{"sessionId":"t"}'; prompt; end end_turn; cat >/dev/null"#,
    );
    let client = within(Client::builder().spawn(agent)).await.unwrap();
    let session = within(client.new_session("/")).await.unwrap();
    let mut events = session.events();
    within(client.authenticate("x")).await.unwrap_err();
    assert_eq!(next(&mut events).await, format!("{:?}", Gap::Lost));
    let session = within(client.new_session("/")).await.unwrap();
    assert_eq!(session.id().as_str(), "t");
    let turn = session.prompt("hi").await.unwrap();
    within(turn.outcome()).await.unwrap();
}

#[tokio::test]
async fn an_agent_that_ends_again_and_again_is_not_started_for_ever() {
    let dir = tempfile::tempdir().unwrap();
    let agent = agent(
        dir.path(),
        r#"able '{"loadSession":true}'
        if [ $run = 1 ]; then answer '{"sessionId":"s"}'; message; exit 1; fi
        message; say again; echo 'no disk' >&2; exit 5"#,
    );
    let settings = soon()
        .with_limit(Duration::from_millis(500))
        .with_waits(Duration::from_millis(20), Duration::from_secs(30));
    let agent = agent.restart(settings);
    let client = within(Client::builder().spawn(agent)).await.unwrap();
    let mut state = client.connection_state();
    let _session = within(client.new_session("/")).await.unwrap();
    within(client.authenticate("x")).await.unwrap_err();
    let closed = |state: &ConnectionState| *state == ConnectionState::Closed;
    within(state.wait_for(closed)).await.unwrap();
    let error = within(client.new_session("/")).await.unwrap_err();
    let Error::NotRestarted { reason, .. } = &error else {
        panic!("{error}");
    };
    assert!(reason.contains("exited with code 5"), "{reason}");
    assert!(reason.ends_with("no disk"), "{reason}");
    let runs = std::fs::read_to_string(dir.path().join("runs")).unwrap();
    assert!(runs.lines().count() > 2, "{runs}");
}

#[tokio::test]
async fn an_agent_that_only_closes_its_output_is_ended_first() {
    let dir = tempfile::tempdir().unwrap();
    let agent = agent(
        dir.path(),
        r#"able '{}'
        if [ $run = 1 ]; then
            trap 'echo ended > ended; exit' TERM
            answer '{"sessionId":"s"}'; message; exec >&-; sleep 1000 & wait
        fi
        [ -e ended ] || exit 78
        answer '{"sessionId":"t"}'; cat >/dev/null"#,
    );
    let client = within(Client::builder().spawn(agent)).await.unwrap();
    within(client.new_session("/")).await.unwrap();
    within(client.authenticate("x")).await.unwrap_err();
    let session = within(client.new_session("/")).await.unwrap();
    assert_eq!(session.id().as_str(), "t");
}

#[tokio::test]
async fn an_agent_that_ends_before_it_was_initialized_is_not_started_again() {
    let dir = tempfile::tempdir().unwrap();
    let agent = agent(dir.path(), "message; echo 'Please log in'; exit 2");
    let error = within(Client::builder().spawn(agent)).await.unwrap_err();
    let text = error.to_string();
    assert!(
        text.contains("exited with code 2 during initialize"),
        "{text}"
    );
    assert!(
        text.ends_with("has invalid messages:\n  Please log in"),
        "{text}"
    );
    let runs = std::fs::read_to_string(dir.path().join("runs")).unwrap();
    assert_eq!(runs.lines().count(), 1);
}

#[tokio::test]
async fn a_client_that_is_shut_down_does_not_wait_for_the_next_start() {
    let dir = tempfile::tempdir().unwrap();
    let agent = agent(
        dir.path(),
        r#"able '{}'; answer '{"sessionId":"s"}'; message; exit 1"#,
    );
    let hour = Duration::from_secs(3600);
    let agent = agent.restart(Reconnect::default().with_limit(hour).with_waits(hour, hour));
    let client = within(Client::builder().spawn(agent)).await.unwrap();
    within(client.new_session("/")).await.unwrap();
    within(client.authenticate("x")).await.unwrap_err();
    let exit = within(client.shutdown()).await.unwrap();
    assert_eq!(exit.code, Some(1));
}

#[tokio::test]
async fn an_agent_that_ignores_the_end_of_its_input_is_ended() {
    let dir = tempfile::tempdir().unwrap();
    let agent = agent(
        dir.path(),
        r#"able '{}'; answer '{"sessionId":"s"}'; exec sleep 1000"#,
    );
    let agent = agent.shutdown_grace(Duration::from_millis(50), Duration::from_secs(5));
    let client = within(Client::builder().spawn(agent)).await.unwrap();
    within(client.new_session("/")).await.unwrap();
    let exit = within(client.shutdown()).await.unwrap();
    assert_eq!(exit.signal_name().as_deref(), Some("SIGTERM"));
}

#[tokio::test]
async fn a_message_above_the_limit_does_not_end_the_connection() {
    let dir = tempfile::tempdir().unwrap();
    let agent = agent(
        dir.path(),
        r#"able '{}'; answer '{"sessionId":"s"}'; prompt
        long=$(head -c 5000 /dev/zero | tr '\0' x); say $long; say short; end end_turn
        cat >/dev/null"#,
    );
    let builder = Client::builder().max_message_bytes(4096);
    let client = within(builder.spawn(agent)).await.unwrap();
    let session = within(client.new_session("/")).await.unwrap();
    let turn = session.prompt("hi").await.unwrap();
    assert_eq!(within(turn.outcome()).await.unwrap().text, "short");
}

#[tokio::test]
async fn the_terminals_of_an_agent_end_with_it() {
    let dir = tempfile::tempdir().unwrap();
    let agent = agent(
        dir.path(),
        r#"able '{"loadSession":true}'
        if [ $run = 1 ]; then
            answer '{"sessionId":"s"}'; prompt
            call terminal/create '{"sessionId":"s","command":"sh","args":["-c","echo $$ > pid; exec sleep 1000"]}'
            while [ ! -s pid ]; do sleep 0.01; done
            exit 1
        fi
        message; pid=$(cat pid)
        while kill -0 $pid 2>/dev/null; do sleep 0.01; done
        send '{"jsonrpc":"2.0","id":'"$id"',"result":{}}'; prompt; end end_turn; cat >/dev/null"#,
    );
    let builder = Client::builder().terminals(Workspace::unguarded());
    let client = within(builder.spawn(agent)).await.unwrap();
    let session = within(client.new_session(dir.path())).await.unwrap();
    let turn = session.prompt("hi").await.unwrap();
    within(turn.outcome()).await.unwrap_err();
    let turn = session.prompt("go on").await.unwrap();
    within(turn.outcome()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn many_deaths_are_survived_on_four_workers() {
    const RUNS: usize = 20;
    let dir = tempfile::tempdir().unwrap();
    let agent = agent(
        dir.path(),
        r#"able '{"loadSession":true}'
        message; case $line in *session/load*) result='{}';; *) result='{"sessionId":"s"}';; esac
        send '{"jsonrpc":"2.0","id":'"$id"',"result":'"$result"'}'
        prompt; say $run; end end_turn; message; kill -9 $$"#,
    );
    let client = within(Client::builder().spawn(agent)).await.unwrap();
    let session = within(client.new_session("/")).await.unwrap();
    let mut answered = 0;
    for _ in 0..2 * RUNS {
        let turn = session.prompt("hi").await.unwrap();
        match within(turn.outcome()).await {
            Ok(outcome) => {
                answered += 1;
                assert_eq!(outcome.text, answered.to_string());
            }
            Err(Error::ConnectionLost { .. }) => {}
            Err(other) => panic!("{other}"),
        }
    }
    assert_eq!(answered, RUNS);
    within(client.shutdown()).await.unwrap();
}

#[tokio::test]
async fn a_cancellation_that_was_lost_is_repeated() {
    let dir = tempfile::tempdir().unwrap();
    let agent = agent(
        dir.path(),
        r#"able '{"_meta":{"acp-sdk":{"eventId":true,"session":{"resume":true,"promptResult":true}}}}'
        if [ $run = 1 ]; then
            answer '{"sessionId":"s"}'; prompt; say begun; expect session/cancel; kill -9 $$
        fi
        expect _acp-sdk/session/resume; send '{"jsonrpc":"2.0","id":'"$id"',"result":{}}'
        expect _acp-sdk/session/prompt_result; prompt=$id
        expect session/cancel; end cancelled
        prompt; end end_turn; cat >/dev/null"#,
    );
    let client = within(Client::builder().spawn(agent)).await.unwrap();
    let session = within(client.new_session("/")).await.unwrap();
    let mut turn = session.prompt("hi").await.unwrap();
    within(turn.next()).await.unwrap();
    turn.cancel();
    let outcome = within(turn.outcome()).await.unwrap();
    assert_eq!(outcome.stop_reason, StopReason::Cancelled);
    let turn = session.prompt("go on").await.unwrap();
    let outcome = within(turn.outcome()).await.unwrap();
    assert_eq!(outcome.stop_reason, StopReason::EndTurn);
}
