//! What a client chooses among: login methods, modes and options.

use acp_schema::Login;
use serde_json::{Value, json};

use super::assertions::{expect, first, survives};
use super::handshake::only_messages;
use super::offers::{UNKNOWN_TYPE, is_offered};
use super::played::{ClientCheck, Played};
use crate::harness::{Entry, Outcome, Stop, inconclusive, skip};
use crate::passive::{RuleResult, View, violation};
use crate::wire::{Party, login as login_of};

pub(super) const CHECKS: &[ClientCheck] = &[
    ("client.all-capabilities", all_capabilities),
    ("client.valid-choices", only_messages),
    ("client.offered-values", offered_values),
    ("client.unknown-categories", survives),
    ("client.unknown-option-types", unknown_option_types),
];

/// Those that only version 1 has.
pub(super) const MODES: &[ClientCheck] = &[
    ("client.offered-modes", offered_modes),
    ("client.options-not-modes", options_not_modes),
];

fn all_capabilities(played: &Played) -> Outcome {
    first(played, "initialize")?;
    let mut opened = played.recording.calls(Party::Client, "session/new");
    if opened.next().is_none() && played.exit.is_none() {
        return inconclusive("the client opens no session, and may wait for its user to log in");
    }
    survives(played)
}

/// The login method that the client calls, as the agent offers it, and its id.
fn login<'a>(view: &View<'a>) -> Option<(Option<&'a Value>, &'a Value)> {
    if !view.is_call(Party::Client) || login_of(view.method) != Some(Login::In) {
        return None;
    }
    let wanted = view.params().get("methodId").unwrap_or(&Value::Null);
    let offered = view.state.agent.as_ref()?.get("authMethods");
    let mut offered = offered.and_then(Value::as_array).into_iter().flatten();
    let found = offered.find(|one| one.get("methodId").or(one.get("id")) == Some(wanted));
    Some((found, wanted))
}

pub(super) fn no_terminal_login(view: &View<'_>) -> RuleResult {
    match login(view) {
        Some((Some(method), id)) if method.get("type") == Some(&json!("terminal")) => violation(
            format!("expected no call for the method {id}, which is performed in a terminal"),
        ),
        found => Ok(usize::from(found.is_some())),
    }
}

pub(super) fn offered_login(view: &View<'_>) -> RuleResult {
    match login(view) {
        Some((None, id)) => violation(format!("expected a method that the agent offers, got {id}")),
        found => Ok(usize::from(found.is_some())),
    }
}

/// What the agent said last at one of these places before a message.
fn latest<'a>(played: &'a Played, before: usize, pointers: &[&str]) -> &'a Value {
    let earlier = played.recording.entries.iter().take(before).rev();
    let mut earlier = earlier.filter(|entry: &&Entry| entry.from == Party::Agent);
    let found = earlier.find_map(|entry| {
        let mut pointers = pointers.iter();
        pointers.find_map(|pointer| entry.value.pointer(pointer))
    });
    found.unwrap_or(&Value::Null)
}

fn offered_modes(played: &Played) -> Outcome {
    first(played, "session/new")?;
    for (index, entry) in played.recording.calls(Party::Client, "session/set_mode") {
        let wanted = entry.params().get("modeId");
        let modes = latest(played, index, &["/result/modes/availableModes"]);
        let mut modes = modes.as_array().into_iter().flatten();
        let known = modes.any(|mode| mode.get("id") == wanted);
        expect(
            played,
            index,
            known,
            "expected a mode that the agent offers, got another one",
        )?;
    }
    Ok(())
}

/// An option that is ignored is not set.
fn unknown_option_types(played: &Played) -> Outcome {
    let mut sets = played
        .recording
        .calls(Party::Client, "session/set_config_option");
    let of_unknown =
        |(_, entry): &(usize, &Entry)| entry.params().get("configId") == Some(&json!(UNKNOWN_TYPE));
    match sets.find(of_unknown) {
        None => survives(played),
        Some((index, _)) => expect(
            played,
            index,
            false,
            "expected the option of an unknown type to be ignored, got a value for it",
        ),
    }
}

fn options_not_modes(played: &Played) -> Outcome {
    first(played, "session/new")?;
    let mut modes = played.recording.calls(Party::Client, "session/set_mode");
    let Some((index, _)) = modes.next() else {
        return Ok(());
    };
    let recording = &played.recording;
    let mut options = recording.calls(Party::Client, "session/set_config_option");
    if options.next().is_none() && recording.declared("/session/configOptions").is_none() {
        // It is one for which agents have modes still.
        return skip("the client shows no sign that it supports config options");
    }
    let reason = "expected the option of the category `mode` to be set, got session/set_mode";
    Err(Stop::at(recording, index, reason))
}

fn offered_values(played: &Played) -> Outcome {
    const OPTIONS: [&str; 2] = ["/result/configOptions", "/params/update/configOptions"];
    first(played, "session/new")?;
    for (index, entry) in played
        .recording
        .calls(Party::Client, "session/set_config_option")
    {
        let known = is_offered(latest(played, index, &OPTIONS), entry.params());
        expect(
            played,
            index,
            known,
            "expected a value that the agent offers, got another one",
        )?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_that_knows_modes_only_may_set_them() {
        let outcome = |capabilities: Value, sets_option: bool| {
            let params = json!({"clientCapabilities": capabilities});
            let call = |id: u64, method: &str, params: &Value| {
                (
                    "client",
                    json!({"id": id, "method": method, "params": params}),
                )
            };
            let option = call(3, "session/set_config_option", &json!({}));
            let said = [
                call(0, "initialize", &params),
                call(1, "session/new", &json!({})),
                call(2, "session/set_mode", &json!({"modeId": "code"})),
            ];
            let said = said.into_iter().chain(sets_option.then_some(option));
            options_not_modes(&Played::of(said))
        };
        let options = || json!({"session": {"configOptions": {}}});
        assert!(matches!(outcome(json!({}), false), Err(Stop::Skip(_))));
        assert!(matches!(outcome(json!({}), true), Err(Stop::Fail(_))));
        assert!(matches!(outcome(options(), false), Err(Stop::Fail(_))));
    }
}
