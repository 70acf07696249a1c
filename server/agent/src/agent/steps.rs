//! A turn: requests to the model and calls of tools, until the model has nothing more to do.

use std::sync::Arc;

use acp_sdk::Meta;
use acp_sdk::v1::{
    ContentBlock, ContentChunk, SessionUpdate, StopReason, TextContent, UsageUpdate,
};
use acp_server::{HandlerResult, Turn};
use serde::Deserialize;
use serde_json::json;
use tokio::sync::Mutex;

use super::asking::{Answering, Unanswered};
use super::{Agent, AgentState, Mode, compaction};
use crate::context::Context;
use crate::model::{Delta, ErrorKind, Model, Request, Stopped, Tokens, ToolUse};
use crate::tool::{FileLocks, Run, SharedJournal};

/// What an answer has, apart from what was shown.
#[derive(Default)]
struct Answered {
    uses: Vec<ToolUse>,
    tokens: Tokens,
    stopped: Option<Stopped>,
}

/// What the prompt limits; see [`acp_server::AgentInfo::turn_limits`].
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct TurnLimits {
    max_steps: Option<u32>,
    allowed_tools: Option<Vec<String>>,
}

/// Runs a turn.
///
/// # Errors
///
/// Why the model did not answer, or what the session fails with.
pub(super) async fn run(
    agent: &Agent,
    state: &mut AgentState,
    turn: Turn,
) -> HandlerResult<StopReason> {
    expand(state, &turn).await?;
    let journal = match &agent.journals {
        Some(journals) => Some(Arc::new(Mutex::new(journals.begin(&turn).await?))),
        None => None,
    };
    let ended = steps(agent, state, &turn, journal.clone()).await;
    // A call that goes on has it; then the turn ends in the journal when the call does.
    if let Some(journal) = journal.and_then(Arc::into_inner) {
        journal.into_inner().end().await?;
    }
    ended
}

/// Has a slash command mean its text.
async fn expand(state: &mut AgentState, turn: &Turn) -> HandlerResult<()> {
    let Some(commands) = &state.commands else {
        return Ok(());
    };
    let commands = commands.borrow().clone();
    if let Some(expanded) = commands.expand(turn.prompt())? {
        let text = acp_server::text_of(&expanded.prompt);
        // The prompt is the newest message.
        state.context.catch_up(turn.session()).await?;
        state.context.tell_instead(turn.session(), text)?;
    }
    Ok(())
}

/// Asks the model and runs tools until there is nothing more to do.
async fn steps(
    agent: &Agent,
    state: &mut AgentState,
    turn: &Turn,
    journal: Option<SharedJournal>,
) -> HandlerResult<StopReason> {
    let AgentState {
        context, servers, ..
    } = state;
    let limits = turn.meta().and_then(|meta| meta.get("acp-sdk"));
    let limits: TurnLimits = limits.unwrap_or_default();
    let most = limits
        .max_steps
        .unwrap_or(agent.most_steps)
        .min(agent.most_steps);
    let mut tokens = Tokens::default();
    let mut compacted = false;
    let locks = FileLocks::default();
    for _ in 0..most {
        // What the user has said meanwhile; it is in the log from then on.
        while turn.steered_now().await?.is_some() {}
        context.catch_up(turn.session()).await?;
        // The user may change both while the turn runs.
        let settings = turn.session().settings();
        let mode = settings.mode().and_then(Mode::from_id).unwrap_or_default();
        let model = agent.model(&settings).as_ref();
        if compaction::is_due(context, model) {
            compaction::compact(agent, context, turn, model).await?;
        }
        let tools = agent.tools_with(servers, limits.allowed_tools.as_deref());
        let request = Request {
            instructions: agent.instructions.clone(),
            messages: context.messages(),
            tools: tools.offered(mode),
        };
        let answered = match answer(agent, turn, model, &request).await {
            Ok(answered) => answered,
            Err(Unanswered::Model(error)) if error.kind == ErrorKind::TooLong && !compacted => {
                compacted = true;
                compaction::compact(agent, context, turn, model).await?;
                continue;
            }
            Err(error) => return Err(error.into()),
        };
        tokens += answered.tokens;
        report(agent, context, turn, model, answered.tokens).await?;
        turn.set_answer(usage(tokens));
        let is_done = answered.uses.is_empty();
        let spent = tokens.input.saturating_add(tokens.output);
        if !is_done && agent.most_tokens.is_some_and(|most| spent > most) {
            return Ok(StopReason::MaxTokens);
        }
        match answered.stopped {
            Some(Stopped::MaxTokens) if is_done => return Ok(StopReason::MaxTokens),
            Some(Stopped::Refusal) => return Ok(StopReason::Refusal),
            _ => {}
        }
        if is_done {
            // The user may have said something more.
            if turn.steered_now().await?.is_none() {
                return Ok(StopReason::EndTurn);
            }
            continue;
        }
        let run = Run {
            turn,
            mode,
            tools: &tools,
            undo: journal.clone(),
            locks: locks.clone(),
        };
        run.all(answered.uses).await?;
    }
    Ok(StopReason::MaxTurnRequests)
}

/// Asks the model, and shows its answer while it comes.
async fn answer(
    agent: &Agent,
    turn: &Turn,
    model: &dyn Model,
    request: &Request,
) -> Result<Answered, Unanswered> {
    let mut answer = Answering::begin(agent, turn, model, request).await?;
    let mut answered = Answered::default();
    loop {
        match answer.next().await? {
            None => return Ok(answered),
            Some(Delta::Text(text)) => turn.send_text(text).await?,
            Some(Delta::Thought(text)) => turn.send_thought(text).await?,
            Some(Delta::Signature(signature)) => sign(turn, &signature).await?,
            Some(Delta::ToolUse(used)) => answered.uses.push(used),
            Some(Delta::Tokens(tokens)) => answered.tokens += tokens,
            Some(Delta::Stopped(stopped)) => answered.stopped = Some(stopped),
        }
    }
}

/// Keeps the provider's signature with the thought.
async fn sign(turn: &Turn, signature: &str) -> acp_server::Result<()> {
    let meta = Meta::new().with("acp-sdk", &json!({ "signature": signature }));
    let chunk = ContentChunk::new(ContentBlock::Text(TextContent::new(""))).with_meta(meta);
    turn.send(SessionUpdate::AgentThoughtChunk(chunk)).await
}

/// Reports the tokens of the conversation, and what the session has cost.
async fn report(
    agent: &Agent,
    context: &Context,
    turn: &Turn,
    model: &dyn Model,
    tokens: Tokens,
) -> acp_server::Result<()> {
    if tokens == Tokens::default() {
        return Ok(());
    }
    let used = tokens.input.saturating_add(tokens.output);
    let mut usage = UsageUpdate::new(used, model.context_window());
    let before = context.cost();
    usage.cost = match agent.prices.cost(model.name(), tokens) {
        Some(mut cost) => {
            if let Some(before) = before.filter(|before| before.currency == cost.currency) {
                cost.amount += before.amount;
            }
            Some(cost)
        }
        None => before.cloned(),
    };
    turn.report_usage(usage).await
}

/// The tokens of a turn, as a member of the answer of its prompt.
fn usage(tokens: Tokens) -> Option<acp_sdk::Json> {
    if tokens == Tokens::default() {
        return None;
    }
    let usage = json!({"usage": {
        "totalTokens": tokens.input + tokens.output,
        "inputTokens": tokens.input,
        "outputTokens": tokens.output,
        "cachedReadTokens": tokens.cached,
        "thoughtTokens": tokens.thought,
    }});
    acp_sdk::Json::new(&usage).ok()
}
