//! The start of MCP before 2026-07-28, which servers inside of the connection do not know.

use std::sync::{Mutex, OnceLock};

use acp_sdk::{ErrorCode, HandlerResult, Json};
use serde_json::{Map, Value, json};

use crate::shared::lock;

/// The version whose requests are complete in themselves.
const COMPLETE: &str = "2026-07-28";

/// The versions that begin with `initialize`, the newest first.
const WITH_INITIALIZE: [&str; 4] = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];

const VERSION: &str = "io.modelcontextprotocol/protocolVersion";
const CLIENT: &str = "io.modelcontextprotocol/clientInfo";
const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
const SERVER: &str = "io.modelcontextprotocol/serverInfo";

/// The lists that may change.
const LISTS: [&str; 3] = ["tools", "prompts", "resources"];

/// The start of a program that begins with `initialize`.
#[derive(Debug, Default)]
pub(super) struct Lifecycle {
    /// What the program has said of itself.
    client: OnceLock<Value>,
    /// What the server can report, as a subscription asks for it. It is taken once.
    changes: OnceLock<Mutex<Option<Value>>>,
}

impl Lifecycle {
    /// Begins with the params of `initialize`, and returns the version of the connection.
    pub(super) fn begin(&self, params: Option<Value>) -> &'static str {
        let params = params.unwrap_or_default();
        let asked = params["protocolVersion"].as_str().unwrap_or_default();
        let version = WITH_INITIALIZE.into_iter().find(|known| *known == asked);
        // The first one counts.
        let _ = self.client.set(params["clientInfo"].clone());
        version.unwrap_or(WITH_INITIALIZE[0])
    }

    /// Returns whether the program has begun with `initialize`.
    pub(super) fn is_begun(&self) -> bool {
        self.client.get().is_some()
    }

    /// Returns the params of a request with what requests of the newest version have, if the program has
    /// begun with `initialize`.
    pub(super) fn complete(&self, params: Option<Value>) -> Option<Value> {
        let Some(client) = self.client.get() else {
            return params;
        };
        let mut params = match params {
            Some(Value::Object(params)) => params,
            None | Some(Value::Null) => Map::new(),
            // For the server to refuse.
            other => return other,
        };
        let meta = params.entry("_meta").or_insert_with(|| json!({}));
        if let Some(meta) = meta.as_object_mut() {
            meta.insert(VERSION.to_owned(), COMPLETE.into());
            // A server can ask the program for nothing.
            meta.insert(CAPABILITIES.to_owned(), json!({}));
            if client.is_object() {
                meta.insert(CLIENT.to_owned(), client.clone());
            }
        }
        Some(params.into())
    }

    /// Returns the answer to `initialize`, from that of the server to `server/discover`.
    pub(super) fn answer(
        &self,
        version: &str,
        discovered: HandlerResult<Json>,
    ) -> HandlerResult<Json> {
        let discovered = match discovered {
            Ok(discovered) => discovered.to_value().unwrap_or_default(),
            Err(error) if error.code() == ErrorCode::METHOD_NOT_FOUND => json!({}),
            Err(error) => return Err(error),
        };
        let mut capabilities = discovered["capabilities"].clone();
        let Some(kinds) = capabilities.as_object_mut() else {
            return Ok(response(version, json!({"tools": {}}), &discovered).into());
        };
        let mut changes = Map::new();
        for (kind, members) in kinds {
            let Some(members) = members.as_object_mut() else {
                continue;
            };
            // These versions cannot subscribe to a resource.
            members.remove("subscribe");
            if !LISTS.contains(&kind.as_str()) {
                members.remove("listChanged");
            } else if members.get("listChanged") == Some(&Value::Bool(true)) {
                changes.insert(format!("{kind}ListChanged"), true.into());
            }
        }
        let changes = (!changes.is_empty()).then(|| changes.into());
        let _ = self.changes.set(Mutex::new(changes));
        Ok(response(version, capabilities, &discovered).into())
    }

    /// Returns what a subscription to all changes of lists asks for, once; `None` if no list changes.
    pub(super) fn take_changes(&self) -> Option<Value> {
        lock(self.changes.get()?).take()
    }
}

fn response(version: &str, capabilities: Value, discovered: &Value) -> Value {
    let info = &discovered["_meta"][SERVER];
    let info = match info.is_object() {
        true => info.clone(),
        false => json!({"name": "acp", "version": env!("CARGO_PKG_VERSION")}),
    };
    let mut response =
        json!({"protocolVersion": version, "capabilities": capabilities, "serverInfo": info});
    if discovered["instructions"].is_string() {
        response["instructions"] = discovered["instructions"].clone();
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_completed_only_after_initialize() {
        let lifecycle = Lifecycle::default();
        assert_eq!(lifecycle.complete(None), None);
        lifecycle.client.set(json!({"name": "c"})).unwrap();
        let params = lifecycle.complete(Some(json!({"name": "t", "_meta": {"progressToken": 7}})));
        let meta = &params.as_ref().unwrap()["_meta"];
        assert_eq!(params.as_ref().unwrap()["name"], "t");
        assert_eq!(meta["progressToken"], 7);
        assert_eq!(meta[VERSION], COMPLETE);
        assert_eq!(meta[CLIENT], json!({"name": "c"}));
    }
}
