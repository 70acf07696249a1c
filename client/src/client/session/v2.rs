//! Prompts of version 2: they are answered when accepted, and the turn ends when the session becomes
//! idle. Modes are values of a config option.

use std::sync::Arc;

use acp_sdk::runtime::Method as _;
use acp_sdk::v1::{SessionConfigOptionCategory, StopReason};
use acp_sdk::v2::{PromptRequest, methods};
use acp_sdk::{Error as SdkError, RpcError};
use serde::Deserialize;
use serde_json::Value;

use super::Open;
use crate::error::Error;
use crate::session::{SessionSettings, TurnState};

/// The response to `session/prompt`. Agents of older drafts do not name the message.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Accepted {
    message_id: Option<Value>,
}

/// Sends a prompt and completes when its turn has ended. Does not keep the session open.
pub(super) fn prompting(
    open: &Open,
    request: PromptRequest,
    state: Arc<TurnState>,
) -> impl Future<Output = acp_sdk::Result<StopReason>> + Send + use<> {
    let client = &open.client;
    let (peer, inbox) = (client.agent.peer().clone(), open.inbox.clone());
    let connection_ended = client.wire.ended.clone();
    async move {
        let ended = inbox.begin_work(&state);
        let accepting = inbox.clone();
        let accepted = move |response: Result<&str, &RpcError>| match response {
            Ok(text) => {
                let accepted: Accepted = serde_json::from_str(text).unwrap_or_default();
                let message = accepted.message_id.as_ref().and_then(Value::as_str);
                accepting.accept_work(message);
            }
            Err(error) => accepting.refuse_work(error),
        };
        // The response was handled in the order of messages.
        match peer.call_then::<methods::Prompt>(&request, accepted).await {
            Ok(_) | Err(SdkError::Response { .. } | SdkError::Decode { .. }) => {}
            Err(error) => return Err(error),
        }
        tokio::select! {
            biased;
            Ok(stop) = ended => stop.map_err(|error| SdkError::Response {
                method: methods::Prompt::NAME.to_owned(),
                error: Box::new(error),
            }),
            () = connection_ended.cancelled() => Err(SdkError::Closed(peer.closed().await)),
        }
    }
}

/// Returns the error for setting a mode, with the config option to use instead.
pub(super) fn no_modes(settings: &SessionSettings) -> Error {
    let mode = SessionConfigOptionCategory::Mode;
    let mut options = settings.config_options.iter().flatten();
    let option = options.find(|option| option.category.as_ref() == Some(&mode));
    let instead = match option {
        Some(option) => format!("set the config option `{}`", option.id.as_str()),
        None => {
            "modes are values of a config option, and this session has none for them".to_owned()
        }
    };
    Error::not_in_v2("session/set_mode", Some(&instead))
}
