//! What the first word of a prompt makes the reference agent do.

use std::time::Duration;

use acp_sdk::v1::{
    AvailableCommand, AvailableCommandInput, BooleanPropertySchema, ConfigOptionUpdate,
    ContentBlock, ContentChunk, Cost, CreateTerminalRequest, CurrentModeUpdate,
    ElicitationPropertySchema, ElicitationSchema, EnvVariable, IntegerPropertySchema, McpServer,
    Notice, NoticeSeverity, PlanEntry, PlanEntryPriority, PlanEntryStatus, SessionUpdate,
    StopReason, StringPropertySchema, TextContent, ToolCallLocation, ToolKind,
    UnstructuredCommandInput, UsageUpdate,
};
use acp_sdk::{HandlerError, HandlerResult, Meta, json::Map};
use acp_server::{Capability, Elicitation, Error, Result, Turn};

use super::{content, samples};

/// The words, as `--help` prints them.
pub const HELP: &str = "\
The first word of a prompt says what to do:
  think               a thought, then an answer
  plan                a plan of three entries
  call                a tool call that is under way when announced, with its raw data
  tool                a tool call with text, a diff and a terminal, pending to completed
  content             each kind of content, as messages and in a tool call
  permission          asks to allow a tool call and says what was chosen
  read PATH           reads a file through the client
  lines PATH N M      reads M lines from line N on
  write PATH TEXT     writes a file through the client
  terminal CMD [ARG]  runs a command in a terminal of the client
  kill CMD [ARG]      the same, but kills the command at once
  elicit form|url     asks the user for input
  elicit call         asks for it on behalf of a tool call
  usage               tokens and cost
  commands            the available slash commands
  title TEXT          a new title for the session
  mode                the current mode
  config              the config options
  meta                a message with the `_meta` of the prompt, or with a greeting
  servers             names the MCP servers of the session
  notice              a notice
  compact             a compaction with its summary, and one that fails
  slow                streams until cancelled, 30 s at most
  steer N             repeats N messages that are sent during the turn, 30 s at most
  refuse              ends the turn with the stop reason refusal
  fail                ends the turn with an error
  ping                ends the turn at once
  stream N            N chunks of 60 characters
  perm N              N permission requests, one after the other
Anything else is echoed, block by block.

What the client does not offer in `initialize` is not used; the agent says so instead.";

/// Does what the prompt says.
pub(super) async fn follow(turn: &Turn) -> HandlerResult<StopReason> {
    let said = match turn.prompt().first() {
        Some(ContentBlock::Text(text)) => text.text.trim(),
        _ => "",
    };
    let (word, rest) = said.split_once(char::is_whitespace).unwrap_or((said, ""));
    let done = obey(turn, word, rest.trim_start()).await;
    let source = done.as_ref().err().and_then(HandlerError::source);
    // An agent that lacks something says so and goes on, as far as it can.
    if let Some(unsupported @ Error::Unsupported(_)) =
        source.and_then(|source| source.downcast_ref())
    {
        turn.send_text(format!("I cannot do that: {unsupported}."))
            .await?;
        return Ok(StopReason::EndTurn);
    }
    done
}

async fn obey(turn: &Turn, word: &str, rest: &str) -> HandlerResult<StopReason> {
    match word {
        "ping" => {}
        "think" => {
            turn.send_thought("Let me think.").await?;
            turn.send_text("I have thought.").await?;
        }
        "plan" => turn.set_plan(plan()).await?,
        "call" => samples::call(turn).await?,
        "tool" => tool(turn).await?,
        "content" => all_content(turn).await?,
        "permission" => permission(turn).await?,
        "read" => {
            let content = turn.read_file(rest).await?;
            turn.send_text(content).await?;
        }
        "lines" => samples::lines(turn, rest).await?,
        "write" => {
            let (path, content) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
            turn.write_file(path, content).await?;
            turn.send_text(format!("Wrote {path}")).await?;
        }
        "terminal" => terminal(turn, rest, false).await?,
        "kill" => terminal(turn, rest, true).await?,
        "elicit" if rest == "call" => samples::form_of_a_call(turn, form()).await?,
        "elicit" => elicit(turn, rest).await?,
        "usage" => {
            let usage = UsageUpdate::new(1000u64, 200_000u64).with_cost(Cost::new(0.01, "USD"));
            turn.report_usage(usage).await?;
        }
        "commands" => turn.set_commands(commands()).await?,
        "title" => {
            turn.set_title(rest).await?;
            samples::changed_now(turn).await?;
        }
        "mode" => {
            let settings = turn.session().settings();
            let update = CurrentModeUpdate::new(settings.mode().unwrap_or_default());
            turn.send(SessionUpdate::CurrentModeUpdate(update)).await?;
        }
        "config" => {
            let update = ConfigOptionUpdate::new(turn.config_options());
            turn.send(SessionUpdate::ConfigOptionUpdate(update)).await?;
        }
        "meta" => meta(turn).await?,
        "servers" => turn.send_text(servers(turn)).await?,
        "notice" => {
            needs(turn, Capability::Notices)?;
            let notice = Notice::new(NoticeSeverity::Info, "For your information")
                .with_description("Nothing needs to be done.");
            turn.send(SessionUpdate::Notice(notice)).await?;
        }
        "compact" => samples::compact(turn).await?,
        "slow" => slow(turn).await?,
        "steer" => steer(turn, number(rest)?).await?,
        "refuse" => return Ok(StopReason::Refusal),
        "fail" => return Err("the prompt asked for a failure".into()),
        "stream" => stream(turn, number(rest)?).await?,
        "perm" => {
            let call = turn.tool_call("Run a command", ToolKind::Execute).await?;
            for _ in 0..number(rest)? {
                turn.ask_permission(&call).await?;
            }
            call.complete("").await?;
        }
        _ => {
            for block in turn.prompt() {
                match block {
                    // A block of a later protocol would be one more invalid message.
                    ContentBlock::Unknown(block) => {
                        turn.send_text(format!("A block of a new kind: {}", block.tag()))
                            .await?;
                    }
                    known => turn.send_content(known.clone()).await?,
                }
            }
        }
    }
    Ok(StopReason::EndTurn)
}

/// Fails before anything is sent, if no client offers what the rest needs.
pub(super) fn needs(turn: &Turn, capability: Capability) -> Result<()> {
    if turn.offers(capability) {
        return Ok(());
    }
    Err(Error::Unsupported(capability))
}

fn number(word: &str) -> HandlerResult<u64> {
    word.parse().map_err(|_| {
        let reason = format!("{word:?} is not a number of messages");
        HandlerError::invalid_params("/prompt/0/text", reason)
    })
}

fn plan() -> Vec<PlanEntry> {
    use {PlanEntryPriority as Priority, PlanEntryStatus as Status};
    vec![
        PlanEntry::new("Read", Priority::High, Status::Completed),
        PlanEntry::new("Change", Priority::Medium, Status::InProgress),
        PlanEntry::new("Test", Priority::Low, Status::Pending),
    ]
}

fn commands() -> Vec<AvailableCommand> {
    let input = UnstructuredCommandInput::new("a number");
    vec![
        AvailableCommand::new("ping", "Ends the turn at once"),
        AvailableCommand::new("stream", "Streams chunks")
            .with_input(AvailableCommandInput::from(input)),
    ]
}

async fn tool(turn: &Turn) -> Result<()> {
    let path = turn.session().resolve("example.txt");
    let place = ToolCallLocation::new(path.as_str()).with_line(1u32);
    let mut call = turn
        .tool_call("Edit example.txt", ToolKind::Edit)
        .locations([place])
        .await?;
    call.start().await?;
    call.add_text("One line changed.").await?;
    call.add_diff(&path, Some("old\n"), "new\n").await?;
    if turn.offers(Capability::Terminal) {
        let terminal = turn.terminal("true", []).await?;
        call.add_terminal(&terminal).await?;
        terminal.wait().await?;
        call.complete("").await?;
        return terminal.release().await;
    }
    call.complete("").await
}

async fn all_content(turn: &Turn) -> Result<()> {
    let mut call = turn.tool_call("Show everything", ToolKind::Other).await?;
    call.start().await?;
    for block in content::samples() {
        turn.send_content(block.clone()).await?;
        call.add_content(block).await?;
    }
    call.complete("").await
}

async fn permission(turn: &Turn) -> Result<()> {
    let call = turn.tool_call("Run a command", ToolKind::Execute).await?;
    let decision = turn.ask_permission(&call).await?;
    if decision.is_allowed() {
        call.complete("").await?;
    } else {
        call.reject().await?;
    }
    turn.send_text(format!("Permission: {}", decision.option()))
        .await
}

async fn terminal(turn: &Turn, line: &str, kill: bool) -> HandlerResult<()> {
    let mut words = line.split_whitespace();
    let Some(command) = words.next() else {
        let error = HandlerError::invalid_params("/prompt/0/text", "a command is missing");
        return Err(error);
    };
    needs(turn, Capability::Terminal)?;
    let mut call = turn.tool_call(line, ToolKind::Execute).await?;
    call.start().await?;
    let request = CreateTerminalRequest::new(turn.session().id(), command)
        .with_args(words.map(str::to_owned).collect())
        .with_cwd(turn.session().cwd())
        .with_env(vec![EnvVariable::new("ACP_REFERENCE", "1")])
        .with_output_byte_limit(1u64 << 20);
    let terminal = turn.terminal_with(request).await?;
    call.add_terminal(&terminal).await?;
    if kill {
        terminal.kill().await?;
    }
    let exit = terminal.wait().await?;
    let output = terminal.output().await?.output;
    call.complete("").await?;
    terminal.release().await?;
    turn.send_text(format!("{output}{exit}")).await?;
    Ok(())
}

async fn elicit(turn: &Turn, kind: &str) -> Result<()> {
    let answer = if kind == "url" {
        let (message, url) = (
            "Please have a look at this page",
            "https://example.com/authorize",
        );
        match turn.elicit_url(message, url).await? {
            Elicitation::Accepted(page) => {
                page.complete().await?;
                "accepted".to_owned()
            }
            Elicitation::NotOffered => return Err(Error::Unsupported(Capability::ElicitUrl)),
            other => in_words(&other).to_owned(),
        }
    } else {
        match turn.elicit("Please introduce yourself", form()).await? {
            Elicitation::Accepted(values) => {
                let values = acp_sdk::Json::new(&values).map_err(Error::failed)?;
                format!("accepted {}", values.get())
            }
            Elicitation::NotOffered => return Err(Error::Unsupported(Capability::ElicitForm)),
            other => in_words(&other).to_owned(),
        }
    };
    turn.send_text(format!("Answer: {answer}")).await
}

fn form() -> ElicitationSchema {
    let name = StringPropertySchema::new()
        .with_title("Name")
        .with_min_length(1u32);
    let color = StringPropertySchema::new()
        .with_title("Color")
        .with_enum(["red", "green"].map(str::to_owned).to_vec());
    let age = IntegerPropertySchema::new()
        .with_title("Age")
        .with_minimum(0i64);
    let member = BooleanPropertySchema::new()
        .with_title("Member")
        .with_default(false);
    let mut fields = Map::new();
    fields.insert("name", ElicitationPropertySchema::String(name));
    fields.insert("color", ElicitationPropertySchema::String(color));
    fields.insert("age", ElicitationPropertySchema::Integer(age));
    fields.insert("member", ElicitationPropertySchema::Boolean(member));
    ElicitationSchema::new()
        .with_title("You")
        .with_description("What there is to know about you")
        .with_properties(fields)
        .with_required(vec!["name".to_owned()])
}

fn in_words<T>(asked: &Elicitation<T>) -> &'static str {
    match asked {
        Elicitation::Accepted(_) => "accepted",
        Elicitation::Declined => "declined",
        Elicitation::Cancelled => "cancelled",
        Elicitation::NotOffered => "not offered",
    }
}

async fn meta(turn: &Turn) -> Result<()> {
    let meta = match turn.meta() {
        Some(meta) => meta.clone(),
        None => {
            let mut greeting = Meta::new();
            greeting.insert("acp-sdk", "hello").map_err(Error::failed)?;
            greeting
        }
    };
    let text = ContentBlock::Text(TextContent::new("See `_meta`."));
    let chunk = ContentChunk::new(text).with_meta(meta);
    turn.send(SessionUpdate::AgentMessageChunk(chunk)).await
}

fn servers(turn: &Turn) -> String {
    let servers = turn.session().mcp_servers();
    let names: Vec<&str> = servers
        .iter()
        .map(|server| match server {
            McpServer::Stdio(server) => server.name.as_str(),
            McpServer::Http(server) => server.name.as_str(),
            McpServer::Sse(server) => server.name.as_str(),
            _ => "one of a new kind",
        })
        .collect();
    if names.is_empty() {
        return "MCP servers: none".to_owned();
    }
    format!("MCP servers: {}", names.join(", "))
}

async fn slow(turn: &Turn) -> Result<()> {
    for tick in 1..=300 {
        turn.send_text(format!("tick {tick}\n")).await?;
        tokio::select! {
            () = turn.cancelled() => return Err(Error::Cancelled),
            () = tokio::time::sleep(Duration::from_millis(100)) => {}
        }
    }
    Ok(())
}

async fn steer(turn: &Turn, messages: u64) -> Result<()> {
    turn.send_text("Say more.\n").await?;
    let repeat = async {
        for _ in 0..messages {
            let input = turn.steered().await?;
            turn.send_text(format!("You said: {}\n", input.text()))
                .await?;
        }
        Ok(())
    };
    let repeated = tokio::time::timeout(Duration::from_secs(30), repeat).await;
    repeated.unwrap_or(Ok(()))
}

async fn stream(turn: &Turn, chunks: u64) -> Result<()> {
    for number in 0..chunks {
        if turn.is_cancelled() {
            return Err(Error::Cancelled);
        }
        let said = format!("{number:08} the quick brown fox jumps over the lazy dog, and so");
        turn.send_text(said).await?;
    }
    Ok(())
}
