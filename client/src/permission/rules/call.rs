//! What rules judge of a tool call: its kind, its paths and its commands.

use acp_sdk::v1::ToolKind;
use serde_json::Value;

use super::command::Command;
use super::path::{Base, CallPath};
use crate::permission::PermissionRequest;

/// Members of a tool's input that hold a path, or a list of them.
const PATH_MEMBERS: &[&str] = &[
    "path",
    "paths",
    "file",
    "files",
    "file_path",
    "filePath",
    "filename",
    "fileName",
    "abs_path",
    "absolute_path",
    "absolutePath",
    "notebook_path",
    "notebookPath",
    "target_file",
    "old_path",
    "oldPath",
    "new_path",
    "newPath",
    "source",
    "destination",
    "directory",
];

/// Members that hold a command: a line, or a list of words.
const COMMAND_MEMBERS: &[&str] = &["command", "cmd", "script"];

/// Members that hold the arguments of the program in `command`.
const ARGUMENT_MEMBERS: &[&str] = &["args", "arguments"];

/// Members that hold the directory of a command.
const DIRECTORY_MEMBERS: &[&str] = &["cwd", "workdir", "workingDirectory", "working_directory"];

/// The most texts of an input that are judged as paths by rules that deny.
const MOST_TEXTS: usize = 1000;

/// A tool call as rules see it.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) kind: Option<ToolKind>,
    pub(super) base: Option<Base>,
    /// The paths that the agent names as such.
    pub(super) paths: Vec<CallPath>,
    /// A path that the agent names, of which it is not certain where it leads.
    pub(super) has_unclear_path: bool,
    /// Whatever else in the input may be a path.
    pub(super) more_paths: Vec<CallPath>,
    pub(super) commands: Vec<Command>,
    /// The directory in which the command runs, if it is another one than the session's.
    pub(super) runs_elsewhere: bool,
    /// The input was read to its end.
    pub(super) is_complete: bool,
}

impl Call {
    pub(super) fn new(question: &PermissionRequest) -> Self {
        let base = question.cwd.as_deref().and_then(Base::new);
        let input = question.raw_input.as_ref();
        let input = input.and_then(acp_sdk::Json::to_value).unwrap_or_default();
        let mut named: Vec<String> = question.paths.clone();
        named.extend(texts_of(&input, PATH_MEMBERS));
        let resolve = |text: &String| CallPath::resolve(text, base.as_ref());
        let mut paths: Vec<CallPath> = Vec::new();
        let mut has_unclear_path = false;
        for text in &named {
            match resolve(text) {
                Some(path) if paths.contains(&path) => {}
                Some(path) => paths.push(path),
                None => has_unclear_path = true,
            }
        }
        let commands = commands(&input);
        let mut texts = Vec::new();
        let is_complete = all_texts(&input, &mut texts);
        let words = commands.iter().flat_map(Command::all_words);
        let words =
            words.flat_map(|word| [Some(word), word.split_once('=').map(|(_, value)| value)]);
        texts.extend(words.flatten().take(MOST_TEXTS).map(str::to_owned));
        let more_paths = texts.iter().filter_map(resolve).collect();
        let elsewhere = |dir: &String| match (resolve(dir), &base) {
            (Some(dir), Some(base)) => !dir.is_inside(base),
            _ => true,
        };
        let runs_elsewhere = texts_of(&input, DIRECTORY_MEMBERS).iter().any(elsewhere);
        Self {
            kind: question.kind.clone(),
            base,
            paths,
            has_unclear_path,
            more_paths,
            commands,
            runs_elsewhere,
            is_complete,
        }
    }

    /// Follows the links of all paths. It blocks for as long as the file system takes.
    pub(super) fn follow_links(&mut self) {
        if let Some(base) = &mut self.base {
            base.follow_links();
        }
        for path in self.paths.iter_mut().chain(&mut self.more_paths) {
            path.follow_links();
        }
    }

    /// Whether it runs a command, as far as the agent tells.
    pub(super) fn runs(&self) -> bool {
        !self.commands.is_empty() || self.kind == Some(ToolKind::Execute)
    }
}

/// Returns the texts of some members, or of the lists in them.
fn texts_of(input: &Value, members: &[&str]) -> Vec<String> {
    let values = members.iter().filter_map(|member| input.get(member));
    let texts = values.flat_map(|value| match value {
        Value::Array(list) => list.iter().collect(),
        value => vec![value],
    });
    texts.filter_map(Value::as_str).map(str::to_owned).collect()
}

fn commands(input: &Value) -> Vec<Command> {
    let mut commands: Vec<Command> = Vec::new();
    for member in COMMAND_MEMBERS {
        let arguments = ARGUMENT_MEMBERS.iter().find_map(|name| input.get(name));
        let command = match (input.get(member), arguments) {
            (Some(Value::String(line)), None) => Command::line(line),
            (Some(Value::String(program)), Some(arguments)) => match words(arguments) {
                Some(mut list) => {
                    list.insert(0, program.clone());
                    Command::words(&list)
                }
                // What the arguments are is not certain.
                None => Command::line(&format!("{program} $")),
            },
            (Some(list), None) if list.is_array() => match words(list) {
                Some(list) => Command::words(&list),
                None => Command::line("$"),
            },
            (Some(Value::Null) | None, _) => continue,
            (Some(_), _) => Command::line("$"),
        };
        if !commands.contains(&command) {
            commands.push(command);
        }
    }
    commands
}

fn words(value: &Value) -> Option<Vec<String>> {
    let list = value.as_array()?.iter();
    list.map(|word| word.as_str().map(str::to_owned)).collect()
}

/// Gathers every text of a value. Returns whether that was all.
fn all_texts(value: &Value, texts: &mut Vec<String>) -> bool {
    if texts.len() >= MOST_TEXTS {
        return false;
    }
    match value {
        Value::String(text) => {
            texts.push(text.clone());
            true
        }
        Value::Array(list) => list.iter().all(|value| all_texts(value, texts)),
        Value::Object(members) => members.values().all(|value| all_texts(value, texts)),
        _ => true,
    }
}
