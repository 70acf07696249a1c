//! Config options and slash commands of a session.

use acp_sdk::json::UnknownVariant;
use acp_sdk::{Json, v1, v2};

/// Converts config options to version 2, without those that it cannot express.
///
/// These are a choice among no values, and an option without a type.
pub(super) fn options_to_v2(options: &[v1::SessionConfigOption]) -> Vec<v2::SessionConfigOption> {
    options.iter().filter_map(option_to_v2).collect()
}

fn option_to_v2(option: &v1::SessionConfigOption) -> Option<v2::SessionConfigOption> {
    let kind: v2::SessionConfigKind = match &option.kind {
        v1::SessionConfigKind::Select(select) => {
            let current = select.current_value.as_str();
            v2::SessionConfigSelect::new(current, choices(&select.options)?).into()
        }
        v1::SessionConfigKind::Boolean(boolean) => {
            v2::SessionConfigBoolean::new(boolean.current_value).into()
        }
        v1::SessionConfigKind::Unknown(unknown) => {
            v2::SessionConfigKind::Unknown(renamed(unknown, "id", "configId"))
        }
        _ => return None,
    };
    let mut next = v2::SessionConfigOption::new(option.id.as_str(), option.name.as_str(), kind);
    next.description.clone_from(&option.description);
    next.category = option.category.as_ref().map(|one| one.as_str().into());
    next.meta.clone_from(&option.meta);
    Some(next)
}

fn choices(options: &v1::SessionConfigSelectOptions) -> Option<v2::SessionConfigSelectOptions> {
    match options {
        v1::SessionConfigSelectOptions::Ungrouped(options) => {
            let next = ungrouped(options)?;
            Some(v2::SessionConfigSelectOptions::Ungrouped(next))
        }
        v1::SessionConfigSelectOptions::Grouped(groups) => {
            let next: Vec<_> = groups.iter().filter_map(group).collect();
            if next.is_empty() {
                return None;
            }
            let next = v2::SessionConfigSelectOptions::Grouped(next);
            Some(next)
        }
        _ => None,
    }
}

fn ungrouped(
    options: &[v1::SessionConfigSelectOption],
) -> Option<Vec<v2::SessionConfigSelectOption>> {
    let convert = |option: &v1::SessionConfigSelectOption| {
        let value = option.value.as_str();
        let mut next = v2::SessionConfigSelectOption::new(value, option.name.as_str());
        next.description.clone_from(&option.description);
        next.meta.clone_from(&option.meta);
        next
    };
    (!options.is_empty()).then(|| options.iter().map(convert).collect())
}

fn group(group: &v1::SessionConfigSelectGroup) -> Option<v2::SessionConfigSelectGroup> {
    let options = ungrouped(&group.options)?;
    let id = group.group.as_str();
    let mut next = v2::SessionConfigSelectGroup::new(id, group.name.as_str(), options);
    next.meta.clone_from(&group.meta);
    Some(next)
}

/// Returns a variant whose member `from` is called `to`.
pub(super) fn renamed(unknown: &UnknownVariant, from: &str, to: &str) -> UnknownVariant {
    let rename = |(name, value): &(String, Json)| {
        let name = if name == from { to } else { name };
        (name.to_owned(), value.clone())
    };
    UnknownVariant::new(unknown.tag(), unknown.fields().iter().map(rename).collect())
}

/// Converts slash commands to version 2.
pub(super) fn commands_to_v2(commands: &[v1::AvailableCommand]) -> Vec<v2::AvailableCommand> {
    let convert = |command: &v1::AvailableCommand| {
        let mut next = v2::Command::new(command.name.as_str(), command.description.as_str());
        next.input = command.input.as_ref().and_then(input_to_v2);
        next.meta.clone_from(&command.meta);
        next.into()
    };
    commands.iter().map(convert).collect()
}

fn input_to_v2(input: &v1::AvailableCommandInput) -> Option<v2::AvailableCommandInput> {
    match input {
        v1::AvailableCommandInput::Unstructured(input) => {
            let mut next = v2::TextCommandInput::new(input.hint.as_str());
            next.meta.clone_from(&input.meta);
            Some(next.into())
        }
        _ => None,
    }
}
