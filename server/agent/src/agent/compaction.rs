//! Compaction: a summary in place of a conversation that is about to be too long.

use acp_sdk::v1::{
    CompactionId, CompactionStatus, CompactionSummaryChunk, CompactionUpdate, ContentBlock,
    SessionUpdate, TextContent,
};
use acp_server::Turn;

use super::Agent;
use super::asking::{Answering, Unanswered};
use crate::context::Context;
use crate::model::{Delta, ErrorKind, Message, Model, ModelError, Request};

const INSTRUCTIONS: &str = "You summarise a conversation between a user and a coding agent, so that the agent can \
    go on with the summary alone. Keep: what the user wants and has decided; what was done, with the paths of files \
    and the commands; what was learned; what failed and why; what is still to be done. Leave out greetings and the \
    content of files that can be read again.";

const PLEASE: &str = "Summarise the conversation up to here.";

/// Returns whether the conversation fills four fifths of what the model takes.
pub(super) fn is_due(context: &Context, model: &dyn Model) -> bool {
    context.used() > model.context_window() / 5 * 4
}

/// Replaces the conversation by a summary of the model, and shows that.
///
/// # Errors
///
/// Why the model did not answer, or what the session fails with.
pub(super) async fn compact(
    agent: &Agent,
    context: &mut Context,
    turn: &Turn,
    model: &dyn Model,
) -> Result<(), Unanswered> {
    let id: CompactionId = turn.next_id("compaction").into();
    let told = |status| CompactionUpdate::new(id.clone(), status);
    send(turn, told(CompactionStatus::InProgress)).await?;
    let done = match summarize(agent, context, turn, model, &id).await {
        Ok(summary) => {
            let summary = vec![ContentBlock::Text(TextContent::new(summary))];
            told(CompactionStatus::Completed).with_summary(summary)
        }
        Err(Unanswered::Model(error)) => {
            let failed = told(CompactionStatus::Failed).with_error(error.to_string());
            send(turn, failed).await?;
            return Err(Unanswered::Model(error));
        }
        Err(error) => return Err(error),
    };
    send(turn, done).await?;
    Ok(context.catch_up(turn.session()).await?)
}

async fn send(turn: &Turn, update: CompactionUpdate) -> acp_server::Result<()> {
    turn.send(SessionUpdate::CompactionUpdate(update)).await
}

async fn summarize(
    agent: &Agent,
    context: &Context,
    turn: &Turn,
    model: &dyn Model,
    id: &CompactionId,
) -> Result<String, Unanswered> {
    let mut messages = context.messages();
    messages.push(Message::user(PLEASE));
    let request = Request {
        instructions: INSTRUCTIONS.to_owned(),
        messages,
        tools: Vec::new(),
    };
    let mut answer = Answering::begin(agent, turn, model, &request).await?;
    let mut summary = String::new();
    loop {
        match answer.next().await? {
            None => break,
            Some(Delta::Text(text)) => {
                summary.push_str(&text);
                let block = ContentBlock::Text(TextContent::new(text));
                let chunk = CompactionSummaryChunk::new(id.clone(), block);
                turn.send(SessionUpdate::CompactionSummaryChunk(chunk))
                    .await?;
            }
            Some(_) => {}
        }
    }
    if summary.trim().is_empty() {
        let reason = "the summary of the conversation is empty";
        let error = ModelError::new(model.name(), ErrorKind::TooLong, reason);
        return Err(Unanswered::Model(error));
    }
    Ok(summary)
}
