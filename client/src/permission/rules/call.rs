//! The properties of a tool call that rules match: kind, paths and commands.

use acp_sdk::v1::ToolKind;
use serde_json::Value;

use super::command::Command;
use super::path::{Base, CallPath};
use crate::permission::PermissionRequest;

/// Members of a tool's input that contain a path or a list of paths.
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

/// Members that contain a command: a shell line, or a list of words.
const COMMAND_MEMBERS: &[&str] = &["command", "cmd", "script"];

/// Members that contain the arguments of the program in `command`.
const ARGUMENT_MEMBERS: &[&str] = &["args", "arguments"];

/// Members that contain the working directory of a command.
pub(super) const DIRECTORY_MEMBERS: &[&str] =
    &["cwd", "workdir", "workingDirectory", "working_directory"];

/// The maximum number of strings of an input that deny rules match as paths.
const MAX_STRINGS: usize = 1000;

/// The properties of a tool call that rules match.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) kind: Option<ToolKind>,
    pub(super) base: Option<Base>,
    /// The paths in locations, diffs and known members of the input.
    pub(super) paths: Vec<CallPath>,
    /// Whether a path of the call is ambiguous.
    pub(super) has_unclear_path: bool,
    /// All other strings of the input that may be paths.
    pub(super) more_paths: Vec<CallPath>,
    pub(super) commands: Vec<Command>,
    /// Whether the command runs in another directory than the session's.
    pub(super) runs_elsewhere: bool,
    /// Whether the whole input was inspected.
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
        texts.extend(words.flatten().take(MAX_STRINGS).map(str::to_owned));
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

    /// Resolves the symbolic links of all paths. Blocks for as long as the file system takes.
    pub(super) fn follow_links(&mut self) {
        if let Some(base) = &mut self.base {
            base.follow_links();
        }
        for path in self.paths.iter_mut().chain(&mut self.more_paths) {
            path.follow_links();
        }
    }

    /// Returns whether the agent reports that the call runs a command.
    pub(super) fn runs(&self) -> bool {
        !self.commands.is_empty() || self.kind == Some(ToolKind::Execute)
    }
}

/// Returns the strings in some members, and in lists in them.
pub(super) fn texts_of(input: &Value, members: &[&str]) -> Vec<String> {
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
                // The arguments are unknown.
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

/// Collects all strings of a value; returns `false` if it has too many.
fn all_texts(value: &Value, texts: &mut Vec<String>) -> bool {
    if texts.len() >= MAX_STRINGS {
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
