//! Messages with the members that an agent rarely needs, so that clients can be tried with
//! each of them.

use acp_sdk::v1::{
    CompactionStatus, CompactionSummaryChunk, CompactionUpdate, Content, ContentBlock,
    CreateElicitationRequest, ElicitationFormMode, ElicitationMode, ElicitationSchema,
    ElicitationSessionScope, ReadTextFileRequest, SessionInfoUpdate, SessionUpdate, TextContent,
    ToolCall, ToolCallContent, ToolCallLocation, ToolCallStatus, ToolCallUpdate, ToolKind,
};
use acp_sdk::{HandlerError, HandlerResult, Json};
use acp_server::{Capability, Error, Result, Turn};

use super::words::needs;

/// A tool call that is under way when it is announced.
pub(super) async fn call(turn: &Turn) -> Result<()> {
    let id = turn.next_id("call");
    let place = ToolCallLocation::new(turn.session().resolve("example.txt")).with_line(1u32);
    let found = ContentBlock::Text(TextContent::new("Found once."));
    let call = ToolCall::new(id.as_str(), "Search for a word")
        .with_kind(ToolKind::Search)
        .with_status(ToolCallStatus::InProgress)
        .with_name("search")
        .with_content(vec![ToolCallContent::Content(Content::new(found))])
        .with_locations(vec![place.clone()])
        .with_raw_input(json(&[("word", "example")])?)
        .with_raw_output(json(&[("found", "once")])?);
    turn.send(SessionUpdate::ToolCall(call)).await?;
    let change = ToolCallUpdate::new(id.as_str())
        .with_title("Searched for a word")
        .with_status(ToolCallStatus::Completed)
        .with_kind(ToolKind::Search)
        .with_name("search")
        .with_locations(vec![place])
        .with_raw_input(json(&[("word", "example")])?)
        .with_raw_output(json(&[("found", "twice")])?);
    turn.send(SessionUpdate::ToolCallUpdate(change)).await
}

/// Reads a part of a file: the path, the first line, how many.
pub(super) async fn lines(turn: &Turn, rest: &str) -> HandlerResult<()> {
    let words: Vec<&str> = rest.split_whitespace().collect();
    let [path, line, limit] = words.as_slice() else {
        return Err(wrong("a path, a line and a number of lines are needed"));
    };
    let number = |word: &str| word.parse::<u32>().map_err(|_| wrong("no number of lines"));
    let client = turn.client(Capability::ReadTextFile).await?;
    let path = turn.session().resolve(path);
    let request = ReadTextFileRequest::new(turn.session().id(), path)
        .with_line(number(line)?)
        .with_limit(number(limit)?);
    let read = client.read_text_file(request).await?;
    turn.send_text(read.content).await?;
    Ok(())
}

/// Tells when the session was changed: now.
pub(super) async fn changed_now(turn: &Turn) -> Result<()> {
    let update = SessionInfoUpdate::new().with_updated_at(acp_server::internal::clock::now());
    turn.send(SessionUpdate::SessionInfoUpdate(update)).await
}

/// Asks the user to fill in a form for a tool call.
pub(super) async fn form_of_a_call(turn: &Turn, form: ElicitationSchema) -> Result<()> {
    needs(turn, Capability::ElicitForm)?;
    let call = turn.tool_call("Ask for a name", ToolKind::Other).await?;
    call.start().await?;
    let scope = ElicitationSessionScope::new(turn.session().id()).with_tool_call_id(call.id());
    let mode = ElicitationMode::Form(ElicitationFormMode::new(form, scope));
    let request = CreateElicitationRequest::new("Please introduce yourself", mode);
    turn.elicit_with(request).await?;
    call.complete("").await
}

/// A compaction with its summary, and one that fails.
pub(super) async fn compact(turn: &Turn) -> Result<()> {
    needs(turn, Capability::Compaction)?;
    let text = || ContentBlock::Text(TextContent::new("A summary."));
    let id = turn.next_id("compaction");
    let told = |status| CompactionUpdate::new(id.as_str(), status);
    update(turn, told(CompactionStatus::InProgress)).await?;
    let summary = CompactionSummaryChunk::new(id.as_str(), text());
    turn.send(SessionUpdate::CompactionSummaryChunk(summary))
        .await?;
    let done = told(CompactionStatus::Completed).with_summary(vec![text()]);
    update(turn, done).await?;

    let id = turn.next_id("compaction");
    let told = |status| CompactionUpdate::new(id.as_str(), status);
    update(turn, told(CompactionStatus::InProgress)).await?;
    let failed = told(CompactionStatus::Failed).with_error("There is nothing left to leave out.");
    update(turn, failed).await
}

async fn update(turn: &Turn, update: CompactionUpdate) -> Result<()> {
    turn.send(SessionUpdate::CompactionUpdate(update)).await
}

fn wrong(reason: &str) -> HandlerError {
    HandlerError::invalid_params("/prompt/0/text", reason)
}

/// An object of texts.
fn json(members: &[(&str, &str)]) -> Result<Json> {
    let members: std::collections::BTreeMap<_, _> = members.iter().copied().collect();
    Json::new(&members).map_err(Error::failed)
}
