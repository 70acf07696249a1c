//! The bridge from programs to MCP servers inside of the connection.

use acp_proxy::{BridgeCommand, McpTools, bridge};
use acp_sdk::{ChannelTransport, channel};
use rmcp::ClientHandler;
use rmcp::model::{CallToolRequestParams, ProtocolVersion, ServerNotification, SubscriptionFilter};
use rmcp::service::{
    ClientLifecycleMode, NotificationContext, RoleClient, RunningService, serve_client,
    serve_client_with_lifecycle,
};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio::time::timeout;

use crate::mcp::{Gates, LIMIT, Nothing, initialized, message, opened, tools};
use crate::wire::{Peer, both_runtimes};

/// Client and agent with the tools, and the bridge.
fn bridged(tools: McpTools) -> (Peer, Peer) {
    let (far, agent) = channel(64 << 10);
    let (client, near): (ChannelTransport, _) = channel(64 << 10);
    let command = BridgeCommand::new("/bin/bridge", ["to"]);
    let front = tools.proxy();
    let behind = bridge(command).in_front_of(far);
    tokio::spawn(front.run(near, behind));
    (Peer(client), Peer(agent))
}

/// A program that passes on that the tools have changed.
struct Told(mpsc::Sender<()>);

impl ClientHandler for Told {
    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.0.send(()).await.unwrap();
    }
}

async fn received(changes: &mut mpsc::Receiver<()>) {
    let change = timeout(LIMIT, changes.recv()).await;
    change.expect("in time").unwrap();
}

/// Connects as the program that is declared.
async fn program(server: &Value) -> TcpStream {
    let address = server["args"][1].as_str().unwrap();
    let secret = server["env"][0]["value"].as_str().unwrap();
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream
        .write_all(format!("{secret}\n").as_bytes())
        .await
        .unwrap();
    stream
}

async fn mcp(server: &Value) -> RunningService<RoleClient, ()> {
    let (input, output) = program(server).await.into_split();
    let serving = serve_client((), (input, output));
    timeout(LIMIT, serving).await.expect("in time").unwrap()
}

/// Waits until the other side closes the connection.
async fn closed(mut stream: TcpStream) {
    let mut rest = Vec::new();
    // Closed with unread bytes, it is reset.
    let _ = timeout(LIMIT, stream.read_to_end(&mut rest))
        .await
        .expect("in time");
    assert!(rest.is_empty());
}

both_runtimes! {
    async fn agents_that_know_programs_reach_the_tools_through_one() {
        for version in [1, 2] {
            let gates = Gates::default();
            let (mut client, mut agent) = bridged(tools(&gates));
            initialized(&mut client, &mut agent, version, json!({})).await;
            let servers = opened(&mut client, &mut agent, json!([])).await;
            let server = &servers[0];
            assert_eq!(server["command"], "/bin/bridge");
            assert_eq!(server["args"][0], "to");
            assert_eq!(server.get("type").is_some(), version == 2, "{server}");

            let mcp = mcp(server).await;
            let tools = mcp.list_all_tools().await.unwrap();
            assert_eq!(tools.iter().map(|tool| &*tool.name).collect::<Vec<_>>(), ["count", "fail", "wait"]);
            let params = CallToolRequestParams::new("count").with_arguments(
                serde_json::Map::from_iter([("text".to_owned(), json!("four"))]),
            );
            let result = mcp.call_tool(params).await.unwrap();
            assert_eq!(result.structured_content, Some(json!({"bytes": 4, "session": "s"})));
            // The session goes on meanwhile.
            let calling = mcp.call_tool(CallToolRequestParams::new("wait").with_arguments(Default::default()));
            let prompting = async {
                gates.begun.pass().await;
                agent.send(&crate::wire::update("s", "meanwhile")).await;
                assert_eq!(client.json().await["params"]["update"]["content"]["text"], "meanwhile");
                gates.open.0.add_permits(1);
            };
            let (result, ()) = tokio::join!(calling, prompting);
            assert_eq!(serde_json::to_value(result.unwrap()).unwrap()["content"][0]["text"], "done");
        }
    }

    async fn programs_are_told_when_the_tools_change() {
        for version in [1, 2] {
            let (tools, list) = tools(&Gates::default()).changeable();
            let (mut client, mut agent) = bridged(tools);
            initialized(&mut client, &mut agent, version, json!({})).await;
            let servers = opened(&mut client, &mut agent, json!([])).await;

            // One that begins with `initialize` is sent every change.
            let (sender, mut changes) = mpsc::channel(1);
            let (input, output) = program(&servers[0]).await.into_split();
            let serving = serve_client(Told(sender), (input, output));
            let old = timeout(LIMIT, serving).await.expect("in time").unwrap();
            let capabilities = old.peer_info().unwrap().capabilities.clone();
            assert_eq!(capabilities.tools.unwrap().list_changed, Some(true));
            assert_eq!(old.list_all_tools().await.unwrap().len(), 3);
            list.set("later", "Added", |_: Nothing, _| async { Ok("added") });
            received(&mut changes).await;
            assert_eq!(old.list_all_tools().await.unwrap().len(), 4);
            assert!(list.remove("later") && !list.remove("later"));
            received(&mut changes).await;
            old.cancel().await.unwrap();

            // A newer one subscribes, with an id of its own.
            let servers = opened(&mut client, &mut agent, json!([])).await;
            let (input, output) = program(&servers[0]).await.into_split();
            let lifecycle = ClientLifecycleMode::Discover {
                preferred_versions: vec![ProtocolVersion::V_2026_07_28],
            };
            let serving = serve_client_with_lifecycle((), (input, output), lifecycle);
            let new = timeout(LIMIT, serving).await.expect("in time").unwrap();
            let filter = || SubscriptionFilter::builder().tools_list_changed();
            let listening = new.listen(filter().prompts_list_changed().build());
            let mut subscription = timeout(LIMIT, listening).await.expect("in time").unwrap();
            assert_eq!(*subscription.acknowledged(), filter().build());
            list.set("later", "Added", |_: Nothing, _| async { Ok("added") });
            let change = timeout(LIMIT, subscription.next()).await.expect("in time").unwrap();
            assert!(matches!(change, Some(ServerNotification::ToolListChangedNotification(_))));
            subscription.cancel().await.unwrap();
            assert_eq!(new.list_all_tools().await.unwrap().len(), 4);
        }
    }

    async fn lines_of_older_clients_are_answered_and_cancelled() {
        let gates = Gates::default();
        let (mut client, mut agent) = bridged(tools(&gates));
        initialized(&mut client, &mut agent, 1, json!({})).await;
        let servers = opened(&mut client, &mut agent, json!([])).await;
        let mut stream = program(&servers[0]).await;
        let mut lines = Lines(Vec::new());
        let initialize = json!({"jsonrpc": "2.0", "id": "a", "method": "initialize", "params": {
            "protocolVersion": "2024-11-05", "capabilities": {}, "clientInfo": {"name": "old", "version": "1"}}});
        lines.send(&mut stream, &initialize).await;
        let answer = lines.next(&mut stream).await;
        assert_eq!(answer["result"]["protocolVersion"], "2024-11-05");
        assert_eq!(answer["result"]["serverInfo"]["name"], "editor");
        assert_eq!(answer["result"]["capabilities"], json!({"tools": {}}));
        lines.send(&mut stream, &json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await;
        lines.send(&mut stream, &json!({"jsonrpc": "2.0", "id": 1, "method": "ping"})).await;
        assert_eq!(lines.next(&mut stream).await["result"], json!({}));
        let wait = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "wait", "arguments": {}}});
        lines.send(&mut stream, &wait).await;
        gates.begun.pass().await;
        let cancel = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 2}});
        lines.send(&mut stream, &cancel).await;
        gates.dropped.pass().await;
        assert_eq!(lines.next(&mut stream).await["id"], 2);
        let count = json!({"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": {
            "name": "count", "arguments": {"text": "ab"}, "_meta": {"progressToken": "p"}}});
        lines.send(&mut stream, &count).await;
        let progress = lines.next(&mut stream).await;
        assert_eq!(progress["method"], "notifications/progress");
        assert_eq!(progress["params"]["progressToken"], "p");
        assert_eq!(lines.next(&mut stream).await["result"]["structuredContent"]["bytes"], 2);
    }

    async fn only_who_knows_the_secret_is_served_and_only_once_at_a_time() {
        let (mut client, mut agent) = bridged(tools(&Gates::default()));
        initialized(&mut client, &mut agent, 1, json!({})).await;
        let servers = opened(&mut client, &mut agent, json!([])).await;
        let mut other = servers[0].clone();
        for secret in ["0".repeat(32), "x".repeat(1000), String::new()] {
            other["env"][0]["value"] = secret.into();
            let mut stream = program(&other).await;
            // One that is too short waits for the limit otherwise.
            let _ = stream.shutdown().await;
            closed(stream).await;
        }
        let first = mcp(&servers[0]).await;
        closed(program(&servers[0]).await).await;
        assert_eq!(first.list_all_tools().await.unwrap().len(), 3);
        // The agent may start its program again.
        first.cancel().await.unwrap();
        loop {
            let (input, output) = program(&servers[0]).await.into_split();
            let again = timeout(LIMIT, serve_client((), (input, output))).await.expect("in time");
            if again.is_ok() {
                break;
            }
        }
    }

    async fn programs_end_with_their_session_and_with_the_connection() {
        let (mut client, mut agent) = bridged(tools(&Gates::default()));
        initialized(&mut client, &mut agent, 1, json!({})).await;
        let [first, second] = [
            opened(&mut client, &mut agent, json!([])).await,
            {
                let params = json!({"cwd": "/project", "sessionId": "t", "mcpServers": []});
                let request = json!({"jsonrpc": "2.0", "id": 1, "method": "session/load", "params": params});
                client.send(&request.to_string()).await;
                let request = agent.json().await;
                agent.send(&json!({"jsonrpc": "2.0", "id": request["id"], "result": {}}).to_string()).await;
                client.json().await;
                request["params"]["mcpServers"].clone()
            },
        ];
        let (of_first, of_second) = (mcp(&first[0]).await, mcp(&second[0]).await);
        let close = json!({"jsonrpc": "2.0", "id": 9, "method": "session/close", "params": {"sessionId": "s"}});
        client.send(&close.to_string()).await;
        let request = agent.json().await;
        agent.send(&json!({"jsonrpc": "2.0", "id": request["id"], "result": {}}).to_string()).await;
        client.json().await;
        timeout(LIMIT, of_first.waiting()).await.expect("the program ends").unwrap();
        assert_eq!(of_second.list_all_tools().await.unwrap().len(), 3);
        agent.close().await;
        drop(agent);
        timeout(LIMIT, of_second.waiting()).await.expect("the program ends").unwrap();
    }

    async fn agents_that_take_servers_get_them_unchanged() {
        let (mut client, mut agent) = bridged(tools(&Gates::default()));
        initialized(&mut client, &mut agent, 2, json!({"acp": {}})).await;
        let servers = opened(&mut client, &mut agent, json!([])).await;
        assert_eq!(servers[0]["type"], "acp");
        agent.send(&message(2, &servers[0], "tools/list", &json!({}))).await;
        let answer = agent.json().await;
        assert_eq!(answer["result"]["result"]["tools"][2]["name"], "wait", "{answer}");
    }
}

/// JSON in lines.
struct Lines(Vec<u8>);

impl Lines {
    async fn send(&self, stream: &mut TcpStream, message: &Value) {
        let line = format!("{message}\n");
        stream.write_all(line.as_bytes()).await.unwrap();
    }

    async fn next(&mut self, stream: &mut TcpStream) -> Value {
        loop {
            if let Some(end) = self.0.iter().position(|byte| *byte == b'\n') {
                let line: Vec<_> = self.0.drain(..=end).collect();
                return serde_json::from_slice(&line).unwrap();
            }
            let read = stream.read_buf(&mut self.0);
            let read = timeout(LIMIT, read).await.expect("in time").unwrap();
            assert_ne!(read, 0, "a line and no end");
        }
    }
}
