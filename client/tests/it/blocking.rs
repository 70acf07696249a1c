//! The blocking client.

use acp_client::{AgentCommand, Client, Error, Event, Policy, blocking};

use crate::script::script;

fn agent(text: &str) -> AgentCommand {
    AgentCommand::new("sh").args(["-c".to_owned(), script(text)])
}

fn client(text: &str) -> blocking::Client {
    let builder = Client::builder().permissions(Policy::ApproveAll);
    blocking::Client::spawn(builder, agent(text)).unwrap()
}

#[test]
fn a_program_without_a_runtime_prompts_and_reads() {
    let client = client("start; prompt; say Hello; say ' you'; end end_turn; cat >/dev/null");
    let session = client.new_session("/").unwrap();
    let events = session.events();
    let reading = std::thread::spawn(move || {
        let mut events = events;
        events.find(|event| matches!(event.event, Event::TurnEnded { .. }))
    });
    let mut turn = session.prompt("hi").unwrap();
    let first = turn.next().unwrap();
    assert!(matches!(first.event, Event::Update(_)), "{first:?}");
    assert_eq!(turn.outcome().unwrap().text, "Hello you");
    assert!(reading.join().unwrap().is_some());
    assert!(client.shutdown().is_some());
}

#[test]
fn text_is_called_back_and_an_agent_that_dies_is_an_error() {
    let client = client("start; prompt; say Hello; exit 3");
    let session = client.new_session("/").unwrap();
    let mut text = String::new();
    let turn = session.prompt("hi").unwrap();
    let error = turn.on_text(|piece| text.push_str(piece)).unwrap_err();
    assert!(matches!(error, Error::AgentExited { .. }), "{error}");
    assert_eq!(text, "Hello");
}

#[tokio::test]
async fn it_is_refused_in_an_async_function() {
    let builder = Client::builder();
    let error = blocking::Client::spawn(builder, agent("start")).unwrap_err();
    assert!(
        error.to_string().contains("use acp_client::Client"),
        "{error}"
    );
}
