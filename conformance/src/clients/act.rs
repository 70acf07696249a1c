//! Acts a scenario: the agent that the client under test launches.

use std::fs::File;
use std::io::{Read, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use acp_sdk::ErrorCode;
use serde_json::{Value, json};

use super::control_channel;
use super::scenarios::{Scenario, Start};
use super::scripted_agent::{CLOSED, SESSION, ScriptedAgent};
use super::{offers, pages, table, v2};
use crate::wire::Version;
use crate::{Error, Result};

/// How long a scenario may take, whatever the client does.
const LIMIT: Duration = Duration::from_secs(40);

/// How long a scenario with delays waits for a second request before it answers the first one.
const DELAY: Duration = Duration::from_millis(300);

/// Acts the scenario of this name on standard input and output, and writes it down.
///
/// # Errors
/// When there is no such scenario, or no record can be written.
pub fn act(name: &str, record: &Path) -> Result<()> {
    let scenario = table::scenario(name)?;
    let file = File::create(record).map_err(Error::Output)?;
    control_channel::hold(&file);
    let mut last = file.try_clone().map_err(Error::Output)?;
    let record = record.to_owned();
    let tell = move |mark: &str| control_channel::tell(&record, mark);
    act_on(scenario, file, tell, std::io::stdin(), std::io::stdout());
    let ended = json!({"mark": control_channel::ENDED});
    writeln!(last, "{ended}").map_err(Error::Output)
}

/// Acts a scenario on any pair of streams; `tell` is called with each mark once it is recorded.
pub(super) fn act_on(
    scenario: &Scenario,
    record: File,
    tell: impl FnMut(&str) + Send + 'static,
    input: impl Read + Send + 'static,
    output: impl Write + Send + 'static,
) {
    let mut stage = ScriptedAgent::new(scenario.protocol, record, tell, input, output);
    let deadline = Instant::now() + LIMIT;
    loop {
        let message = if stage.waiting.is_empty() {
            match stage.next(deadline) {
                Ok(Some(message)) => message,
                Ok(None) => return,
                Err(()) => {
                    stage.mark(CLOSED);
                    return;
                }
            }
        } else {
            stage.waiting.remove(0)
        };
        if scenario.delays && message.get("id").is_some() {
            stage.await_request(DELAY);
        }
        if !serve(&mut stage, scenario, &message) {
            return;
        }
    }
}

/// Serves one message. Returns whether the agent continues.
fn serve(stage: &mut ScriptedAgent, scenario: &Scenario, message: &Value) -> bool {
    let method = message.get("method").and_then(Value::as_str);
    let params = message.get("params").cloned().unwrap_or_default();
    if offers::serve(stage, scenario.offers, message) {
        return true;
    }
    match (method, scenario.protocol) {
        (Some("initialize"), protocol) => {
            stage.client = params;
            let [capabilities, methods] = offers::handshake(stage, scenario.offers);
            let info = json!({"name": "acp-conformance", "version": env!("CARGO_PKG_VERSION")});
            let (info_member, capabilities_member) = match protocol {
                Version::V1 => ("agentInfo", "agentCapabilities"),
                Version::V2 => ("info", "capabilities"),
            };
            let answer = json!({"protocolVersion": scenario.version, info_member: info,
                capabilities_member: capabilities, "authMethods": methods});
            stage.answer(message, &answer);
        }
        (Some("session/new"), _) => {
            let cwd = params.get("cwd").and_then(Value::as_str);
            stage.folder = cwd.unwrap_or_default().to_owned();
            let mut state = json!({});
            if scenario.offers.has_options() {
                state = offers::session(stage, scenario.offers);
            }
            state["sessionId"] = json!(SESSION);
            stage.answer(message, &state);
        }
        (Some("session/list"), _) if scenario.start == Start::Listing => {
            pages::list(stage, message);
        }
        (Some("session/prompt"), _) if scenario.refuses => {
            stage.refuse(
                message,
                ErrorCode::INTERNAL_ERROR,
                "the model is out of order",
            );
        }
        (Some("session/prompt"), protocol) => {
            stage.cancelled = false;
            if protocol == Version::V2 {
                v2::accept_prompt(stage, message, &params);
            }
            if !(scenario.turn)(stage) {
                return false;
            }
            let stop = stage.stop_reason();
            match protocol {
                Version::V1 => stage.answer(message, &json!({"stopReason": stop})),
                Version::V2 => v2::end_turn(stage, stop),
            }
        }
        // What every agent of version 2 with sessions has.
        (Some("session/list"), Version::V2) => stage.answer(message, &json!({"sessions": []})),
        (Some("session/resume" | "session/close"), Version::V2) => {
            stage.answer(message, &json!({}));
        }
        (Some(other), _) if message.get("id").is_some() => {
            stage.refuse(
                message,
                ErrorCode::METHOD_NOT_FOUND,
                &format!("the agent has no method {other}"),
            );
        }
        _ => {}
    }
    true
}
