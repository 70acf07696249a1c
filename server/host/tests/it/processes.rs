//! Which session gets which process, and when processes end.

use acp_server::Server;
use acp_server_host::AgentProcesses;
use serde_json::json;

use crate::client::{Client, Script, limits, runs};

#[tokio::test]
async fn sessions_of_equal_clients_share_a_process() {
    let script = Script::new();
    let (server, agent) = script.server().await;
    let mut one = Client::with_session(&server).await;
    let mut two = Client::with_session(&server).await;
    one.prompt("env").await;
    two.prompt("env").await;
    assert_eq!(one.said(), two.said());
    assert_eq!(script.starts().len(), 1);
    // A client that offers files has a process that knows of them.
    let offered = json!({ "fs": { "readTextFile": true }, "terminal": true });
    let mut editor = Client::offering(&server, offered).await;
    editor.create().await;
    assert_eq!(script.starts().len(), 2);
    let hello = &script.received("initialize")[1]["params"]["clientCapabilities"];
    assert_eq!(hello["fs"]["readTextFile"], true);
    assert_ne!(hello["fs"]["writeTextFile"], true);
    assert_eq!(hello["terminal"], true);
    server.shutdown().await;
    agent.shutdown().await;
    script.all_gone().await;
}

#[tokio::test]
async fn sessions_can_have_processes_of_their_own() {
    let script = Script::new();
    let mut few = limits();
    few.processes = 2;
    let agent = script
        .agent()
        .processes(AgentProcesses::PerSession)
        .limits(few);
    let agent = agent.start().await.unwrap();
    let server = Server::new(agent);
    let mut one = Client::with_session(&server).await;
    assert_eq!(script.starts().len(), 1, "the first process was not used");
    let mut two = Client::with_session(&server).await;
    one.prompt("die").await;
    two.prompt("hello").await;
    assert_eq!(two.said(), ["hi"]);
    one.prompt("hello").await;
    let mut third = Client::attach(&server).await;
    let error = third.create().await["error"]["message"].clone();
    assert!(error.as_str().unwrap().contains("2 processes"), "{error}");
    two.close().await;
    assert!(third.create().await["error"].is_null());
    drop((one, two, third));
    server.shutdown().await;
    script.all_gone().await;
}

#[tokio::test]
async fn sessions_that_are_opened_at_once_do_not_end_each_others_processes() {
    let script = Script::new();
    let (server, _agent) = script.server().await;
    let open = |capabilities: serde_json::Value| {
        let server = server.clone();
        tokio::spawn(async move {
            let mut client = Client::offering(&server, capabilities).await;
            let answer = client.create().await;
            (client, answer)
        })
    };
    let offers = [
        json!({}),
        json!({ "terminal": true }),
        json!({ "fs": { "readTextFile": true } }),
        json!({ "fs": { "writeTextFile": true } }),
    ];
    let opening: Vec<_> = offers.iter().cycle().take(12).cloned().map(open).collect();
    let mut clients = Vec::new();
    for opened in opening {
        let (client, answer) = opened.await.unwrap();
        assert!(answer["error"].is_null(), "{answer}");
        clients.push(client);
    }
    for client in &mut clients {
        client.prompt("hello").await;
        assert_eq!(client.said().last().unwrap(), "hi");
    }
}

#[tokio::test]
async fn an_idle_process_gives_way() {
    let script = Script::new();
    let (server, _agent) = script.server().await;
    let offered = json!({ "terminal": true });
    let mut editor = Client::offering(&server, offered).await;
    editor.create().await;
    let first = script.starts()[0].clone();
    assert!(!runs(&first), "it still runs");
    let mut plain = Client::with_session(&server).await;
    plain.prompt("hello").await;
    assert_eq!(script.starts().len(), 3);
}

#[tokio::test]
async fn authentication_is_passed_on_and_repeated_in_new_processes() {
    let script = Script::new();
    let (server, _agent) = script.server().await;
    let mut client = Client::attach(&server).await;
    let answer = client
        .call("authenticate", json!({ "methodId": "key" }))
        .await;
    assert!(answer["error"].is_null(), "{answer}");
    let received = script.received("authenticate");
    assert_eq!(received[0]["params"]["methodId"], "key");
    client.create().await;
    client.prompt("die").await;
    client.prompt("hello").await;
    assert_eq!(script.received("authenticate").len(), 2);
    assert_eq!(
        client.call("logout", json!({})).await["error"]["code"],
        -32601
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_storm_of_reconnects_starts_one_process_and_loads_its_session_once() {
    let script = Script::new();
    let agent = script.agent().env("CAN", "load").start().await.unwrap();
    let server = Server::new(agent);
    let mut first = Client::with_session(&server).await;
    first.prompt("hello").await;
    first.prompt("die").await;
    let session = first.session.clone();
    drop(first);
    let reconnect = |_| {
        let (server, session) = (server.clone(), session.clone());
        tokio::spawn(async move {
            let mut client = Client::attach(&server).await;
            client.session = session;
            let loaded = client.load().await;
            (loaded, client.prompt("hello").await)
        })
    };
    let reconnecting: Vec<_> = (0..12).map(reconnect).collect();
    for reconnected in reconnecting {
        let (loaded, answer) = reconnected.await.unwrap();
        assert!(loaded["error"].is_null(), "{loaded}");
        assert_eq!(answer["result"]["stopReason"], "end_turn", "{answer}");
    }
    assert_eq!(script.starts().len(), 2);
    assert_eq!(script.received("session/load").len(), 1);
}

#[tokio::test]
async fn one_client_that_is_known_before_starts_one_process() {
    let offered = json!({ "fs": { "readTextFile": true }, "elicitation": { "form": {} } });
    let capabilities = serde_json::from_value(offered.clone()).unwrap();
    for processes in [AgentProcesses::Shared, AgentProcesses::PerSession] {
        let script = Script::new();
        let agent = script.agent().processes(processes);
        let agent = agent.first_client(&capabilities).start().await.unwrap();
        let server = Server::new(agent);
        let mut editor = Client::offering(&server, offered.clone()).await;
        editor.create().await;
        editor.skip_greeting().await;
        editor.prompt("hello").await;
        assert_eq!(editor.said(), ["hi"]);
        assert_eq!(script.starts().len(), 1, "{processes:?}");
        let hello = &script.received("initialize")[0]["params"]["clientCapabilities"];
        assert_eq!(hello["fs"]["readTextFile"], true);
        assert_eq!(hello["elicitation"], json!({ "form": {} }));
    }
}

#[tokio::test]
async fn a_hundred_sessions_that_are_opened_at_once_start_one_process() {
    let script = Script::new();
    let (server, _agent) = script.server().await;
    let mut first = Client::with_session(&server).await;
    first.prompt("die").await;
    let mut clients = Vec::new();
    for _ in 0..100 {
        let mut client = Client::attach(&server).await;
        let params = json!({ "cwd": "/w", "mcpServers": [] });
        let id = client.begin("session/new", params).await;
        clients.push((client, id));
    }
    for (client, id) in &mut clients {
        let answer = client.answer(*id).await;
        assert!(answer["error"].is_null(), "{answer}");
    }
    assert_eq!(script.starts().len(), 2);
}

#[tokio::test]
async fn a_limit_on_processes_holds_for_sessions_that_are_opened_at_once() {
    let script = Script::new();
    let mut few = limits();
    few.processes = 3;
    let agent = script.agent().limits(few);
    let agent = agent.processes(AgentProcesses::PerSession);
    let server = Server::new(agent.start().await.unwrap());
    let open = |_| {
        let server = server.clone();
        tokio::spawn(async move {
            let mut client = Client::attach(&server).await;
            let answer = client.create().await;
            (client, answer["error"]["message"].clone())
        })
    };
    let opening: Vec<_> = (0..12).map(open).collect();
    let (mut clients, mut refused) = (Vec::new(), 0);
    for opened in opening {
        let (client, error) = opened.await.unwrap();
        clients.push(client);
        if let Some(error) = error.as_str() {
            assert!(error.contains("3 processes"), "{error}");
            refused += 1;
        }
    }
    assert_eq!(refused, 9);
    assert_eq!(script.starts().len(), 3);
}

#[tokio::test]
async fn an_unused_process_makes_room_if_its_session_can_go_on() {
    let script = Script::new();
    let mut few = limits();
    few.processes = 2;
    let agent = script.agent().limits(few).env("CAN", "load");
    let agent = agent.processes(AgentProcesses::PerSession);
    let server = Server::new(agent.start().await.unwrap());
    let mut one = Client::with_session(&server).await;
    let mut two = Client::with_session(&server).await;
    let running = one.begin_prompt("wait").await;
    one.update().await;
    let mut three = Client::with_session(&server).await;
    three.prompt("hello").await;
    assert_eq!(three.said(), ["hi"]);
    let starts = script.starts();
    assert_eq!(starts.len(), 3);
    assert!(runs(&starts[0]), "a turn runs there");
    assert!(!runs(&starts[1]), "more processes than the limit run");
    two.prompt("hello").await;
    assert_eq!(two.said(), ["hi"]);
    one.cancel().await;
    let answer = one.answer(running).await;
    assert_eq!(answer["result"]["stopReason"], "cancelled");
}
