//! Terminals that an agent has created: of a client, or of this machine.

use acp_sdk::v1::{
    CreateTerminalRequest, CreateTerminalResponse, KillTerminalResponse, ReleaseTerminalRequest,
    ReleaseTerminalResponse, TerminalOutputResponse, WaitForTerminalExitResponse,
};
use acp_sdk::{HandlerError, HandlerResult, Json};
use std::sync::Arc;
use std::time::Duration;

use acp_server::internal::raw_object::RawObject;
use acp_server::{Capability, Terminal};

use super::messages::{answer_of, json, of, read};
use super::session::{HostedSession, OpenTerminal};

/// Time for a client to release a terminal that the agent has left.
const RELEASING: Duration = Duration::from_secs(2);

impl HostedSession {
    pub(super) async fn create_terminal(&self, params: RawObject) -> HandlerResult<Json> {
        let limit = self.most_terminals;
        if self.terminals(|open| open.len()) >= limit {
            let reason = format!("{limit} terminals are open; release one first");
            return Err(HandlerError::internal(reason));
        }
        match self.client(Capability::Terminal).await {
            Ok(client) => {
                let created = self.forward(&client, "terminal/create", params).await?;
                let id =
                    RawObject::parse(created.get()).and_then(|answer| answer.text("terminalId"));
                let id = id.ok_or_else(|| {
                    HandlerError::internal("the client answered terminal/create without terminalId")
                })?;
                self.terminals(|open| open.insert(id, OpenTerminal::Client(client)));
                Ok(created)
            }
            Err(error) => {
                let turn = self.fallback(error)?;
                let request: CreateTerminalRequest = read(&of(params, turn.session()))?;
                let terminal = turn.terminal_with(request).await.map_err(answer_of)?;
                let answer = CreateTerminalResponse::new(terminal.id().clone());
                let (id, terminal) = (terminal.id().to_string(), Arc::new(terminal));
                self.terminals(|open| open.insert(id, OpenTerminal::Local(terminal)));
                json(&answer)
            }
        }
    }

    pub(super) async fn use_terminal(
        &self,
        method: &str,
        params: RawObject,
    ) -> HandlerResult<Json> {
        let id = params.text("terminalId").unwrap_or_default();
        let terminal = self.terminals(|open| match method {
            "terminal/release" => open.remove(&id),
            _ => open.get(&id).cloned(),
        });
        let terminal =
            terminal.ok_or_else(|| HandlerError::resource_not_found(format!("terminal {id}")))?;
        match terminal {
            OpenTerminal::Client(client) => self.forward(&client, method, params).await,
            OpenTerminal::Local(terminal) => locally(&terminal, method).await,
        }
    }

    /// Releases what the agent has left open.
    pub(super) fn release_terminals(&self) {
        let open = self.terminals(std::mem::take);
        let (Ok(session), Ok(runtime)) = (self.session(), tokio::runtime::Handle::try_current())
        else {
            return;
        };
        for (id, terminal) in open {
            // Those of this machine are released when they are dropped.
            if let OpenTerminal::Client(client) = terminal {
                let request = ReleaseTerminalRequest::new(session.id(), id);
                runtime.spawn(async move {
                    let released = client.release_terminal(request);
                    let _ = tokio::time::timeout(RELEASING, released).await;
                });
            }
        }
    }
}

async fn locally(terminal: &Terminal, method: &str) -> HandlerResult<Json> {
    match method {
        "terminal/output" => {
            let output: TerminalOutputResponse = terminal.output().await.map_err(answer_of)?;
            json(&output)
        }
        "terminal/wait_for_exit" => {
            let exit = terminal.wait().await.map_err(answer_of)?;
            let mut answer = WaitForTerminalExitResponse::new();
            answer.exit_code = exit.code;
            answer.signal = exit.signal;
            json(&answer)
        }
        "terminal/kill" => {
            terminal.kill().await.map_err(answer_of)?;
            json(&KillTerminalResponse::new())
        }
        // Dropped by the caller.
        _ => json(&ReleaseTerminalResponse::new()),
    }
}
