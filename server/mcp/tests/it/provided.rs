//! Servers that a client provides over its connection.

use std::sync::{Arc, Mutex};

use acp_client::remote::RemoteAgent;
use acp_client::{Client, ClientBuilder, Policy};
use acp_proxy::{McpTools, ToolCall};
use acp_sdk::v1::StopReason;
use acp_sdk::{RunningConnection, channel};
use acp_server::{AgentInfo, Handler, HandlerResult, Opening, Server, Session, Settings, Turn};
use acp_server_mcp::{ServerState, Servers};
use acp_server_remote::{AccessControl, Hosts, ServeSettings, Token, Tokens};
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, mpsc};
use tokio::time::timeout;

use crate::support::{GUARD, options, ready, state};

const TOKEN: &str = "a-token-for-the-tests-of-tools";

/// An agent that calls the tool that a prompt names, and writes progress and result as text.
struct Caller(mpsc::Sender<Servers>);

impl Handler for Caller {
    type State = Servers;

    fn info(&self) -> AgentInfo {
        acp_server_mcp::advertise(AgentInfo::new("caller", "1"))
    }

    async fn open(&self, servers: &mut Servers, opening: &Opening) -> HandlerResult<Settings> {
        *servers = Servers::connect(&opening.session, &options()).await;
        self.0.send(servers.clone()).await.unwrap();
        Ok(Settings::new())
    }

    async fn prompt(&self, servers: &mut Servers, turn: Turn) -> HandlerResult<StopReason> {
        let reports = Arc::new(Mutex::new(String::new()));
        let reported = reports.clone();
        let report = move |progress: acp_server_mcp::Progress| {
            *reported.lock().unwrap() += &format!("{} ", progress.progress);
        };
        let name = format!("editor__{}", turn.prompt_text());
        let called =
            servers.call_with_progress(&name, Default::default(), turn.cancelled(), report);
        let text = match called.await {
            Ok(output) => format!("{} ({})", output.text(), output.is_error),
            Err(error) => error.to_string(),
        };
        let reports = reports.lock().unwrap().clone();
        turn.send_text(reports + &text).await?;
        Ok(StopReason::EndTurn)
    }

    async fn close(&self, servers: Servers, _: &Session) {
        servers.close().await;
    }
}

/// What happens to the tool `wait`.
struct Gates {
    begun: Semaphore,
    dropped: Semaphore,
}

struct OnDrop(Arc<Gates>);

impl Drop for OnDrop {
    fn drop(&mut self) {
        self.0.dropped.add_permits(1);
    }
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Nothing {}

fn tools(gates: &Arc<Gates>) -> McpTools {
    let gates = gates.clone();
    McpTools::new("editor")
        .tool(
            "where",
            "The session.",
            |_: Nothing, call: ToolCall| async move {
                for done in 1..=20 {
                    call.progress(f64::from(done), Some(20.0), None).await;
                }
                Ok(call.session().unwrap_or("none").to_owned())
            },
        )
        .tool("fail", "Fails.", |_: Nothing, _: ToolCall| async move {
            Err::<String, _>(acp_proxy::ToolError::new("no such file"))
        })
        .tool("wait", "Waits.", move |_: Nothing, _: ToolCall| {
            let gates = gates.clone();
            async move {
                let _dropped = OnDrop(gates.clone());
                gates.begun.add_permits(1);
                std::future::pending::<()>().await;
                Ok("")
            }
        })
}

fn gates() -> Arc<Gates> {
    Arc::new(Gates {
        begun: Semaphore::new(0),
        dropped: Semaphore::new(0),
    })
}

async fn passes(gate: &Semaphore) {
    let passed = timeout(GUARD, gate.acquire()).await;
    passed.expect("in time").unwrap().forget();
}

/// Returns a client that has the tools.
fn client(is_v2: bool, tools: McpTools) -> ClientBuilder {
    let mut client = Client::builder().permissions(Policy::DenyAll);
    if is_v2 {
        client = client.offer_v2();
    }
    client.through(|agent| tools.proxy().in_front_of(agent))
}

/// Connects a client that has the tools to the server.
async fn connect(server: &Server, is_v2: bool, tools: McpTools) -> (Client, RunningConnection) {
    let (near, far) = channel(64 << 10);
    let running = server.attach(far);
    let client = client(is_v2, tools).connect(near);
    (client.await.unwrap(), running)
}

async fn said(session: &acp_client::Session, prompt: &str) -> String {
    let turn = session.prompt(prompt).await.unwrap();
    turn.outcome().await.unwrap().to_string()
}

async fn tools_of_a_client_are_called_over_its_connection(is_v2: bool) {
    let (opened, mut all) = mpsc::channel(1);
    let server = Server::new(Caller(opened));
    let gates = gates();
    let (client, _running) = connect(&server, is_v2, tools(&gates)).await;
    let cwd = tempfile::tempdir().unwrap();
    let session = client
        .new_session(cwd.path().to_str().unwrap())
        .await
        .unwrap();
    let servers = all.recv().await.unwrap();
    ready(&servers).await;
    let names: Vec<_> = servers.tools().into_iter().map(|tool| tool.name).collect();
    assert_eq!(names, ["editor__where", "editor__fail", "editor__wait"]);

    let reports: String = (1..=20).map(|done| format!("{done} ")).collect();
    let expected = format!("{reports}{} (false)", session.id());
    assert_eq!(said(&session, "where").await, expected);
    assert_eq!(said(&session, "fail").await, "no such file (true)");
    let turn = session.prompt("wait").await.unwrap();
    passes(&gates.begun).await;
    turn.cancel();
    passes(&gates.dropped).await;
    assert_eq!(
        turn.outcome().await.unwrap().stop_reason,
        StopReason::Cancelled
    );

    // A call ends with the connection of its client; the session goes on.
    let call = servers.call("editor__wait", Default::default(), std::future::pending());
    let leaving = async {
        passes(&gates.begun).await;
        client.shutdown().await;
    };
    let (called, ()) = tokio::join!(timeout(GUARD, call), leaving);
    let error = called.expect("in time").unwrap_err().to_string();
    // Either the tool's answer says so, or the end of the connection.
    assert!(
        error.contains("is provided by a client that is not connected"),
        "{error}"
    );
    state(&servers, |state| {
        matches!(state, ServerState::Restarting { .. })
    })
    .await;

    // Another client opens the session again and provides the server anew.
    let (client, _running) = connect(&server, is_v2, tools(&gates)).await;
    let cwd = cwd.path().to_str().unwrap();
    let session = client
        .load_session(session.id().clone(), cwd)
        .await
        .unwrap();
    ready(&servers).await;
    assert_eq!(said(&session, "fail").await, "no such file (true)");
    session.close().await.unwrap();
    state(&servers, |state| *state == ServerState::Closed).await;
    client.shutdown().await;
    server.shutdown().await;
}

/// The session has a tool that its client adds while the session runs, and no other afterwards.
async fn changes_of_the_tools_of_a_client_are_followed(is_v2: bool) {
    let (opened, mut all) = mpsc::channel(1);
    let server = Server::new(Caller(opened));
    let (tools, list) = McpTools::new("editor").changeable();
    let (client, _running) = connect(&server, is_v2, tools).await;
    let session = client.new_session("/").await.unwrap();
    let servers = all.recv().await.unwrap();
    let have = |tools| {
        state(&servers, move |state| {
            *state == ServerState::Ready { tools }
        })
    };
    have(0).await;
    // What follows the first list is not missed.
    list.set("later", "Added.", |_: Nothing, _: ToolCall| async {
        Ok("added")
    });
    have(1).await;
    assert_eq!(said(&session, "later").await, "added (false)");
    client.shutdown().await;
    server.shutdown().await;
}

fn on_each_runtime<F: Future<Output = ()>>(test: impl Fn(bool) -> F) {
    let mut one = tokio::runtime::Builder::new_current_thread();
    let mut several = tokio::runtime::Builder::new_multi_thread();
    for runtime in [&mut one, several.worker_threads(3)] {
        let runtime = runtime.enable_all().build().unwrap();
        for is_v2 in [false, true] {
            runtime.block_on(test(is_v2));
        }
    }
}

#[test]
fn a_client_of_each_version_provides_tools_on_each_runtime() {
    on_each_runtime(tools_of_a_client_are_called_over_its_connection);
}

#[test]
fn a_client_of_each_version_changes_its_tools_on_each_runtime() {
    on_each_runtime(changes_of_the_tools_of_a_client_are_followed);
}

/// Calls the tools of a client that is connected over HTTP, or over WebSocket.
async fn tools_are_called_at(address: &str, is_v2: bool, servers: &mut mpsc::Receiver<Servers>) {
    let gates = gates();
    let token = acp_client::remote::Token::new(TOKEN).unwrap();
    let agent = RemoteAgent::new(address).unwrap().token(token);
    let (tools, list) = tools(&gates).changeable();
    let client = client(is_v2, tools).connect_remote(agent).await.unwrap();
    let session = client.new_session("/").await.unwrap();
    let servers = servers.recv().await.unwrap();
    ready(&servers).await;
    let reports: String = (1..=20).map(|done| format!("{done} ")).collect();
    let (said, answer) = (
        said(&session, "where").await,
        format!("{} (false)", session.id()),
    );
    let reported = said.strip_suffix(&answer);
    // Over HTTP the answer may overtake the last posts, and progress after it counts no more.
    let arrives = |reported: &str| match address.starts_with("http") {
        true => reports.starts_with(reported),
        false => reports == reported,
    };
    assert!(reported.is_some_and(arrives), "{address}: {said}");
    let turn = session.prompt("wait").await.unwrap();
    passes(&gates.begun).await;
    turn.cancel();
    passes(&gates.dropped).await;
    turn.outcome().await.unwrap();
    list.set("later", "Added.", |_: Nothing, _: ToolCall| async {
        Ok("")
    });
    state(&servers, |state| *state == ServerState::Ready { tools: 4 }).await;
    session.close().await.unwrap();
    client.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_provides_tools_over_http_and_websocket() {
    let (opened, mut servers) = mpsc::channel(1);
    let token: Token = TOKEN.parse().unwrap();
    let access = AccessControl::new(Hosts::loopback(), Tokens::new(&token));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let server = Server::new(Caller(opened));
    let serving = acp_server_remote::serve(server, listener, ServeSettings::new(access));
    let calling = async {
        for scheme in ["http", "ws"] {
            for is_v2 in [false, true] {
                let address = format!("{scheme}://127.0.0.1:{port}/acp");
                tools_are_called_at(&address, is_v2, &mut servers).await;
            }
        }
    };
    tokio::select! {
        () = serving => panic!("the server has ended"),
        () = calling => {}
    }
}
