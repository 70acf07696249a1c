//! Config options and slash commands of a session.

use acp_sdk::json::UnknownVariant;
use acp_sdk::{Json, v1, v2};
use serde_json::Value;

use super::reread;

/// Converts config options from version 2. Omits options that are invalid in version 1.
pub(super) fn options(options: Vec<v2::SessionConfigOption>) -> Vec<v1::SessionConfigOption> {
    options.iter().filter_map(option).collect()
}

fn option(option: &v2::SessionConfigOption) -> Option<v1::SessionConfigOption> {
    let mut members: serde_json::Map<String, Value> = reread(option)?;
    rename(&mut members, "configId", "id");
    Json::from(Value::Object(members)).parse().ok()
}

/// Renames a member of an object.
pub(super) fn rename(members: &mut serde_json::Map<String, Value>, from: &str, to: &str) {
    if let Some(value) = members.remove(from) {
        members.insert(to.to_owned(), value);
    }
}

/// Converts slash commands. A command of unknown type becomes a command without input.
pub(super) fn commands(commands: Vec<v2::AvailableCommand>) -> Vec<v1::AvailableCommand> {
    commands.into_iter().filter_map(command).collect()
}

fn command(command: v2::AvailableCommand) -> Option<v1::AvailableCommand> {
    match command {
        v2::AvailableCommand::Command(command) => {
            let mut next = v1::AvailableCommand::new(command.name, command.description);
            if let Some(v2::AvailableCommandInput::Text(input)) = command.input {
                let mut text = v1::UnstructuredCommandInput::new(input.hint);
                text.meta = input.meta;
                next.input = Some(text.into());
            }
            next.meta = command.meta;
            Some(next)
        }
        v2::AvailableCommand::Unknown(unknown) => {
            let (name, description) = (text(&unknown, "name")?, text(&unknown, "description")?);
            Some(v1::AvailableCommand::new(name, description))
        }
        _ => None,
    }
}

fn text(unknown: &UnknownVariant, member: &str) -> Option<String> {
    unknown.get(member)?.parse().ok()
}
