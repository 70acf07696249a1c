//! The blocking client.

mod twins;

use acp_client::{AgentCommand, Client, ConversationStep, Error, Event, Policy, blocking};
use acp_sdk::Json;
use acp_sdk::v1::{LoadSessionRequest, NewSessionRequest, ResumeSessionRequest, StopReason};
use serde_json::json;

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
    let mut live = session.conversation();
    let mut turn = session.prompt("hi").unwrap();
    let first = turn.next().unwrap();
    assert!(matches!(first.event, Event::Update(_)), "{first:?}");
    assert_eq!(turn.outcome().unwrap().text, "Hello you");
    assert!(reading.join().unwrap().is_some());
    let is_end = |step: &ConversationStep| matches!(step.event.event, Event::TurnEnded { .. });
    assert!(live.by_ref().any(|step| is_end(&step)));
    let messages = live
        .conversation()
        .items()
        .filter_map(|item| item.as_message());
    let texts: Vec<_> = messages.map(|message| message.text()).collect();
    assert_eq!(texts, ["hi", "Hello you"]);
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

/// Everything that an editor without async needs beside prompts.
#[test]
fn a_program_without_a_runtime_uses_the_whole_protocol() {
    let client = client(
        r#"
        info='{"protocolVersion":1,"agentCapabilities":{"loadSession":true,"auth":{"logout":{}},'
        answer "$info"'"sessionCapabilities":{"list":{},"resume":{},"close":{},"delete":{}}},"authMethods":[{"id":"key","name":"Key"}]}'
        answer '{}'
        answer '{"sessionId":"a"}'
        answer '{}'
        answer '{"configOptions":[{"id":"model","name":"Model","type":"select","currentValue":"b","options":[]}]}'
        answer '{}'; answer '{}'
        answer '{"sessionId":"c"}'
        answer '{"sessions":[{"sessionId":"a","cwd":"/"}],"nextCursor":"1"}'
        refuse 1 gone
        answer '{"sessions":[{"sessionId":"a","cwd":"/"}]}'
        answer '{}'
        answer '{"answer":42}'
        message; answer "{\"was\":\"$(quoted)\"}"
        answer '{}'; answer '{}'
        cat >/dev/null"#,
    );
    client.authenticate("key").unwrap();
    let new = client.new_session_with(NewSessionRequest::new("/", Vec::new()));
    let session = new.unwrap();
    session.set_mode("ask").unwrap();
    let options = session.set_config_option("model", "b").unwrap();
    assert_eq!(session.settings().config_options, Some(options));

    let load = LoadSessionRequest::new("d", "/", Vec::new());
    client.load_session_with(load).unwrap();
    let resume = ResumeSessionRequest::new("e", "/");
    client.resume_session_with(resume).unwrap();
    assert_eq!(client.fork_session("a", "/").unwrap().id().as_str(), "c");
    let mut list = client.sessions(None).unwrap();
    assert_eq!(list.next().unwrap().unwrap().session_id.as_str(), "a");
    assert!(list.next().unwrap().is_err());
    assert!(list.next().is_none(), "an error is the last item");
    assert_eq!(client.list_sessions(None).unwrap().len(), 1);
    client.delete_session("d").unwrap();

    let params = Json::from(json!({"a": 1}));
    let answer = client.extension_request("_x/ask", Some(&params)).unwrap();
    assert_eq!(answer.to_value().unwrap()["answer"], 42);
    client.extension_notification("_x/tell", None).unwrap();
    let answer = client.extension_request("_x/was", None).unwrap();
    assert!(answer.get().contains("_x/tell"), "{answer:?}");
    session.close().unwrap();
    client.logout().unwrap();
    assert!(client.login_command("key").is_none());
    let closed = client.block_on(async { 1 });
    assert_eq!(closed.unwrap(), 1);
}

#[test]
fn a_turn_is_cancelled_and_read_by_another_thread() {
    let client = client("start; prompt; say Hello; message; end cancelled; cat >/dev/null");
    let session = client.new_session("/").unwrap();
    let events = session.events();
    let reading = std::thread::spawn(move || {
        let ends =
            |event: &acp_client::SessionEvent| matches!(event.event, Event::TurnEnded { .. });
        let mut events = events;
        events.find(ends).is_some()
    });
    let mut turn = session.prompt("hi").unwrap();
    turn.next().unwrap();
    assert_eq!(turn.so_far().text, "Hello");
    turn.cancel();
    let outcome = turn.outcome_when_read().unwrap();
    assert_eq!(outcome.stop_reason, StopReason::Cancelled);
    assert!(reading.join().unwrap());
}
