//! An agent that does what the words of a prompt say.

use acp_sdk::v1::{
    AvailableCommand, ContentBlock, Cost, PermissionOption, PermissionOptionKind, PlanEntry,
    PlanEntryPriority, PlanEntryStatus, SessionConfigOption, SessionConfigOptionCategory,
    SessionConfigSelect, SessionConfigSelectOption, SessionConfigSelectOptions, SessionMode,
    SessionModeState, SessionUpdate, StopReason, ToolCall, ToolCallStatus, ToolCallUpdate,
    ToolKind, UsageUpdate,
};
use acp_sdk::{HandlerResult, Json};
use acp_server::event::{Event, EventBody};
use acp_server::{AgentInfo, Error, Handler, Opening, Received, Settings, Turn};
use serde_json::json;
use tokio::sync::Semaphore;

pub struct Script;

/// Lets a turn go on that does not end by itself when it is cancelled.
static GO: Semaphore = Semaphore::const_new(0);

impl Script {
    pub fn go() {
        GO.add_permits(1);
    }
}

impl Handler for Script {
    type State = ();

    fn info(&self) -> AgentInfo {
        AgentInfo::new("script", "1")
    }

    async fn open(&self, (): &mut (), _: &Opening) -> HandlerResult<Settings> {
        let modes = ["build", "plan"].map(|id| SessionMode::new(id, id));
        let models = ["small", "large"].map(|id| SessionConfigSelectOption::new(id, id));
        let models = SessionConfigSelectOptions::Ungrouped(models.to_vec());
        let model = SessionConfigSelect::new("small", models);
        let model = SessionConfigOption::new("model", "Model", model)
            .with_category(SessionConfigOptionCategory::Model);
        Ok(Settings::new()
            .modes(SessionModeState::new("build", modes.to_vec()))
            .option(model))
    }

    async fn prompt(&self, (): &mut (), turn: Turn) -> HandlerResult<StopReason> {
        let text = turn.prompt_text();
        let (word, rest) = text.split_once(' ').unwrap_or((&text, ""));
        match word {
            "say" => {
                for chunk in rest.split('|') {
                    turn.send_text(chunk).await?;
                }
            }
            "count" => {
                for n in 1..=rest.parse().unwrap_or(0_u32) {
                    turn.send_text(format!("{n} ")).await?;
                }
            }
            "hold" => {
                turn.send_text(rest).await?;
                turn.cancelled().await;
                return Err(Error::Cancelled.into());
            }
            "stubborn" => {
                turn.send_text("No.").await?;
                turn.cancelled().await;
                GO.acquire().await.unwrap().forget();
                return Err(Error::Cancelled.into());
            }
            "think" => {
                turn.send_thought("Hm.").await?;
                turn.send_text("Yes.").await?;
            }
            "tool" => tool(&turn, rest).await?,
            "ask" => ask(&turn, rest).await?,
            "plan" => {
                let entry = |content: &str, status| {
                    PlanEntry::new(content, PlanEntryPriority::High, status)
                };
                turn.set_plan(vec![
                    entry("Read", PlanEntryStatus::Completed),
                    entry("Write", PlanEntryStatus::Pending),
                ])
                .await?;
            }
            "commands" => {
                let commands = [AvailableCommand::new("review", "Reviews changes")];
                turn.set_commands(commands.to_vec()).await?;
            }
            "files" => files(&turn).await?,
            "usage" => {
                let usage = UsageUpdate::new(1_000_u64, 200_000_u64);
                turn.report_usage(usage.with_cost(Cost::new(0.5, "USD")))
                    .await?;
                let usage =
                    json!({ "usage": { "totalTokens": 15, "inputTokens": 10, "outputTokens": 5 } });
                turn.set_answer(Json::from(usage));
            }
            "history" => {
                let (mut history, mut said) = (turn.session().history(), Vec::new());
                while let Some(received) = history.next().await? {
                    if let Received::Event(Event {
                        body: EventBody::Update(update),
                        ..
                    }) = received
                        && let SessionUpdate::UserMessageChunk(chunk) = update
                        && let ContentBlock::Text(text) = chunk.content
                    {
                        said.push(text.text);
                    }
                }
                turn.send_text(said.join(", ")).await?;
            }
            "settings" => {
                let settings = turn.session().settings();
                let text = format!("{:?} {:?}", settings.mode(), settings.model());
                turn.send_text(text).await?;
            }
            "fail" => return Err("no model answers".into()),
            "panic" => panic!("as the test wants it"),
            _ => {}
        }
        Ok(StopReason::EndTurn)
    }
}

/// Reads, changes and creates files, runs a command, retrieves a page.
async fn files(turn: &Turn) -> HandlerResult<()> {
    let read = turn.tool_call("Read", ToolKind::Read).location("/w/a");
    read.await?.complete("one").await?;
    let edit = turn.tool_call("Edit", ToolKind::Edit).location("/w/a");
    let edit = edit.diff("/w/a", Some("one\ntwo\n"), "one\n2\n").await?;
    edit.complete("").await?;
    let create = turn.tool_call("Create", ToolKind::Edit);
    create
        .diff("/w/b", None, "new\n")
        .await?
        .fail("disk full")
        .await?;
    let create = turn.tool_call("Create", ToolKind::Edit);
    create
        .diff("/w/c", None, "new\n")
        .await?
        .complete("")
        .await?;
    let run = turn.tool_call("Run", ToolKind::Execute);
    let run = run.raw_input(json!({ "command": "echo", "args": ["a b"] }));
    run.await?.complete("\u{1b}[1ma b").await?;
    let fetch = turn.tool_call("Fetch", ToolKind::Fetch);
    let fetch = fetch.raw_input(json!({ "url": "https://example.com" }));
    fetch.await?.complete("Example").await?;
    Ok(())
}

async fn tool(turn: &Turn, what: &str) -> HandlerResult<()> {
    turn.send_text("Before. ").await?;
    let call = turn.tool_call("List files", ToolKind::Execute);
    let call = call.raw_input(json!({ "cmd": "ls" })).await?;
    match what {
        "fails" => call.fail("no such command").await?,
        "named" => {
            let named = ToolCall::new("named", "Read").with_name("read");
            turn.send(named.with_status(ToolCallStatus::Completed).into())
                .await?;
            call.complete("").await?;
        }
        "raw" => {
            let output = ToolCallUpdate::new("").with_raw_output(Json::from(json!({ "files": 2 })));
            call.update(output).await?;
            call.complete("").await?;
        }
        _ => call.complete("a b").await?,
    }
    turn.send_text("After.").await?;
    Ok(())
}

/// Asks with the options of these kinds.
async fn ask(turn: &Turn, kinds: &str) -> HandlerResult<()> {
    let call = turn.tool_call("Remove files", ToolKind::Execute);
    let call = call.raw_input(json!({ "cmd": "rm" })).await?;
    let options = kinds.split(' ').map(|kind| {
        let of_kind: PermissionOptionKind = serde_json::from_value(kind.into()).unwrap();
        PermissionOption::new(kind, kind, of_kind)
    });
    let decision = turn.ask_permission_with(&call, options.collect()).await?;
    turn.send_text(format!("Chosen: {}.", decision.option()))
        .await?;
    match decision.is_allowed() {
        true => call.complete("").await?,
        false => call.reject().await?,
    }
    Ok(())
}
