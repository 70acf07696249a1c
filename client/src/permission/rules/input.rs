//! Reading of a tool's input: its paths, directories, commands and all other strings.
//!
//! Members are recognised by their names, at any depth, because agents wrap inputs in objects.

use acp_sdk::Json;
use serde_json::{Map, Value};

use super::command::Command;

/// Members that contain a path or a list of paths.
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
const DIRECTORY_MEMBERS: &[&str] = &["cwd", "workdir", "workingDirectory", "working_directory"];

/// Members that contain the environment of a command.
const ENVIRONMENT_MEMBERS: &[&str] = &["env", "environment", "env_vars", "envVars"];

/// The maximum number of strings that are read.
const MAX_STRINGS: usize = 1000;

/// The input of a tool.
#[derive(Debug, Default)]
pub(super) struct Input {
    /// The strings in members that contain paths.
    pub(super) paths: Vec<String>,
    /// Whether such a member contains an object without a path.
    pub(super) has_unclear_path: bool,
    /// The strings in members that contain the directory of a command.
    pub(super) directories: Vec<String>,
    /// Whether such a member contains anything else.
    pub(super) has_unclear_directory: bool,
    pub(super) commands: Vec<Command>,
    /// Whether an environment is set.
    pub(super) has_environment: bool,
    /// All other strings, and the names of members that are no identifiers.
    pub(super) texts: Vec<String>,
    /// Whether the input was not read to its end.
    pub(super) is_cut: bool,
}

/// The meaning of a string, by the name of its member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    Path,
    Directory,
    Other,
}

impl Input {
    pub(super) fn read(json: Option<&Json>) -> Self {
        let mut input = Self::default();
        let Some(json) = json else { return input };
        match json.to_value() {
            Some(value) => input.visit(&value, Role::Other),
            // It nests too deep.
            None => input.is_cut = true,
        }
        input
    }

    fn visit(&mut self, value: &Value, role: Role) {
        match (value, role) {
            (Value::String(text), role) => self.add(text, role),
            (Value::Array(list), role) => list.iter().for_each(|value| self.visit(value, role)),
            (Value::Object(members), role) => {
                let paths = self.paths.len();
                self.visit_members(members);
                self.has_unclear_path |= role == Role::Path && self.paths.len() == paths;
                self.has_unclear_directory |= role == Role::Directory;
            }
            (Value::Bool(_) | Value::Number(_), Role::Directory) => {
                self.has_unclear_directory = true;
            }
            (Value::Null | Value::Bool(_) | Value::Number(_), _) => {}
        }
    }

    fn visit_members(&mut self, members: &Map<String, Value>) {
        self.add_commands(members);
        for (name, value) in members {
            let is = |names: &[&str]| names.contains(&name.as_str());
            if is(ENVIRONMENT_MEMBERS) {
                self.has_environment |= !is_empty(value);
            }
            let in_name = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-');
            if !name.chars().all(in_name) {
                self.add(name, Role::Other);
            }
            self.visit(
                value,
                match name {
                    _ if is(PATH_MEMBERS) => Role::Path,
                    _ if is(DIRECTORY_MEMBERS) => Role::Directory,
                    _ => Role::Other,
                },
            );
        }
    }

    fn add(&mut self, text: &str, role: Role) {
        if self.paths.len() + self.directories.len() + self.texts.len() >= MAX_STRINGS {
            self.is_cut = true;
            return;
        }
        let list = match role {
            Role::Path => &mut self.paths,
            Role::Directory => &mut self.directories,
            Role::Other => &mut self.texts,
        };
        list.push(text.to_owned());
    }

    fn add_commands(&mut self, members: &Map<String, Value>) {
        for member in COMMAND_MEMBERS {
            let arguments = ARGUMENT_MEMBERS.iter().find_map(|name| members.get(*name));
            let command = match (members.get(*member), arguments) {
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
            if self.commands.len() >= MAX_STRINGS {
                self.is_cut = true;
            } else if !self.commands.contains(&command) {
                self.commands.push(command);
            }
        }
    }
}

fn words(value: &Value) -> Option<Vec<String>> {
    let list = value.as_array()?.iter();
    list.map(|word| word.as_str().map(str::to_owned)).collect()
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(list) => list.is_empty(),
        Value::Object(members) => members.is_empty(),
        Value::Bool(_) | Value::Number(_) => false,
    }
}
