//! MCP servers inside of the connection: tools, and the bridge to agents that only know programs.

use std::sync::Arc;
use std::time::Duration;

use acp_client::{Rule, Rules};
use acp_proxy::{BridgeCommand, McpTools, Side, ToolCall, ToolError, bridge, proxies};
use acp_sdk::{ChannelTransport, channel};
use rmcp::model::CallToolRequestParams;
use rmcp::service::{RoleClient, RunningService, serve_client};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout};

use crate::wire::{Peer, Wired, both_runtimes, wired};

/// Longer than anything takes on a busy machine.
const LIMIT: Duration = Duration::from_secs(30);

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Text {
    text: String,
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Nothing {}

/// What the tools of [`tools`] wait for, and what they show.
#[derive(Clone, Default)]
struct Gates {
    /// A permit lets a call of `wait` complete.
    open: Arc<Gate>,
    /// Has a permit for each call of `wait` that was begun.
    begun: Arc<Gate>,
    /// Has a permit for each call of `wait` that was dropped before its end.
    dropped: Arc<Gate>,
}

struct Gate(Semaphore);

impl Default for Gate {
    fn default() -> Self {
        Self(Semaphore::new(0))
    }
}

impl Gate {
    async fn pass(&self) {
        let passed = timeout(LIMIT, self.0.acquire()).await;
        passed.expect("in time").unwrap().forget();
    }
}

struct Dropped(Option<Arc<Gate>>);

impl Drop for Dropped {
    fn drop(&mut self) {
        if let Some(gate) = self.0.take() {
            gate.0.add_permits(1);
        }
    }
}

fn tools(gates: &Gates) -> McpTools {
    let gates = gates.clone();
    McpTools::new("editor")
        .tool(
            "count",
            "Counts bytes",
            |input: Text, call: ToolCall| async move {
                call.progress(1.0, Some(2.0), Some("half")).await;
                let session = call.session().unwrap_or("?").to_owned();
                Ok(json!({"bytes": input.text.len(), "session": session}))
            },
        )
        .tool("fail", "Fails", |_: Nothing, _| async {
            Err::<String, _>(ToolError::new("no luck"))
        })
        .tool("wait", "Waits", move |_: Nothing, _| {
            let gates = gates.clone();
            async move {
                gates.begun.0.add_permits(1);
                let mut dropped = Dropped(Some(gates.dropped.clone()));
                gates.open.pass().await;
                dropped.0 = None;
                Ok("done")
            }
        })
}

/// Has client and agent agree on a version; `mcp` is what the agent announces. Returns what the client reads.
async fn initialized(client: &mut Peer, agent: &mut Peer, version: u16, mcp: Value) -> Value {
    let params = json!({"protocolVersion": version});
    let request = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params});
    client.send(&request.to_string()).await;
    let request = agent.json().await;
    let result = match version {
        1 => json!({"protocolVersion": 1, "agentCapabilities": {"mcpCapabilities": mcp}}),
        _ => json!({"protocolVersion": 2, "capabilities": {"session": {"mcp": mcp}}}),
    };
    let answer = json!({"jsonrpc": "2.0", "id": request["id"], "result": result});
    agent.send(&answer.to_string()).await;
    client.json().await["result"].clone()
}

/// Opens the session `s`, and returns the servers that reach the agent.
async fn opened(client: &mut Peer, agent: &mut Peer, servers: Value) -> Value {
    let params = json!({"cwd": "/project", "mcpServers": servers});
    let request = json!({"jsonrpc": "2.0", "id": 1, "method": "session/new", "params": params});
    client.send(&request.to_string()).await;
    let request = agent.json().await;
    let answer = json!({"jsonrpc": "2.0", "id": request["id"], "result": {"sessionId": "s"}});
    agent.send(&answer.to_string()).await;
    client.json().await;
    request["params"]["mcpServers"].clone()
}

fn message(id: u32, server: &Value, method: &str, params: &Value) -> String {
    let mut params = params.clone();
    params["_meta"]["io.modelcontextprotocol/protocolVersion"] = "2026-07-28".into();
    params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = json!({});
    let inner = json!({"serverId": server["serverId"], "requestId": format!("r{id}"), "method": method, "params": params});
    json!({"jsonrpc": "2.0", "id": id, "method": "mcp/message", "params": inner}).to_string()
}

fn call(id: u32, server: &Value, tool: &str, arguments: &Value) -> String {
    message(
        id,
        server,
        "tools/call",
        &json!({"name": tool, "arguments": arguments}),
    )
}

/// A session whose agent has the tools inside of its connection, and their declaration.
async fn with_tools(tools: McpTools) -> (Wired, Value) {
    let mut wired = wired(tools.proxy());
    initialized(&mut wired.client, &mut wired.agent, 1, json!({"acp": true})).await;
    let servers = opened(&mut wired.client, &mut wired.agent, json!([])).await;
    assert_eq!(servers[0]["type"], "acp");
    assert_eq!(servers[0]["name"], "editor");
    (wired, servers[0].clone())
}

both_runtimes! {
    async fn tools_are_listed_and_called_inside_of_the_connection() {
        let (mut wired, server) = with_tools(tools(&Gates::default())).await;
        let agent = &mut wired.agent;
        agent.send(&message(2, &server, "tools/list", &json!({}))).await;
        let listed = agent.json().await["result"]["result"].clone();
        assert_eq!(listed["tools"][0]["name"], "count");
        assert_eq!(listed["tools"][0]["inputSchema"]["required"], json!(["text"]));
        assert_eq!(listed["tools"][1]["inputSchema"]["type"], "object");

        let params = json!({"name": "count", "arguments": {"text": "four"}, "_meta": {"progressToken": 7}});
        agent.send(&message(3, &server, "tools/call", &params)).await;
        let progress = agent.json().await;
        assert_eq!(progress["method"], "mcp/message");
        assert_eq!(progress["params"]["serverId"], server["serverId"]);
        assert_eq!(progress["params"]["requestId"], "r3");
        assert_eq!(progress["params"]["method"], "notifications/progress");
        assert_eq!(progress["params"]["params"]["message"], "half");
        let result = agent.json().await["result"]["result"].clone();
        assert_eq!(result["structuredContent"], json!({"bytes": 4, "session": "s"}));
    }

    async fn errors_of_tools_are_for_the_model_and_those_of_calls_for_the_agent() {
        let (mut wired, server) = with_tools(tools(&Gates::default())).await;
        let agent = &mut wired.agent;
        for (tool, arguments, text) in [
            ("fail", json!({}), "no luck"),
            ("count", json!({"text": 3}), "invalid arguments"),
        ] {
            agent.send(&call(2, &server, tool, &arguments)).await;
            let result = agent.json().await["result"]["result"].clone();
            assert_eq!(result["isError"], true, "{tool}: {result}");
            let shown = result["content"][0]["text"].as_str().unwrap();
            assert!(shown.contains(text), "{shown}");
        }
        agent.send(&call(3, &server, "none", &json!({}))).await;
        assert_eq!(agent.json().await["result"]["error"]["code"], -32602);
        agent.send(&message(4, &server, "no/method", &json!({}))).await;
        assert_eq!(agent.json().await["result"]["error"]["code"], -32601);
        // Not a message of MCP at all.
        let request = json!({"jsonrpc": "2.0", "id": 5, "method": "mcp/message", "params": {"serverId": 3}});
        agent.send(&request.to_string()).await;
        assert_eq!(agent.json().await["error"]["code"], -32602);
    }

    async fn calls_run_at_the_same_time_and_a_cancelled_one_is_dropped() {
        let gates = Gates::default();
        let (mut wired, server) = with_tools(tools(&gates)).await;
        let agent = &mut wired.agent;
        agent.send(&call(2, &server, "wait", &json!({}))).await;
        agent.send(&call(3, &server, "wait", &json!({}))).await;
        gates.begun.pass().await;
        gates.begun.pass().await;
        let cancel = json!({"jsonrpc": "2.0", "method": "$/cancel_request", "params": {"requestId": 2}});
        agent.send(&cancel.to_string()).await;
        let answer = agent.json().await;
        assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!(2), &json!(-32800)));
        gates.dropped.pass().await;
        gates.open.0.add_permits(1);
        let answer = agent.json().await;
        assert_eq!(answer["id"], 3);
        assert_eq!(answer["result"]["result"]["content"][0]["text"], "done");
    }

    async fn servers_of_others_are_left_to_them() {
        let (mut wired, server) = with_tools(tools(&Gates::default())).await;
        let other = json!({"serverId": "of-the-client"});
        wired.agent.send(&message(2, &other, "tools/list", &json!({}))).await;
        let request = wired.client.json().await;
        assert_eq!(request["params"]["serverId"], "of-the-client");
        let answer = json!({"jsonrpc": "2.0", "id": request["id"], "result": {"result": null}});
        wired.client.send(&answer.to_string()).await;
        assert_eq!(wired.agent.json().await["result"], json!({"result": null}));
        // A session that is closed has no server any more.
        let close = json!({"jsonrpc": "2.0", "id": 9, "method": "session/close", "params": {"sessionId": "s"}});
        wired.client.send(&close.to_string()).await;
        let request = wired.agent.json().await;
        wired.agent.send(&json!({"jsonrpc": "2.0", "id": request["id"], "result": {}}).to_string()).await;
        wired.client.json().await;
        wired.agent.send(&message(3, &server, "tools/list", &json!({}))).await;
        assert_eq!(wired.client.json().await["params"]["serverId"], server["serverId"]);
    }

    async fn servers_of_several_proxies_are_side_by_side() {
        let other = McpTools::new("other").tool("count", "", |_: Nothing, call: ToolCall| async move {
            call.progress(0.5, None, None).await;
            Ok("of the other")
        });
        let (far, agent) = channel(64 << 10);
        let (client, near) = channel(64 << 10);
        let (mut client, mut agent) = (Peer(client), Peer(agent));
        // The client's is behind the other, and a policy.
        let behind = proxies::policy(Rules::new()).in_front_of(far);
        let behind = tools(&Gates::default()).proxy().in_front_of(behind);
        tokio::spawn(other.proxy().run(near, behind));
        initialized(&mut client, &mut agent, 1, json!({"acp": true})).await;
        let servers = opened(&mut client, &mut agent, json!([])).await;
        assert_eq!([&servers[0]["name"], &servers[1]["name"]], ["other", "editor"]);
        let params = json!({"name": "count", "arguments": {}, "_meta": {"progressToken": 1}});
        agent.send(&message(2, &servers[0], "tools/call", &params)).await;
        assert_eq!(agent.json().await["params"]["method"], "notifications/progress");
        let answer = agent.json().await;
        assert_eq!(answer["result"]["result"]["content"][0]["text"], "of the other");
    }

    async fn agents_that_take_no_server_get_none() {
        let mut wired = wired(tools(&Gates::default()).proxy());
        initialized(&mut wired.client, &mut wired.agent, 1, json!({"http": true})).await;
        assert_eq!(opened(&mut wired.client, &mut wired.agent, json!([])).await, json!([]));
    }

    /// The agent knows nothing of the client's declaration, and each session has an id of its own.
    async fn sessions_that_name_it_have_a_server_and_others_have_not() {
        for takes_it in [true, false] {
            let (tools, declared) = tools(&Gates::default()).for_single_sessions();
            let declared = serde_json::to_value(declared).unwrap();
            let mut wired = wired(tools.proxy());
            let capabilities = if takes_it { json!({"acp": true}) } else { json!({}) };
            initialized(&mut wired.client, &mut wired.agent, 1, capabilities).await;
            let other = json!({"type": "acp", "name": "editor", "serverId": "other"});
            for given in [json!([]), json!([other])] {
                assert_eq!(opened(&mut wired.client, &mut wired.agent, given.clone()).await, given);
            }
            let own = json!({"name": "own", "command": "/own", "args": [], "env": []});
            let servers = opened(&mut wired.client, &mut wired.agent, json!([declared, own])).await;
            assert_eq!(servers[0], own);
            assert_eq!(servers.as_array().unwrap().len(), 1 + usize::from(takes_it), "{servers}");
            if takes_it {
                assert_ne!(servers[1]["serverId"], declared["serverId"]);
                wired.agent.send(&message(2, &servers[1], "tools/list", &json!({}))).await;
                let answer = wired.agent.json().await;
                assert_eq!(answer["result"]["result"]["tools"][0]["name"], "count", "{answer}");
            }
        }
    }

    async fn rules_decide_about_calls() {
        let denied = || Rules::new().rule(Rule::deny().kind(acp_sdk::v1::ToolKind::Other));
        let permitted = tools(&Gates::default()).permissions(denied().fallback(acp_client::Policy::ApproveAll));
        let (mut wired, server) = with_tools(permitted).await;
        wired.agent.send(&call(2, &server, "count", &json!({"text": ""}))).await;
        let result = wired.agent.json().await["result"]["result"].clone();
        assert_eq!(result["isError"], true);
        assert!(result["content"][0]["text"].as_str().unwrap().contains("refused"), "{result}");

        // The proxy `policy`, nearer to the agent than who has the tool.
        let mut wired = crate::wire::wired(proxies::policy(denied()));
        initialized(&mut wired.client, &mut wired.agent, 1, json!({"acp": true})).await;
        wired.agent.send(&call(2, &server, "count", &json!({"text": ""}))).await;
        let error = wired.agent.json().await["error"]["message"].clone();
        assert!(error.as_str().unwrap().contains("calling the tool count is refused"), "{error}");
        wired.agent.send(&message(3, &server, "tools/list", &json!({}))).await;
        assert_eq!(wired.client.json().await["params"]["method"], "tools/list");
    }
}

/// Ends one side while a tool runs. Returns how long the proxy ran after it.
async fn proxy_after_the_end_of(side: Side) -> Duration {
    let gates = Gates::default();
    let (wired, server) = with_tools(tools(&gates)).await;
    let Wired {
        client,
        mut agent,
        proxy,
    } = wired;
    agent.send(&call(2, &server, "wait", &json!({}))).await;
    gates.begun.pass().await;
    let gone = Instant::now();
    match side {
        Side::Agent => drop(agent),
        Side::Client => {
            drop(client);
            let answer = agent.json().await;
            let message = answer["error"]["message"].as_str().unwrap();
            assert!(message.ends_with("is not connected"), "{message}");
            assert_eq!(agent.next().await, None);
            drop(agent);
        }
    }
    gates.dropped.pass().await;
    proxy.await.unwrap();
    gone.elapsed()
}

both_runtimes! {
    async fn a_tool_is_dropped_when_either_side_ends() {
        proxy_after_the_end_of(Side::Client).await;
        proxy_after_the_end_of(Side::Agent).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_tool_is_not_waited_for_when_either_side_has_ended() {
    for side in [Side::Client, Side::Agent] {
        let after = proxy_after_the_end_of(side).await;
        assert!(after < Duration::from_millis(100), "{side:?}: {after:?}");
    }
}

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
