//! When this machine is used, and when not.

use acp_sdk::v1::*;
use acp_server::{
    Capability, Error, Link, LocalTools, Policies, Received, ServerBuilder, Session, Turn,
};
use serde_json::json;

use crate::bench::{Bench, Silent, connect};

const TOOLS: [Capability; 3] = [
    Capability::ReadTextFile,
    Capability::WriteTextFile,
    Capability::Terminal,
];

fn with(tools: LocalTools) -> impl FnOnce(ServerBuilder) -> ServerBuilder {
    move |server| {
        let mut policies = Policies::default();
        policies.local_tools = Some(tools);
        server.policies(policies)
    }
}

fn reads() -> ClientCapabilities {
    let fs = FileSystemCapabilities::new().with_read_text_file(true);
    ClientCapabilities::new().with_fs(fs)
}

async fn assert_used(bench: &Bench, turn: &Turn) {
    assert!(TOOLS.iter().all(|tool| turn.offers(*tool)));
    turn.write_file("file", "text").await.unwrap();
    assert_eq!(bench.text("in/file"), "text");
    assert_eq!(turn.read_file("file").await.unwrap(), "text");
    let terminal = turn.terminal("true", []).await.unwrap();
    assert!(terminal.wait().await.unwrap().is_success());
    // No client has it, and a form is no matter of this machine.
    let client = turn.client(Capability::ReadTextFile).await;
    assert!(matches!(client, Err(Error::Unsupported(_))));
    assert!(!turn.offers(Capability::ElicitForm));
}

async fn assert_not_used(bench: &Bench, turn: &Turn) {
    assert!(!TOOLS.iter().any(|tool| turn.offers(*tool)));
    let results = [
        turn.write_file("file", "text").await,
        turn.read_file("file").await.map(drop),
        turn.terminal("touch", ["file"]).await.map(drop),
    ];
    for result in results {
        assert!(matches!(result, Err(Error::Unsupported(_))), "{result:?}");
    }
    assert_eq!(std::fs::read_dir(bench.path("in")).unwrap().count(), 0);
}

#[tokio::test]
async fn on_stdio_this_machine_is_used() {
    let bench = Bench::new().await;
    assert_used(&bench, &bench.turn().await).await;
}

/// Whoever creates a session chooses its directories, `/` if it likes.
#[tokio::test]
async fn on_a_remote_link_it_is_not_used() {
    let bench = Bench::linked(Link::Remote, ClientCapabilities::new(), |server| server).await;
    assert_not_used(&bench, &bench.turn().await).await;
}

#[tokio::test]
async fn the_policy_overrides_the_link() {
    let bench = Bench::with(with(LocalTools::Off)).await;
    assert_not_used(&bench, &bench.turn().await).await;
    let offered = ClientCapabilities::new();
    let bench = Bench::linked(Link::Remote, offered, with(LocalTools::Fallback)).await;
    assert_used(&bench, &bench.turn().await).await;
}

#[tokio::test]
async fn a_session_overrides_its_server() {
    let bench = Bench::new().await;
    let turn = bench.turn().await;
    let set = |session: &Session, tools| {
        let mut policies = session.policies();
        policies.local_tools = Some(tools);
        session.set_policies(policies);
    };
    set(turn.session(), LocalTools::Off);
    assert_not_used(&bench, &turn).await;
    set(turn.session(), LocalTools::Fallback);
    assert_used(&bench, &turn).await;
}

#[tokio::test]
async fn prompts_of_the_program_itself_use_it_when_told() {
    for tools in [None, Some(LocalTools::Fallback)] {
        let bench = match tools {
            None => Bench::new().await,
            Some(tools) => Bench::with(with(tools)).await,
        };
        let session = bench.server.session(&bench.session).await.unwrap();
        let block = ContentBlock::Text(TextContent::new("go"));
        let _prompt = session.prompt(vec![block]).unwrap();
        let turn = bench.next_turn().await;
        match tools {
            None => assert_not_used(&bench, &turn).await,
            Some(_) => assert_used(&bench, &turn).await,
        }
    }
}

/// Each call goes to a client that offers it: the one that prompted, or another one.
#[tokio::test]
async fn clients_come_first() {
    let bench = Bench::new().await;
    bench.file("in/file", "from this machine");
    let turn = bench.turn().await;
    assert_eq!(turn.read_file("file").await.unwrap(), "from this machine");
    let other = connect(&bench.server, Link::Stdio, &Silent::default(), reads()).await;
    let request = LoadSessionRequest::new(&bench.session, bench.named("in"), vec![]);
    other.load_session(request).await.unwrap();
    assert_eq!(turn.read_file("file").await.unwrap(), "from the client");
    // It does not offer to write.
    turn.write_file("file", "new").await.unwrap();
    assert_eq!(bench.text("in/file"), "new");
}

/// What is in the log does not depend on who served the call.
#[tokio::test]
async fn events_are_those_of_a_client() {
    let mut logs = Vec::new();
    for offered in [reads(), ClientCapabilities::new()] {
        let bench = Bench::linked(Link::Stdio, offered, |server| server).await;
        bench.file("in/file", "from the client");
        let (turn, prompt) = bench.begin().await;
        let mut call = turn.tool_call("Read", ToolKind::Read).await.unwrap();
        let text = turn.read_file("file").await.unwrap();
        call.add_text(text).await.unwrap();
        call.complete("").await.unwrap();
        bench.end(prompt).await;
        let session = bench.server.session(&bench.session).await.unwrap();
        let mut events = Vec::new();
        let mut history = session.history();
        while let Some(received) = history.next().await.unwrap() {
            let Received::Event(event) = received else {
                panic!("expected an event, got {received:?}");
            };
            // Times differ.
            events.push(format!("{} {:?}", event.number, event.body));
        }
        logs.push(json!(events));
    }
    assert_eq!(logs[0], logs[1]);
    assert_eq!(logs[0].as_array().unwrap().len(), 6);
}
