//! Conversions to version 2 that are no data.

use super::members::optional;
use super::{Convert, Losses};
use crate::json::{Map, UnknownVariant};
use crate::{Json, RequestId, v1, v2};

pub(super) use super::diff::to_v2 as diff;

/// The id of a session's plan. Version 1 has one plan per session.
const PLAN: &str = "plan";

/// The id of the config option that stands for the modes.
const MODE: &str = "mode";

/// The title of a permission request whose tool call has neither a title nor a name.
const TITLE: &str = "Allow this tool call?";

/// Agents of version 2 with sessions replay them, and have the methods that version 1 marks.
pub(super) fn session_capabilities(
    load: bool,
    prompt: v1::PromptCapabilities,
    mcp: v1::McpCapabilities,
    mut session: v1::SessionCapabilities,
    losses: &mut Losses,
) -> Option<Option<v2::SessionCapabilities>> {
    if !load {
        losses.lost("loadSession", "agents of version 2 replay sessions");
    }
    losses.within("sessionCapabilities", |losses| {
        implied("list", session.list.take(), losses);
        implied("resume", session.resume.take(), losses);
        implied("close", session.close.take(), losses);
    });
    let mut next: v2::SessionCapabilities = optional("sessionCapabilities", Some(session), losses)?;
    next.prompt = optional("promptCapabilities", Some(prompt), losses);
    next.mcp = optional("mcpCapabilities", Some(mcp), losses);
    Some(Some(next))
}

/// Reports a marker unless it says what every agent of version 2 can.
fn implied<T: Default + PartialEq>(name: &str, marker: Option<T>, losses: &mut Losses) {
    if marker != Some(T::default()) {
        losses.lost(name, "agents of version 2 with sessions have this method");
    }
}

pub(super) fn environment(variables: Map<String>, _: &mut Losses) -> Option<Vec<v2::EnvVariable>> {
    let variable = |(name, value): (String, String)| v2::EnvVariable::new(name, value);
    Some(variables.into_iter().map(variable).collect())
}

pub(super) fn available_command(
    command: v1::AvailableCommand,
    losses: &mut Losses,
) -> Option<v2::AvailableCommand> {
    let command: v2::Command = command.convert(losses)?;
    Some(command.into())
}

/// Moves a priority outside of 0 to 1, which version 2 does not allow, to the nearest bound.
pub(super) fn priority(priority: Option<f64>, losses: &mut Losses) -> Option<Option<f64>> {
    let next = priority.map(|priority| priority.clamp(0.0, 1.0));
    if next != priority {
        losses.lost("priority", "priorities of version 2 are between 0 and 1");
    }
    Some(next)
}

pub(super) fn plan(plan: v1::Plan, losses: &mut Losses) -> Option<v2::SessionUpdate> {
    let v1::Plan { entries, meta } = plan;
    let entries = optional("entries", Some(entries), losses)?;
    let mut next = v2::PlanUpdate::new(v2::PlanItems::new(PLAN, entries));
    next.meta = meta;
    Some(next.into())
}

/// A plan with an id, which becomes the plan of the session on its way back.
#[cfg(feature = "unstable")]
pub(super) fn plan_update(
    update: v1::PlanUpdate,
    losses: &mut Losses,
) -> Option<v2::SessionUpdate> {
    losses.lost(
        "",
        "a list of entries is the plan of a session of version 1",
    );
    let update: v2::PlanUpdate = update.convert(losses)?;
    Some(update.into())
}

/// Adds an option for the modes in front, unless an option stands for them. `_meta` of the modes
/// is kept at the option and its values.
pub(super) fn config_options(
    modes: Option<v1::SessionModeState>,
    options: Option<Vec<v1::SessionConfigOption>>,
    losses: &mut Losses,
) -> Option<Vec<v2::SessionConfigOption>> {
    if options.as_ref().is_some_and(Vec::is_empty) {
        losses.lost(
            "configOptions",
            "no options and an empty list are equal in version 2",
        );
    }
    if modes.is_some() {
        losses.lost("modes", "modes are a config option in version 2");
    }
    let options = options.unwrap_or_default();
    let mode = v1::SessionConfigOptionCategory::Mode;
    let stands_for_modes = |option: &v1::SessionConfigOption| {
        option.category.as_ref() == Some(&mode) || option.id.as_str() == MODE
    };
    let has_mode = options.iter().any(stands_for_modes);
    let mut next: Vec<v2::SessionConfigOption> = optional("configOptions", Some(options), losses)?;
    let modes = modes.filter(|modes| !has_mode && !modes.available_modes.is_empty());
    if let Some(modes) = modes {
        losses.lost("configOptions", "modes are a config option in version 2");
        next.insert(0, mode_option(modes));
    }
    Some(next)
}

fn mode_option(modes: v1::SessionModeState) -> v2::SessionConfigOption {
    let v1::SessionModeState {
        current_mode_id,
        available_modes,
        meta,
    } = modes;
    let convert = |mode: v1::SessionMode| {
        let mut next = v2::SessionConfigSelectOption::new(mode.id.as_str(), mode.name);
        next.description = mode.description;
        next.meta = mode.meta;
        next
    };
    let values = available_modes.into_iter().map(convert).collect();
    let values = v2::SessionConfigSelectOptions::Ungrouped(values);
    let select = v2::SessionConfigSelect::new(current_mode_id.as_str(), values);
    let mut next = v2::SessionConfigOption::new(MODE, "Mode", select)
        .with_category(v2::SessionConfigOptionCategory::Mode);
    next.meta = meta;
    next
}

/// The title is that of the tool call, or else its name.
pub(super) fn permission_subject(
    call: v1::ToolCallUpdate,
    losses: &mut Losses,
) -> Option<(String, Option<String>, Option<v2::RequestPermissionSubject>)> {
    if call.title.is_none() {
        losses.lost("toolCall/title", "requests of version 2 have a title");
    }
    let title = call.title.as_deref().or(call.name.as_deref());
    let title = title.unwrap_or(TITLE).to_owned();
    let call = optional("toolCall", Some(call), losses)?;
    let subject = v2::ToolCallPermissionSubject::new(call);
    Some((title, None, Some(subject.into())))
}

pub(super) fn request_id(id: RequestId, losses: &mut Losses) -> Option<RequestId> {
    match id {
        RequestId::Null => losses.within("requestId", |losses| {
            losses.none("ids of version 2 are not null")
        }),
        id => Some(id),
    }
}

/// A mode of a request whose id is null has no equal, as those of known modes.
pub(super) fn elicitation_mode(
    mode: UnknownVariant,
    losses: &mut Losses,
) -> Option<v2::ElicitationMode> {
    match mode.get("requestId").is_some_and(Json::is_null) {
        true => losses.none("ids of version 2 are not null"),
        false => Some(v2::ElicitationMode::Unknown(mode)),
    }
}

pub(super) fn stop_reason(reason: v1::StopReason, _: &mut Losses) -> Option<v2::StopReason> {
    Some(match reason {
        v1::StopReason::EndTurn => v2::StopReason::EndTurn,
        v1::StopReason::MaxTokens => v2::StopReason::MaxTokens,
        v1::StopReason::MaxTurnRequests => v2::StopReason::MaxTurnRequests,
        v1::StopReason::Refusal => v2::StopReason::Refusal,
        v1::StopReason::Cancelled => v2::StopReason::Cancelled,
        v1::StopReason::Unknown(text) if text == "error" => {
            v2::StopReason::Error(v2::ErrorStopReason::new())
        }
        v1::StopReason::Unknown(text) => {
            let tag = Json::new(&text).map(|tag| ("stopReason".to_owned(), tag));
            v2::StopReason::Unknown(UnknownVariant::new(text, tag.into_iter().collect()))
        }
    })
}
