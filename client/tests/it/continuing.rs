//! Sessions that a restarted agent takes its time to continue.

use std::time::Duration;

use acp_client::{AgentCommand, Client, Error, Event, Gap, Reconnect, Workspace};

use serde_json::json;

use crate::agent::{Raw, within};
use crate::restart::{agent, next, soon};

/// Its first process creates the session `s` and exits at `authenticate`.
const FIRST: &str = r#"able '{"loadSession":true}'
    if [ $run = 1 ]; then answer '{"sessionId":"s"}'; message; exit 1; fi
    expect session/load; load=$id
    loaded() { send '{"jsonrpc":"2.0","id":'"$load"',"result":{}}'; }
    "#;

fn slow(dir: &std::path::Path, text: &str) -> AgentCommand {
    agent(dir, &format!("{FIRST}{text}"))
}

async fn an_agent_asks_while_it_loads() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("notes"), "of interest").unwrap();
    let agent = slow(
        dir.path(),
        r#"call fs/read_text_file '{"sessionId":"s","path":"'"$PWD/notes"'"}'
        case $line in *'of interest'*) loaded;; esac
        prompt; say hello; end end_turn; cat >/dev/null"#,
    );
    let builder = Client::builder().files(Workspace::unguarded());
    let client = within(builder.spawn(agent)).await.unwrap();
    let session = within(client.new_session(dir.path())).await.unwrap();
    within(client.authenticate("x")).await.unwrap_err();
    // The prompt is sent before the file is read, or after the session is loaded.
    let turn = session.prompt("hi").await.unwrap();
    assert_eq!(within(turn.outcome()).await.unwrap().text, "hello");
}

#[tokio::test]
async fn an_agent_that_asks_while_it_loads_is_answered() {
    an_agent_asks_while_it_loads().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn an_agent_that_asks_while_it_loads_is_answered_on_four_threads() {
    an_agent_asks_while_it_loads().await;
}

/// Its first process authenticates the client, creates the session `s` and exits at the next request.
/// The next one is initialized and receives `authenticate`.
const LOGGED_IN: &str = r#"able '{"loadSession":true}'
    if [ $run = 1 ]; then answer '{}'; answer '{"sessionId":"s"}'; message; exit 1; fi
    expect authenticate; login=$id
    logged_in() {
        send '{"jsonrpc":"2.0","id":'"$login"',"result":{}}'
        expect session/load; send '{"jsonrpc":"2.0","id":'"$id"',"result":{}}'
    }
    "#;

async fn an_agent_asks_while_it_authenticates() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("key"), "of interest").unwrap();
    let text = r#"call fs/read_text_file '{"sessionId":"s","path":"'"$PWD/key"'"}'
        case $line in *'of interest'*) logged_in;; esac
        prompt; say hello; end end_turn; cat >/dev/null"#;
    let agent = agent(dir.path(), &format!("{LOGGED_IN}{text}"));
    let builder = Client::builder().files(Workspace::unguarded());
    let client = within(builder.spawn(agent)).await.unwrap();
    within(client.authenticate("x")).await.unwrap();
    let session = within(client.new_session(dir.path())).await.unwrap();
    within(client.authenticate("x")).await.unwrap_err();
    // It waits until the session is loaded.
    let turn = session.prompt("hi").await.unwrap();
    assert_eq!(within(turn.outcome()).await.unwrap().text, "hello");
}

#[tokio::test]
async fn an_agent_that_asks_while_it_authenticates_is_answered() {
    an_agent_asks_while_it_authenticates().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn an_agent_that_asks_while_it_authenticates_is_answered_on_four_threads() {
    an_agent_asks_while_it_authenticates().await;
}

#[tokio::test]
async fn a_terminal_that_a_new_process_creates_while_it_authenticates_stays() {
    let dir = tempfile::tempdir().unwrap();
    let text = r#"call terminal/create '{"sessionId":"s","command":"sleep","args":["600"]}'
        logged_in; prompt
        call terminal/output '{"sessionId":"s","terminalId":"term-1"}'
        case $line in *'"truncated":false'*exitStatus*) ;; *'"truncated":false'*) say running;; esac
        end end_turn; cat >/dev/null"#;
    let agent = agent(dir.path(), &format!("{LOGGED_IN}{text}"));
    let builder = Client::builder().terminals(Workspace::unguarded());
    let client = within(builder.spawn(agent)).await.unwrap();
    within(client.authenticate("x")).await.unwrap();
    let session = within(client.new_session(dir.path())).await.unwrap();
    within(client.authenticate("x")).await.unwrap_err();
    let turn = session.prompt("hi").await.unwrap();
    assert_eq!(within(turn.outcome()).await.unwrap().text, "running");
}

#[tokio::test]
async fn no_message_is_lost_that_an_agent_sends_before_it_is_initialized_again() {
    const UPDATES: usize = 300;
    let dir = tempfile::tempdir().unwrap();
    let text = r#"i=0; while [ $i -lt 300 ]; do say $i; i=$((i + 1)); done
        logged_in; cat >/dev/null"#;
    let agent = agent(dir.path(), &format!("{LOGGED_IN}{text}"));
    let client = within(Client::builder().spawn(agent)).await.unwrap();
    within(client.authenticate("x")).await.unwrap();
    let session = within(client.new_session("/")).await.unwrap();
    let mut events = session.events();
    within(client.authenticate("x")).await.unwrap_err();
    for number in 0..UPDATES {
        assert_eq!(next(&mut events).await, number.to_string());
    }
    assert_eq!(next(&mut events).await, "Loaded");
}

#[tokio::test]
async fn messages_of_other_sessions_are_sent_while_one_is_loaded() {
    let dir = tempfile::tempdir().unwrap();
    let agent = slow(
        dir.path(),
        r#"expect session/new; send '{"jsonrpc":"2.0","id":'"$id"',"result":{"sessionId":"t"}}'
        expect session/prompt; prompt=$id; case $line in *'"t"'*) end end_turn;; esac
        loaded; prompt; say loaded; end end_turn; cat >/dev/null"#,
    );
    let client = within(Client::builder().spawn(agent)).await.unwrap();
    let session = within(client.new_session("/")).await.unwrap();
    within(client.authenticate("x")).await.unwrap_err();
    let waiting = session.prompt("first").await.unwrap();
    let other = within(client.new_session("/")).await.unwrap();
    let turn = other.prompt("second").await.unwrap();
    within(turn.outcome()).await.unwrap();
    assert_eq!(within(waiting.outcome()).await.unwrap().text, "loaded");
}

#[tokio::test]
async fn a_session_that_is_never_loaded_is_lost_and_harms_no_other() {
    let dir = tempfile::tempdir().unwrap();
    let agent = slow(
        dir.path(),
        r#"expect '$/cancel_request'
        say late; loaded
        expect session/new; send '{"jsonrpc":"2.0","id":'"$id"',"result":{"sessionId":"t"}}'
        expect session/prompt; prompt=$id; end end_turn; cat >/dev/null"#,
    );
    let brief = soon().with_continue_timeout(Duration::from_millis(50));
    let client = within(Client::builder().spawn(agent.restart(brief))).await;
    let client = client.unwrap();
    let session = within(client.new_session("/")).await.unwrap();
    let mut events = session.events();
    within(client.authenticate("x")).await.unwrap_err();
    let turn = session.prompt("hi").await.unwrap();
    let error = within(turn.outcome()).await.unwrap_err();
    let Error::ConnectionLost { reason, .. } = &error else {
        panic!("{error}");
    };
    assert!(reason.contains("within 0.05 s"), "{reason}");
    assert!(reason.ends_with("session/prompt was not sent"), "{reason}");
    let other = within(client.new_session("/")).await.unwrap();
    let turn = other.prompt("hi").await.unwrap();
    within(turn.outcome()).await.unwrap();
    within(client.shutdown()).await;
    drop(session);
    let mut gaps = Vec::new();
    while let Some(event) = within(events.next()).await {
        match event.event {
            Event::Gap(gap) => gaps.push(gap),
            Event::Update(update) => panic!("{update:?}"),
            _ => {}
        }
    }
    assert_eq!(gaps, [Gap::Loaded, Gap::Lost]);
    assert_eq!(Reconnect::default().continue_timeout.as_secs(), 60);
}

#[tokio::test]
async fn the_mode_is_set_again_before_the_next_prompt() {
    let dir = tempfile::tempdir().unwrap();
    let modes = r#""modes":{"currentModeId":"yolo","availableModes":[]}"#;
    let text = r#"able '{"loadSession":true}'
        if [ $run = 1 ]; then
            answer '{"sessionId":"s",MODES}'; expect session/set_mode
            send '{"jsonrpc":"2.0","id":'"$id"',"result":{}}'; message; exit 1
        fi
        expect session/load; send '{"jsonrpc":"2.0","id":'"$id"',"result":{MODES}}'
        expect session/set_mode; case $line in *'"ask"'*) ;; *) exit 78;; esac
        send '{"jsonrpc":"2.0","id":'"$id"',"result":{}}'
        expect session/prompt; prompt=$id; end end_turn; cat >/dev/null"#;
    let agent = agent(dir.path(), &text.replace("MODES", modes));
    let client = within(Client::builder().spawn(agent)).await.unwrap();
    let session = within(client.new_session("/")).await.unwrap();
    within(session.set_mode("ask")).await.unwrap();
    within(client.authenticate("x")).await.unwrap_err();
    let turn = session.prompt("hi").await.unwrap();
    within(turn.outcome()).await.unwrap();
    let modes = session.settings().modes.unwrap();
    assert_eq!(modes.current_mode_id.as_str(), "ask");
}

/// The agent decides what is in force in a session that the application opens; only `ask_first` changes it.
#[tokio::test]
async fn a_session_that_the_application_loads_is_in_the_mode_that_the_agent_reports() {
    for asks_first in [false, true] {
        let builder = match asks_first {
            true => Client::builder().ask_first(),
            false => Client::builder(),
        };
        let able = json!({"protocolVersion": 1, "agentCapabilities": {"loadSession": true}});
        let (client, mut raw) = Raw::connect_saying(builder, able).await;
        let loading = tokio::spawn({
            let client = client.clone();
            async move { client.load_session("s", "/").await }
        });
        let available = json!([{"id": "default", "name": "Ask"}]);
        let modes = json!({"currentModeId": "bypassPermissions", "availableModes": available});
        raw.answer("session/load", json!({"modes": modes})).await;
        if asks_first {
            let params = raw.params("session/set_mode", json!({})).await;
            assert_eq!(params["modeId"], "default");
        }
        let session = within(loading).await.unwrap().unwrap();
        let modes = session.settings().modes.unwrap();
        let expected = if asks_first {
            "default"
        } else {
            "bypassPermissions"
        };
        assert_eq!(modes.current_mode_id.as_str(), expected);
    }
}
