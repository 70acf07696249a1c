//! Servers inside of the connection for agents that only know programs.
//!
//! Each server of type `acp` is declared to the agent as a program ([`BridgeCommand`]) that copies its standard
//! input and output to a port of this machine. Who connects there shows the secret of the declaration first,
//! and speaks MCP; its requests become `mcp/message` to who has declared the server.

mod bindings;
mod command;
mod connection;
mod lifecycle;
mod listener;
mod recipient;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use acp_sdk::HandlerResult;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use self::bindings::Binding;
pub use self::command::{BridgeCommand, run_bridge};
use self::listener::Listener;
use super::wire::{Inner, MESSAGE, random};
use super::{capability, sessions};
use crate::message::{raw, value};
use crate::{Proxy, RawNext, Side};

/// The variable with the secret of a declaration, for the program.
const SECRET: &str = "ACP_BRIDGE_SECRET";

/// Creates a proxy, for one connection, that offers servers of type `acp` to an agent that only knows programs:
/// it starts `command` for each. Nothing is changed for an agent that announces `mcpCapabilities.acp`.
///
/// The programs end with their session. Both processes must be on the same machine.
pub fn bridge(command: BridgeCommand) -> Proxy {
    let bridge = Arc::new(Bridge {
        command,
        is_needed: AtomicBool::new(false),
        listener: Listener::default(),
    });
    let of_initialize = bridge.clone();
    let mut proxy = Proxy::new("bridge").on_raw_request(Some("initialize"), move |next, params| {
        let bridge = of_initialize.clone();
        async move {
            let response = next.call(params).await?;
            bridge.announce(response)
        }
    });
    for method in sessions::OPENING {
        let bridge = bridge.clone();
        proxy = proxy.on_raw_request(Some(method), move |next, params| {
            bridge.clone().open(next, params)
        });
    }
    let of_end = bridge.clone();
    let proxy = sessions::on_end(proxy, move |session| {
        of_end.listener.bindings.end_session(session)
    });
    proxy.on_raw_notification(Some(MESSAGE), move |forward, params| {
        let bridge = bridge.clone();
        async move {
            if forward.from() == Side::Client
                && let Ok(inner) = Inner::read(params.as_deref())
                && let Some(notifications) = bridge.listener.bindings.active(&inner.request_id)
            {
                // It is dropped when the request has ended.
                let _ = notifications.send(inner).await;
                return Ok(());
            }
            forward.send(params).await
        }
    })
}

struct Bridge {
    command: BridgeCommand,
    /// Whether the agent only knows programs.
    is_needed: AtomicBool,
    listener: Listener,
}

impl Bridge {
    fn announce(&self, response: Box<RawValue>) -> HandlerResult<Box<RawValue>> {
        let mut changed = value(Some(&response));
        if capability::is_announced(&changed) || !capability::announce(&mut changed) {
            return Ok(response);
        }
        self.is_needed.store(true, Ordering::Relaxed);
        raw(&changed)
    }

    /// Declares programs in place of the servers of a session that is opened.
    async fn open(
        self: Arc<Self>,
        next: RawNext,
        params: Option<Box<RawValue>>,
    ) -> HandlerResult<Box<RawValue>> {
        let is_needed = self.is_needed.load(Ordering::Relaxed);
        let is_declared = |params: &RawValue| params.get().contains("\"acp\"");
        if !is_needed || !params.as_deref().is_some_and(is_declared) {
            return next.call(params).await;
        }
        let mut request = value(params.as_deref());
        let servers = request.get_mut("mcpServers").and_then(Value::as_array_mut);
        let mut bindings = Vec::new();
        for server in servers.into_iter().flatten() {
            let Some(id) = server["serverId"]
                .as_str()
                .filter(|_| server["type"] == "acp")
            else {
                continue;
            };
            let address = self.listener.address().await?;
            let secret = random()?;
            let binding = Binding::new(id.to_owned(), next.client());
            let declared = self.command.declaration(&server["name"], &address, &secret);
            *server = declared;
            if next.version() >= Some(2) {
                server["type"] = json!("stdio");
            }
            bindings.push(self.listener.bindings.add(secret, binding)?);
        }
        if bindings.is_empty() {
            return next.call(params).await;
        }
        // What follows must not wait until the agent has connected to the servers, which may take long.
        let named = sessions::named(params.as_deref());
        let opened = next.call(Some(raw(&request)?)).await?;
        if let Some(session) = sessions::opened(named, &opened) {
            for binding in bindings {
                binding.keep_for(&session);
            }
        }
        Ok(opened)
    }
}
