//! An agent as a tool.

mod calls;
mod delegation;
mod dropped;
mod events;
mod lifetime;
mod retries;
mod starts;

use acp_client::{Client, ExternalAgent};
use serde_json::{Value, json};

use crate::agent::{Raw, TestAgent, connect};

/// Connects to an agent and returns it as a tool.
async fn tool(agent: TestAgent) -> ExternalAgent {
    ExternalAgent::new(connect(agent, Client::builder()).await).directory("/")
}

/// A tool whose raw agent can close sessions.
async fn raw_tool() -> (ExternalAgent, Raw) {
    let hello = json!({
        "protocolVersion": 1,
        "agentCapabilities": { "sessionCapabilities": { "close": {} } },
    });
    let (client, raw) = Raw::connect_saying(Client::builder(), hello).await;
    (ExternalAgent::new(client).directory("/"), raw)
}

/// Answers a request.
async fn answer(raw: &mut Raw, request: &Value, result: Value) {
    raw.send(json!({"jsonrpc": "2.0", "id": request["id"], "result": result}))
        .await;
}
