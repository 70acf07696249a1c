//! Input for a running turn: how agents take it.
//!
//! The protocol has no method for it. An agent has that of this project, `_acp-sdk/session/steer`, or
//! `_session/steering`, which the adapters for Claude Code and Codex have, among others.

use acp_sdk::extensions::methods::SteerSession;
use acp_sdk::extensions::{
    SteerFallback, SteerOutcome, SteerRefusal, SteerSessionRequest, SteerSessionResponse,
};
use acp_sdk::runtime::Method;
use acp_sdk::v1::{ContentChunk, InitializeResponse, PromptRequest, SessionUpdate};
use acp_sdk::{Json, Meta, Peer, RpcError};
use serde_json::{Value, json};

/// What happened to input for a running turn.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Steered {
    /// The turn has it: it is a message of the user in the conversation.
    Injected,
    /// It is a prompt of its own, which waits for its turn or has begun it. Its end is not reported.
    Queued,
    /// The agent has not used it.
    Refused(SteerRefusal),
}

/// How an agent takes input during turns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SteeringMethod {
    /// `_acp-sdk/session/steer`.
    Own,
    /// `_session/steering`.
    Common,
}

/// `_session/steering`. Its params are those of a prompt.
struct CommonSteering;

impl Method for CommonSteering {
    const NAME: &'static str = "_session/steering";
    type Params = PromptRequest;
    type Result = Json;
}

impl SteeringMethod {
    /// Returns the method that an agent has announced.
    #[must_use]
    pub fn of(agent: &InitializeResponse) -> Option<Self> {
        let announced =
            |meta: Option<&Meta>, key: &str| meta.and_then(|meta| meta.get::<Value>(key));
        let capabilities = agent.agent_capabilities.meta.as_ref();
        let ours = announced(capabilities, "acp-sdk");
        if ours.is_some_and(|ours| ours["session"]["steer"] == true) {
            return Some(Self::Own);
        }
        // The adapters announce it beside the capabilities, some others in them.
        let mut common = [agent.meta.as_ref(), capabilities].into_iter();
        let has = common.any(|meta| {
            let steering = announced(meta, "steering");
            steering.is_some_and(|steering| steering["supported"] == true)
        });
        has.then_some(Self::Common)
    }

    /// Returns the name of the method.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Own => SteerSession::NAME,
            Self::Common => CommonSteering::NAME,
        }
    }

    /// Sends input, and shows the answer to `then` at its place in the order of messages. Dropping the
    /// future cancels the request.
    ///
    /// # Errors
    ///
    /// As [`Peer::call`].
    pub async fn send(
        self,
        peer: &Peer,
        request: SteerSessionRequest,
        then: impl FnOnce(&Steered, Option<&str>) + Send + 'static,
    ) -> acp_sdk::Result<Steered> {
        match self {
            Self::Own => {
                let then = |answer: Result<&str, &RpcError>| {
                    let answer = answer
                        .ok()
                        .and_then(|answer| serde_json::from_str(answer).ok());
                    if let Some(answer) = answer {
                        then(&own(&answer), answer.message_id.as_deref());
                    }
                };
                let answer = peer.call_then::<SteerSession>(&request, then).await?;
                Ok(own(&answer))
            }
            Self::Common => {
                let queues = request.otherwise == Some(SteerFallback::Queue);
                let then = |answer: Result<&str, &RpcError>| {
                    if let Ok(answer) = answer {
                        then(&common(answer), None);
                    }
                };
                let mut meta = request.meta.unwrap_or_default();
                if !queues {
                    // Otherwise the agent begins a turn if none is running.
                    meta = meta.with("steering", &json!({ "idleBehavior": "promptRequired" }));
                }
                let request =
                    PromptRequest::new(request.session_id, request.prompt).with_meta(meta);
                let answer = peer.call_then::<CommonSteering>(&request, then).await?;
                Ok(common(answer.get()))
            }
        }
    }
}

fn own(answer: &SteerSessionResponse) -> Steered {
    match answer.outcome {
        SteerOutcome::Injected => Steered::Injected,
        SteerOutcome::Queued => Steered::Queued,
        _ => Steered::Refused(answer.reason.clone().unwrap_or(SteerRefusal::TurnEnded)),
    }
}

fn common(answer: &str) -> Steered {
    let answer: Value = serde_json::from_str(answer).unwrap_or_default();
    match answer["outcome"].as_str() {
        Some("injected") => Steered::Injected,
        Some("startedNewTurn") => Steered::Queued,
        // `promptRequired`.
        _ => Steered::Refused(SteerRefusal::NoTurn),
    }
}

/// Returns the messages that an agent of version 1 does not repeat to the client that sent them.
pub(crate) fn messages(request: &SteerSessionRequest, message: Option<&str>) -> Vec<SessionUpdate> {
    let ours = Meta::new().with("acp-sdk", &json!({ "steered": true }));
    let blocks = request.prompt.iter().cloned();
    let chunks = blocks.map(|block| {
        let chunk = ContentChunk::new(block).with_meta(ours.clone());
        SessionUpdate::UserMessageChunk(match message {
            Some(message) => chunk.with_message_id(message),
            None => chunk,
        })
    });
    chunks.collect()
}

/// Returns whether a message of the user was sent during a turn.
#[must_use]
pub fn is_steered(chunk: &ContentChunk) -> bool {
    let ours: Option<Value> = chunk.meta.as_ref().and_then(|meta| meta.get("acp-sdk"));
    ours.is_some_and(|ours| ours["steered"] == true)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn method(answer: Value) -> Option<SteeringMethod> {
        SteeringMethod::of(&serde_json::from_value(answer).unwrap())
    }

    #[test]
    fn the_method_is_the_one_that_the_agent_announces() {
        let none = json!({ "protocolVersion": 1, "agentCapabilities": {} });
        assert_eq!(method(none), None);
        let off = json!({ "protocolVersion": 1, "_meta": { "steering": { "supported": false } } });
        assert_eq!(method(off), None);
        let common = json!({ "supported": true });
        let beside = json!({ "protocolVersion": 1, "_meta": { "steering": common } });
        assert_eq!(method(beside), Some(SteeringMethod::Common));
        let ours = json!({ "session": { "steer": true } });
        let both = json!({ "acp-sdk": ours, "steering": common });
        let both = json!({ "protocolVersion": 1, "agentCapabilities": { "_meta": both } });
        assert_eq!(method(both), Some(SteeringMethod::Own));
        let within = json!({ "_meta": { "steering": common } });
        let within = json!({ "protocolVersion": 1, "agentCapabilities": within });
        assert_eq!(method(within), Some(SteeringMethod::Common));
    }

    #[test]
    fn an_unknown_outcome_is_a_refusal() {
        for (answer, expected) in [
            (r#"{"outcome":"injected"}"#, Steered::Injected),
            (r#"{"outcome":"startedNewTurn"}"#, Steered::Queued),
            (
                r#"{"outcome":"promptRequired"}"#,
                Steered::Refused(SteerRefusal::NoTurn),
            ),
            ("{}", Steered::Refused(SteerRefusal::NoTurn)),
        ] {
            assert_eq!(common(answer), expected);
        }
        let unknown = SteerSessionResponse::new(SteerOutcome::from("of_tomorrow"));
        assert_eq!(own(&unknown), Steered::Refused(SteerRefusal::TurnEnded));
    }
}
