//! Agents that are processes, driven through the library.

use std::time::Duration;

use acp_client::{AgentCommand, Client, Error, Turn};
use tokio::io::AsyncWriteExt as _;

use crate::agent::within;
use crate::script::script;

fn agent(text: &str) -> AgentCommand {
    AgentCommand::new("sh").args(["-c".to_owned(), script(text)])
}

#[tokio::test]
async fn a_prompt_is_answered_by_a_process_that_is_ended_in_the_end() {
    let agent = agent("start; prompt; say hello; end end_turn; cat >/dev/null; exit 6");
    let client = within(Client::builder().spawn(agent)).await.unwrap();
    let session = within(client.new_session("/")).await.unwrap();
    let turn = session.prompt("hi").await.unwrap();
    assert_eq!(within(turn.outcome()).await.unwrap().text, "hello");
    let exit = within(client.shutdown()).await.unwrap();
    assert_eq!(exit.code, Some(6), "the end of its input is enough");
}

#[tokio::test]
async fn an_agent_that_dies_fails_the_call_that_is_pending() {
    let agent = agent("start; prompt; echo 'out of memory' >&2; kill -9 $$");
    let client = within(Client::builder().spawn(agent)).await.unwrap();
    let session = within(client.new_session("/")).await.unwrap();
    let turn = session.prompt("hi").await.unwrap();
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
    assert_eq!(method, "session/prompt");
    assert_eq!(exit.signal_name().as_deref(), Some("SIGKILL"));
    assert_eq!(stderr, &["out of memory"]);
    let text = error.to_string();
    assert!(text.starts_with("the agent `sh -c "), "{text}");
    assert!(text.len() < 400, "{text}");
    let end = "was ended by SIGKILL during session/prompt; its standard error ends with:\n  out of memory";
    assert!(text.ends_with(end), "{text}");
    // Later calls fail likewise.
    let later = within(client.new_session("/")).await.unwrap_err();
    assert!(matches!(later, Error::AgentExited { .. }), "{later}");
}

/// An agent behind an adapter that copies bytes, and terminates it if `ends` says so.
fn adapted(text: &str, ends: bool) -> AgentCommand {
    agent(text).adapter(move |agent, (mut from_client, mut to_client)| async move {
        let (mut output, mut input, end) = agent.into_parts();
        let sent = async {
            let _ = tokio::io::copy(&mut from_client, &mut input).await;
            let _ = input.shutdown().await;
        };
        let received = async {
            let _ = tokio::io::copy(&mut output, &mut to_client).await;
            let _ = to_client.shutdown().await;
        };
        let terminated = async {
            if ends {
                end.terminate().await;
            }
        };
        tokio::join!(sent, received, terminated);
    })
}

#[tokio::test]
async fn an_adapter_stands_between_client_and_agent() {
    let agent = adapted(
        "start; prompt; say hello; end end_turn; cat >/dev/null; exit 6",
        false,
    );
    let client = within(Client::builder().spawn(agent)).await.unwrap();
    let session = within(client.new_session("/")).await.unwrap();
    let turn = session.prompt("hi").await.unwrap();
    assert_eq!(within(turn.outcome()).await.unwrap().text, "hello");
    let exit = within(client.shutdown()).await.unwrap();
    assert_eq!(exit.code, Some(6), "the end of its input has arrived");
}

#[tokio::test]
async fn an_adapter_can_terminate_its_agent() {
    let spawning = Client::builder().spawn(adapted("cat >/dev/null", true));
    let error = within(spawning).await.unwrap_err();
    assert!(
        error.to_string().contains("was ended by SIGTERM"),
        "{error}"
    );
}

#[tokio::test]
async fn an_agent_whose_child_holds_its_output_is_dead_all_the_same() {
    let agent = agent("sleep 1000 & exit 4");
    let error = within(Client::builder().spawn(agent)).await.unwrap_err();
    assert!(
        error
            .to_string()
            .contains("exited with code 4 during initialize"),
        "{error}"
    );
}

#[tokio::test]
async fn an_agent_that_only_closes_its_output_has_hung_up() {
    let agent = agent("echo 'Use --acp'; echo 'no terminal' >&2; exec >&-; cat >/dev/null");
    let error = within(Client::builder().spawn(agent)).await.unwrap_err();
    assert!(matches!(error, Error::AgentHungUp { .. }), "{error}");
    let expected = "is still running; its standard error ends with:\n  no terminal\n\
                    and its standard output has invalid messages:\n  Use --acp";
    assert!(error.to_string().ends_with(expected), "{error}");
}

#[tokio::test]
async fn an_agent_that_does_not_answer_may_have_said_why() {
    let agent = agent("echo 'waiting for you to log in' >&2; exec sleep 1000");
    let builder = Client::builder().answer_within(Duration::from_secs(2));
    let error = within(builder.spawn(agent)).await.unwrap_err();
    assert!(matches!(error, Error::Timeout { .. }), "{error}");
    let expected = "its standard error ends with:\n  waiting for you to log in";
    assert!(error.to_string().ends_with(expected), "{error}");
}

#[tokio::test]
async fn noise_before_the_death_is_part_of_the_reason() {
    let agent = agent("echo 'Please log in first'; exit 1");
    let error = within(Client::builder().spawn(agent)).await.unwrap_err();
    let text = error.to_string();
    assert!(text.contains("its standard error is empty"), "{text}");
    assert!(
        text.ends_with("has invalid messages:\n  Please log in first"),
        "{text}"
    );
}

/// More than a session's inbox holds, so that some of it waits on the connection.
const CHUNKS: usize = 750;
const CHUNK: usize = 2000;

async fn talks_and(last: &str) -> (Client, Turn) {
    let chunk = "x".repeat(CHUNK);
    let agent = agent(&format!(
        "start; prompt; i=0; while [ $i -lt {CHUNKS} ]; do say {chunk}; i=$((i+1)); done; {last}"
    ));
    let client = within(Client::builder().spawn(agent)).await.unwrap();
    let session = within(client.new_session("/")).await.unwrap();
    let turn = session.prompt("hi").await.unwrap();
    within(client.process().unwrap().exited()).await;
    // A failed call means that the connection has noticed.
    within(client.authenticate("x")).await.unwrap_err();
    (client, turn)
}

#[tokio::test]
async fn nothing_is_lost_of_an_agent_that_says_much_and_leaves() {
    let (_client, turn) = talks_and("end end_turn").await;
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(60)).await;
    tokio::time::resume();
    let outcome = within(turn.outcome()).await.unwrap();
    assert_eq!(outcome.text.len(), CHUNKS * CHUNK);
}

#[tokio::test]
async fn what_an_agent_said_before_it_died_comes_before_the_error() {
    let (_client, mut turn) = talks_and("exit 5").await;
    let mut events = 0;
    while within(turn.next()).await.is_some() {
        events += 1;
    }
    assert_eq!(events, CHUNKS);
    let error = within(turn.outcome()).await.unwrap_err();
    assert!(matches!(error, Error::AgentExited { .. }), "{error}");
}
