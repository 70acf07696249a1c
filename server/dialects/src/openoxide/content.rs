//! Plans, commands, diffs and tool reports in OpenOxide's form.

use std::time::Duration;

use acp_sdk::v1;
use acp_sdk::v1::{AvailableCommand, ToolCallContent, ToolKind};
use serde_json::Value;
use similar::TextDiff;

use crate::call;
use acp_dialects::openoxide::*;

/// Lines around a change in a diff.
const CONTEXT: usize = 3;

/// Time to search the shortest diff. A diff that is found later is longer, and as correct.
const DIFF_TIME: Duration = Duration::from_millis(100);

/// Returns a command as the user types it.
pub(super) fn command(command: &AvailableCommand) -> SlashCommandDef {
    let name = command.name.trim_start_matches('/');
    SlashCommandDef::new(format!("/{name}"), command.description.as_str())
}

pub(super) fn plan(plan: &v1::Plan) -> Plan {
    let steps = plan.entries.iter().map(|entry| {
        PlanStep::new(
            entry.content.as_str(),
            entry.status.as_str(),
            entry.priority.as_str(),
        )
    });
    Plan::new(steps.collect())
}

pub(super) fn started(call: v1::ToolCall) -> ToolCall {
    let kind = call::kind(call.kind.as_ref());
    let name = call.name.as_deref().unwrap_or(kind);
    let input = call
        .raw_input
        .unwrap_or_else(|| serde_json::json!({}).into());
    ToolCall::new(call.tool_call_id.as_str(), name, kind, call.title, input)
}

/// Returns the changes of a call that succeeded.
pub(super) fn diffs(call: &v1::ToolCall) -> impl Iterator<Item = DiffBlock> {
    let content = call.content.iter().filter(|_| call::has_succeeded(call));
    content.filter_map(|content| match content {
        ToolCallContent::Diff(diff) => {
            let text = unified(&diff.path, diff.old_text.as_deref(), &diff.new_text);
            let path = diff.path.as_str();
            Some(DiffBlock::new(call.tool_call_id.as_str(), path, text))
        }
        _ => None,
    })
}

fn unified(path: &str, old: Option<&str>, new: &str) -> String {
    let diff = TextDiff::configure()
        .timeout(DIFF_TIME)
        .diff_lines(old.unwrap_or_default(), new);
    let path = path.trim_start_matches('/');
    let before = match old {
        Some(_) => format!("a/{path}"),
        None => "/dev/null".to_owned(),
    };
    let mut unified = diff.unified_diff();
    let unified = unified.context_radius(CONTEXT);
    unified.header(&before, &format!("b/{path}")).to_string()
}

/// Returns the result of a call that ended at `time`.
pub(super) fn ended(call: &v1::ToolCall, time: Option<String>) -> ToolResult {
    let success = call::has_succeeded(call);
    let output = call::output(call);
    let reports = reports(call, success, output.as_deref(), time);
    let mut result = ToolResult::new(call.tool_call_id.as_str(), success, reports);
    result.output = output;
    result
}

/// Returns what a call did. One that failed has changed and read nothing, but its command may have run.
fn reports(
    call: &v1::ToolCall,
    success: bool,
    output: Option<&str>,
    time: Option<String>,
) -> Vec<ToolReport> {
    let input = call.raw_input.as_ref();
    let input = input.and_then(|input| serde_json::from_str::<Value>(input.get()).ok());
    let input = input.unwrap_or_default();
    let title = || call.title.clone();
    match &call.kind {
        Some(ToolKind::Read) if success => {
            let report = |path| {
                let mut read = FileRead::new(path);
                read.time.clone_from(&time);
                read.into()
            };
            paths(call).into_iter().map(report).collect()
        }
        Some(ToolKind::Edit | ToolKind::Delete | ToolKind::Move) if success => {
            let report = |path| FileWrite::new(path).into();
            paths(call).into_iter().map(report).collect()
        }
        Some(ToolKind::Execute) if success || output.is_some() => {
            let command = command_line(&input).unwrap_or_else(title);
            let mut run = TerminalBlock::new(command);
            run.output = output.map(str::to_owned);
            vec![run.into()]
        }
        Some(ToolKind::Fetch) if success => {
            let mut places = ["url", "query"].iter();
            let place = places.find_map(|name| Some(input.get(name)?.as_str()?.to_owned()));
            let mut page = WebSearch::new(place.unwrap_or_else(title));
            page.content = output.map(str::to_owned);
            vec![page.into()]
        }
        _ => Vec::new(),
    }
}

/// Returns the command that an input has, with its arguments.
fn command_line(input: &Value) -> Option<String> {
    let command = ["command", "cmd"].iter().find_map(|name| input.get(name));
    let mut words: Vec<&str> = match command? {
        // A whole line, or a program.
        Value::String(line) => vec![line],
        Value::Array(words) => words.iter().filter_map(Value::as_str).collect(),
        _ => return None,
    };
    match input.get("args").and_then(Value::as_array) {
        None if words.len() == 1 => return words.pop().map(str::to_owned),
        args => words.extend(args.into_iter().flatten().filter_map(Value::as_str)),
    }
    Some(acp_sdk::text::command_line(words))
}

/// Returns the files of a call, each once.
fn paths(call: &v1::ToolCall) -> Vec<&str> {
    let locations = call.locations.iter().map(|place| place.path.as_str());
    let changed = call.content.iter().filter_map(|content| match content {
        ToolCallContent::Diff(diff) => Some(diff.path.as_str()),
        _ => None,
    });
    let mut paths = Vec::new();
    for path in locations.chain(changed) {
        if !paths.contains(&path) {
            paths.push(path);
        }
    }
    paths
}
