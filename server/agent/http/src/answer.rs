//! The stream of `genai` as an answer of the kit.

use acp_agent::model::{Answer, Delta, ModelError, Stopped, Tokens, ToolUse};
use futures_util::{StreamExt, stream};
use genai::chat::{ChatStream, ChatStreamEvent, StopReason, StreamEnd, Usage};

use crate::error;

/// Waits until the answer has begun: before that, nothing has been sent to the provider, or it has refused.
///
/// # Errors
///
/// Why it has not begun.
pub(crate) async fn of(model: String, mut stream: ChatStream) -> Result<Answer, ModelError> {
    let first = loop {
        match stream.next().await {
            None => break None,
            Some(Ok(ChatStreamEvent::Start | ChatStreamEvent::Heartbeat)) => {}
            Some(Ok(event)) => break Some(Ok(event)),
            Some(Err(error)) => return Err(error::of(&model, error)),
        }
    };
    let events = stream::iter(first).chain(stream);
    let pieces = events.flat_map(move |event| stream::iter(pieces(&model, event)));
    Ok(Box::pin(pieces))
}

fn pieces(
    model: &str,
    event: Result<ChatStreamEvent, genai::Error>,
) -> Vec<Result<Delta, ModelError>> {
    let event = match event {
        Ok(event) => event,
        Err(error) => return vec![Err(error::of(model, error))],
    };
    let delta = match event {
        ChatStreamEvent::Chunk(chunk) => Delta::Text(chunk.content),
        ChatStreamEvent::ReasoningChunk(chunk) => Delta::Thought(chunk.content),
        ChatStreamEvent::ThoughtSignatureChunk(chunk) => Delta::Signature(chunk.content),
        ChatStreamEvent::End(end) => return ended(end).into_iter().map(Ok).collect(),
        // Calls come whole with the end.
        _ => return Vec::new(),
    };
    vec![Ok(delta)]
}

fn ended(end: StreamEnd) -> Vec<Delta> {
    let mut deltas = Vec::new();
    deltas.extend(
        end.captured_usage
            .as_ref()
            .map(|usage| Delta::Tokens(tokens(usage))),
    );
    deltas.extend(match &end.captured_stop_reason {
        Some(StopReason::MaxTokens(_)) => Some(Delta::Stopped(Stopped::MaxTokens)),
        Some(StopReason::ContentFilter(_)) => Some(Delta::Stopped(Stopped::Refusal)),
        _ => None,
    });
    let calls = end.captured_into_tool_calls().unwrap_or_default();
    deltas.extend(calls.into_iter().map(|call| {
        Delta::ToolUse(ToolUse {
            id: call.call_id,
            name: call.fn_name,
            arguments: call.fn_arguments,
        })
    }));
    deltas
}

fn tokens(usage: &Usage) -> Tokens {
    let count = |tokens: Option<i32>| u64::try_from(tokens.unwrap_or(0)).unwrap_or(0);
    let prompt = usage.prompt_tokens_details.as_ref();
    let completion = usage.completion_tokens_details.as_ref();
    Tokens {
        input: count(usage.prompt_tokens),
        output: count(usage.completion_tokens),
        cached: count(prompt.and_then(|details| details.cached_tokens)),
        thought: count(completion.and_then(|details| details.reasoning_tokens)),
    }
}
