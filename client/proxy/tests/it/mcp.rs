//! MCP servers inside of the connection: tools.

use std::sync::Arc;
use std::time::Duration;

use acp_client::{Rule, Rules};
use acp_proxy::{McpTools, Side, ToolCall, ToolError, proxies};
use acp_sdk::channel;
use serde_json::{Value, json};
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout};

use crate::wire::{Peer, Wired, both_runtimes, wired};

/// Longer than anything takes on a busy machine.
pub(crate) const LIMIT: Duration = Duration::from_secs(30);

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Text {
    text: String,
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
pub(crate) struct Nothing {}

/// What the tools of [`tools`] wait for, and what they show.
#[derive(Clone, Default)]
pub(crate) struct Gates {
    /// A permit lets a call of `wait` complete.
    pub(crate) open: Arc<Gate>,
    /// Has a permit for each call of `wait` that was begun.
    pub(crate) begun: Arc<Gate>,
    /// Has a permit for each call of `wait` that was dropped before its end.
    pub(crate) dropped: Arc<Gate>,
}

pub(crate) struct Gate(pub(crate) Semaphore);

impl Default for Gate {
    fn default() -> Self {
        Self(Semaphore::new(0))
    }
}

impl Gate {
    pub(crate) async fn pass(&self) {
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

pub(crate) fn tools(gates: &Gates) -> McpTools {
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
pub(crate) async fn initialized(
    client: &mut Peer,
    agent: &mut Peer,
    version: u16,
    mcp: Value,
) -> Value {
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
pub(crate) async fn opened(client: &mut Peer, agent: &mut Peer, servers: Value) -> Value {
    let params = json!({"cwd": "/project", "mcpServers": servers});
    let request = json!({"jsonrpc": "2.0", "id": 1, "method": "session/new", "params": params});
    client.send(&request.to_string()).await;
    let request = agent.json().await;
    let answer = json!({"jsonrpc": "2.0", "id": request["id"], "result": {"sessionId": "s"}});
    agent.send(&answer.to_string()).await;
    client.json().await;
    request["params"]["mcpServers"].clone()
}

pub(crate) fn message(id: u32, server: &Value, method: &str, params: &Value) -> String {
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

    async fn changes_of_the_tools_are_for_those_who_subscribe() {
        let listen = json!({"notifications": {"toolsListChanged": true, "promptsListChanged": true}});
        let (mut wired, server) = with_tools(tools(&Gates::default())).await;
        wired.agent.send(&message(2, &server, "server/discover", &json!({}))).await;
        let discovered = wired.agent.json().await["result"]["result"].clone();
        assert_eq!(discovered["capabilities"]["tools"], json!({}));
        wired.agent.send(&message(3, &server, "subscriptions/listen", &listen)).await;
        assert_eq!(wired.agent.json().await["result"]["error"]["code"], -32601, "they never change");

        let (tools, list) = tools(&Gates::default()).changeable();
        let other = tools.clone();
        let (mut wired, server) = with_tools(tools).await;
        let agent = &mut wired.agent;
        agent.send(&message(2, &server, "server/discover", &json!({}))).await;
        let discovered = agent.json().await["result"]["result"].clone();
        assert_eq!(discovered["capabilities"]["tools"], json!({"listChanged": true}));
        agent.send(&message(3, &server, "subscriptions/listen", &listen)).await;
        let notified = async |agent: &mut Peer, method: &str| {
            let notification = agent.json().await["params"].clone();
            assert_eq!(notification["method"], method);
            assert_eq!(notification["requestId"], "r3");
            notification["params"].clone()
        };
        let accepted = notified(agent, "notifications/subscriptions/acknowledged").await;
        assert_eq!(accepted["notifications"], json!({"toolsListChanged": true}));
        list.set("later", "Added", |_: Nothing, _| async { Ok("added") });
        let changed = notified(agent, "notifications/tools/list_changed").await;
        assert_eq!(changed["_meta"]["io.modelcontextprotocol/subscriptionId"], "r3");
        agent.send(&call(4, &server, "later", &json!({}))).await;
        assert_eq!(agent.json().await["result"]["result"]["content"][0]["text"], "added");
        list.set("later", "Replaced", |_: Nothing, _| async { Ok("replaced") });
        notified(agent, "notifications/tools/list_changed").await;
        agent.send(&call(5, &server, "later", &json!({}))).await;
        assert_eq!(agent.json().await["result"]["result"]["content"][0]["text"], "replaced");

        // A tool that is added by a clone is there, too.
        let _ = other.tool("cloned", "", |_: Nothing, _| async { Ok("") });
        notified(agent, "notifications/tools/list_changed").await;
        assert!(list.remove("later") && !list.remove("later"));
        notified(agent, "notifications/tools/list_changed").await;
        agent.send(&call(6, &server, "later", &json!({}))).await;
        assert_eq!(agent.json().await["result"]["error"]["code"], -32602);
        let cancel = json!({"jsonrpc": "2.0", "method": "$/cancel_request", "params": {"requestId": 3}});
        agent.send(&cancel.to_string()).await;
        assert_eq!(agent.json().await["error"]["code"], -32800);
        list.set("later", "", |_: Nothing, _| async { Ok("") });
        agent.send(&message(7, &server, "tools/list", &json!({}))).await;
        let listed = agent.json().await["result"]["result"]["tools"].clone();
        let names: Vec<_> = listed.as_array().unwrap().iter().map(|tool| tool["name"].clone()).collect();
        assert_eq!(names, ["count", "fail", "wait", "cloned", "later"]);
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
