//! What the first word of a prompt makes the agent do.

use std::time::Duration;

use acp_sdk::v1::*;
use acp_sdk::{Error, Result};

use crate::turn::{Turn, chunk, text};

/// The words, as `--help` prints them.
pub const HELP: &str = "\
The first word of a prompt says what to do:
  think               a thought, then an answer
  plan                a plan of three entries
  tool                a tool call with text and a diff, from pending to completed
  permission          asks for permission and says what was chosen
  read PATH           reads a file through the client
  write PATH TEXT     writes a file through the client
  terminal CMD [ARG]  runs a command in a terminal of the client
  elicit form|url     asks the user for input
  usage               tokens and cost
  commands            the available slash commands
  title TEXT          a new title for the session
  mode                the current mode
  config              the config options
  notice              a notice
  compact             a compaction with its summary
  slow                streams until cancelled, 30 s at most
  fail                ends the turn with an error
  ping                ends the turn at once
  stream N            N chunks of 60 characters
  perm N              N permission requests, one after the other
Anything else is echoed, block by block.";

/// Does what the prompt says.
pub(crate) async fn follow(turn: &Turn<'_>, prompt: &[ContentBlock]) -> Result<StopReason> {
    let said = match prompt.first() {
        Some(ContentBlock::Text(text)) => text.text.trim(),
        _ => "",
    };
    let (word, rest) = said.split_once(char::is_whitespace).unwrap_or((said, ""));
    let rest = rest.trim_start();
    match word {
        "ping" => {}
        "think" => {
            turn.update(SessionUpdate::AgentThoughtChunk(chunk("Let me think.")))
                .await?;
            turn.say("I have thought.").await?;
        }
        "plan" => turn.update(SessionUpdate::Plan(plan())).await?,
        "tool" => tool(turn).await?,
        "permission" => {
            let outcome = ask(turn).await?;
            turn.say(format!("Permission: {outcome}")).await?;
        }
        "read" => {
            let request = ReadTextFileRequest::new(turn.id(), rest);
            let content = turn.client.read_text_file(request).await?.content;
            turn.say(content).await?;
        }
        "write" => {
            let (path, content) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
            let request = WriteTextFileRequest::new(turn.id(), path, content);
            turn.client.write_text_file(request).await?;
            turn.say(format!("Wrote {path}")).await?;
        }
        "terminal" => terminal(turn, rest).await?,
        "elicit" => elicit(turn, rest).await?,
        "usage" => {
            let usage = UsageUpdate::new(1000, 200_000).with_cost(Cost::new(0.01, "USD"));
            turn.update(SessionUpdate::UsageUpdate(usage)).await?;
        }
        "commands" => {
            let input = UnstructuredCommandInput::new("a number");
            let commands = vec![
                AvailableCommand::new("ping", "Ends the turn at once"),
                AvailableCommand::new("stream", "Streams chunks")
                    .with_input(AvailableCommandInput::from(input)),
            ];
            let update = AvailableCommandsUpdate::new(commands);
            turn.update(SessionUpdate::AvailableCommandsUpdate(update))
                .await?;
        }
        "title" => {
            let update = SessionInfoUpdate::new().with_title(rest);
            turn.update(SessionUpdate::SessionInfoUpdate(update))
                .await?;
        }
        "mode" => {
            let update = CurrentModeUpdate::new(turn.session.modes().current_mode_id);
            turn.update(SessionUpdate::CurrentModeUpdate(update))
                .await?;
        }
        "config" => {
            let update = ConfigOptionUpdate::new(turn.session.config());
            turn.update(SessionUpdate::ConfigOptionUpdate(update))
                .await?;
        }
        "notice" => {
            let notice = Notice::new(NoticeSeverity::Info, "For your information");
            turn.update(SessionUpdate::Notice(notice)).await?;
        }
        "compact" => compact(turn).await?,
        "slow" => slow(turn).await?,
        "fail" => return Err(Error::internal("the prompt asked for a failure")),
        "stream" => stream(turn, number(rest)?).await?,
        "perm" => {
            for _ in 0..number(rest)? {
                ask(turn).await?;
            }
        }
        _ => {
            for block in prompt {
                let chunk = ContentChunk::new(block.clone());
                turn.update(SessionUpdate::AgentMessageChunk(chunk)).await?;
            }
        }
    }
    Ok(StopReason::EndTurn)
}

fn number(word: &str) -> Result<u64> {
    word.parse().map_err(|_| {
        Error::invalid_params(
            "/prompt/0/text",
            format!("{word:?} is not a number of messages"),
        )
    })
}

fn plan() -> Plan {
    use {PlanEntryPriority as Priority, PlanEntryStatus as Status};
    Plan::new(vec![
        PlanEntry::new("Read", Priority::High, Status::Completed),
        PlanEntry::new("Change", Priority::Medium, Status::InProgress),
        PlanEntry::new("Test", Priority::Low, Status::Pending),
    ])
}

async fn tool(turn: &Turn<'_>) -> Result<()> {
    let path = format!("{}/example.txt", turn.session.cwd);
    let call = ToolCall::new("call-1", "Edit example.txt")
        .with_kind(ToolKind::Edit)
        .with_status(ToolCallStatus::Pending)
        .with_locations(vec![ToolCallLocation::new(path.as_str()).with_line(1)]);
    turn.update(SessionUpdate::ToolCall(call)).await?;
    turn.status("call-1", ToolCallStatus::InProgress).await?;
    let content = vec![
        ToolCallContent::Content(Content::new(text("One line changed."))),
        ToolCallContent::Diff(Diff::new(path, "new\n").with_old_text("old\n")),
    ];
    let done = ToolCallUpdate::new("call-1")
        .with_status(ToolCallStatus::Completed)
        .with_content(content);
    turn.update(SessionUpdate::ToolCallUpdate(done)).await
}

/// Asks for permission; yields the chosen option's id, or `cancelled`.
async fn ask(turn: &Turn<'_>) -> Result<String> {
    let call = ToolCallUpdate::new("call_1").with_title("Run a command");
    let options = vec![
        PermissionOption::new("allow", "Allow", PermissionOptionKind::AllowOnce),
        PermissionOption::new("reject", "Reject", PermissionOptionKind::RejectOnce),
    ];
    let request = RequestPermissionRequest::new(turn.id(), call, options);
    let answer = turn.client.request_permission(request).await?;
    Ok(match answer.outcome {
        RequestPermissionOutcome::Selected(chosen) => chosen.option_id.to_string(),
        _ => "cancelled".to_owned(),
    })
}

async fn terminal(turn: &Turn<'_>, line: &str) -> Result<()> {
    let mut words = line.split_whitespace().map(str::to_owned);
    let Some(command) = words.next() else {
        return Err(Error::invalid_params(
            "/prompt/0/text",
            "`terminal` needs a command",
        ));
    };
    let (client, session) = (turn.client, turn.id());
    let request =
        CreateTerminalRequest::new(session.clone(), command.as_str()).with_args(words.collect());
    let id = client.create_terminal(request).await?.terminal_id;
    let call = ToolCall::new("call-1", command)
        .with_kind(ToolKind::Execute)
        .with_status(ToolCallStatus::InProgress)
        .with_content(vec![ToolCallContent::Terminal(Terminal::new(id.clone()))]);
    turn.update(SessionUpdate::ToolCall(call)).await?;
    let wait = WaitForTerminalExitRequest::new(session.clone(), id.clone());
    let status = client.wait_for_terminal_exit(wait).await?;
    let request = TerminalOutputRequest::new(session.clone(), id.clone());
    let output = client.terminal_output(request).await?.output;
    client
        .kill_terminal(KillTerminalRequest::new(session.clone(), id.clone()))
        .await?;
    client
        .release_terminal(ReleaseTerminalRequest::new(session, id))
        .await?;
    turn.status("call-1", ToolCallStatus::Completed).await?;
    turn.say(format!("{output}exit code: {:?}", status.exit_code))
        .await
}

async fn elicit(turn: &Turn<'_>, kind: &str) -> Result<()> {
    let scope = ElicitationSessionScope::new(turn.id());
    let mode = if kind == "url" {
        let url = "https://example.com/authorize";
        ElicitationMode::Url(ElicitationUrlMode::new("elicitation-1", url, scope))
    } else {
        let schema = ElicitationSchema::new().with_title("Settings");
        ElicitationMode::Form(ElicitationFormMode::new(schema, scope))
    };
    let is_url = matches!(mode, ElicitationMode::Url(_));
    let request = CreateElicitationRequest::new("Please answer", mode);
    let answer = turn.client.create_elicitation(request).await?;
    if is_url {
        let note = CompleteElicitationNotification::new("elicitation-1");
        turn.client.complete_elicitation(note).await?;
    }
    turn.say(format!("Answer: {answer:?}")).await
}

async fn compact(turn: &Turn<'_>) -> Result<()> {
    let begun = CompactionUpdate::new("compaction-1", CompactionStatus::InProgress);
    turn.update(SessionUpdate::CompactionUpdate(begun)).await?;
    let summary = CompactionSummaryChunk::new("compaction-1", text("A summary."));
    turn.update(SessionUpdate::CompactionSummaryChunk(summary))
        .await?;
    let done = CompactionUpdate::new("compaction-1", CompactionStatus::Completed);
    turn.update(SessionUpdate::CompactionUpdate(done)).await
}

async fn slow(turn: &Turn<'_>) -> Result<()> {
    for second in 1..=300 {
        turn.say(format!("tick {second}\n")).await?;
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    Ok(())
}

async fn stream(turn: &Turn<'_>, chunks: u64) -> Result<()> {
    for number in 0..chunks {
        let said = format!("{number:08} the quick brown fox jumps over the lazy dog, and so");
        turn.fleeting(SessionUpdate::AgentMessageChunk(chunk(said)))
            .await?;
    }
    Ok(())
}
