//! What clients must obey in any connection: rules that hold in scenarios, in live traffic and in
//! recordings alike.

use serde_json::Value;

use super::assertions::{first, result};
use super::handshake::ONLY_MESSAGES;
use super::played::Played;
use super::robustness::cancels_permission;
use super::{choices, requests};
use crate::harness::{Outcome, inconclusive};
use crate::passive::{Rule, RuleResult, View, violation};
use crate::wire::{FindingKind, Party, Version};

/// A rule, the id of the requirement that it is of, and what a scenario must show besides.
pub(super) type ClientRule = (&'static str, Rule, fn(&Played) -> Outcome);

/// Returns the rules of a version.
pub(crate) fn of(version: Version) -> impl Iterator<Item = &'static ClientRule> {
    let own = match version {
        Version::V1 => V1,
        Version::V2 => V2,
    };
    BOTH.iter().chain(own)
}

/// A rule over messages.
const fn messages(
    id: &'static str,
    rule: fn(&View<'_>) -> RuleResult,
    shows: fn(&Played) -> Outcome,
) -> ClientRule {
    (id, Rule::Messages(rule), shows)
}

const BOTH: &[ClientRule] = &[
    ("client.only-messages", ONLY_MESSAGES, initializes),
    (
        "client.custom-fields",
        Rule::Findings(&[FindingKind::CustomField]),
        initializes,
    ),
    (
        "client.method-names",
        Rule::Findings(&[FindingKind::UnknownMethod]),
        initializes,
    ),
    messages("client.absolute-cwd", absolute_cwd, opens_session),
    messages("client.permission", permission, answers_question),
    messages("client.unique-ids", requests::unique_ids, opens_session),
    messages(
        "client.no-terminal-login",
        choices::no_terminal_login,
        initializes,
    ),
    messages("client.offered-login", choices::offered_login, initializes),
    messages(
        "client.initializes-once",
        requests::initializes_once,
        initializes,
    ),
    messages(
        "client.cancel-is-notification",
        requests::cancel_is_notification,
        cancels,
    ),
];

const V1: &[ClientRule] = &[
    messages("client.info", info, initializes),
    messages(
        "client.cancels-permission",
        chooses_nothing,
        cancels_permission,
    ),
    messages("client.no-undeclared-methods", methods, initializes),
    messages("client.no-undeclared-content", content, prompts),
    messages("client.no-undeclared-servers", servers, opens_session),
    messages(
        "client.no-undeclared-directories",
        directories,
        opens_session,
    ),
];

const V2: &[ClientRule] = &[
    messages("client.info", v2_info, initializes),
    messages("client.no-undeclared-methods", v2_methods, initializes),
    messages("client.no-undeclared-content", v2_content, prompts),
    messages("client.no-undeclared-servers", v2_servers, opens_session),
    messages(
        "client.no-undeclared-directories",
        v2_directories,
        opens_session,
    ),
    (
        "client.reserved-values",
        Rule::Findings(&[FindingKind::ReservedValue]),
        opens_session,
    ),
];

fn initializes(played: &Played) -> Outcome {
    first(played, "initialize").map(drop)
}

fn opens_session(played: &Played) -> Outcome {
    first(played, "session/new").map(drop)
}

fn prompts(played: &Played) -> Outcome {
    first(played, "session/prompt").map(drop)
}

fn answers_question(played: &Played) -> Outcome {
    result(played, "session/request_permission", 0).map(drop)
}

/// Nothing obliges a client to cancel.
fn cancels(played: &Played) -> Outcome {
    let mut cancels = played.recording.calls(Party::Client, "session/cancel");
    match cancels.next() {
        Some(_) => Ok(()),
        None => inconclusive("the client did not call session/cancel"),
    }
}

/// Kinds of content that need a capability of an agent of version 2.
const V2_CONTENT: [(&str, &str); 3] = [
    ("image", "/session/prompt/image"),
    ("audio", "/session/prompt/audio"),
    ("resource", "/session/prompt/embeddedContext"),
];

/// Kinds of content that need a capability of the agent.
const CONTENT: [(&str, &str); 3] = [
    ("image", "/promptCapabilities/image"),
    ("audio", "/promptCapabilities/audio"),
    ("resource", "/promptCapabilities/embeddedContext"),
];

/// Kinds of server that need a capability of the agent.
const SERVERS: [(&str, &str); 2] = [
    ("http", "/mcpCapabilities/http"),
    ("sse", "/mcpCapabilities/sse"),
];

/// Kinds of server that need a capability of an agent of version 2.
const V2_SERVERS: [(&str, &str); 2] = [
    ("stdio", "/session/mcp/stdio"),
    ("http", "/session/mcp/http"),
];

/// The client uses something that needs this capability.
fn needs(view: &View<'_>, pointer: &str, what: &str) -> RuleResult {
    match view.state.agent_declares(pointer) {
        Some(false) => violation(format!(
            "expected nothing that the agent does not declare, got {what}"
        )),
        Some(true) => Ok(1),
        None => Ok(0),
    }
}

fn info(view: &View<'_>) -> RuleResult {
    named(view, "clientInfo")
}

fn v2_info(view: &View<'_>) -> RuleResult {
    named(view, "info")
}

/// The client tells its name and version in this member of `initialize`.
fn named(view: &View<'_>, member: &str) -> RuleResult {
    if !view.calls(Party::Client, "initialize") {
        return Ok(0);
    }
    let info = view.params().get(member);
    let has = |name: &str| {
        let text = info.and_then(|info| info.get(name)?.as_str());
        text.is_some_and(|text| !text.is_empty())
    };
    if has("name") && has("version") {
        return Ok(1);
    }
    violation(format!(
        "expected `{member}` with a name and a version, got none"
    ))
}

fn v2_methods(view: &View<'_>) -> RuleResult {
    let method = view.method;
    if !view.is_call(Party::Client) || crate::wire::login(method).is_none() {
        return methods(view);
    }
    let Some(agent) = &view.state.agent else {
        return Ok(0);
    };
    let offered = agent.get("authMethods").and_then(Value::as_array);
    match offered.is_some_and(|offered| !offered.is_empty()) {
        true => Ok(1),
        false => violation(format!(
            "expected no {method}, for the agent offers no login, got one"
        )),
    }
}

fn v2_content(view: &View<'_>) -> RuleResult {
    if !view.calls(Party::Client, "session/prompt") {
        return Ok(0);
    }
    kinds(view, list(view, "prompt"), &V2_CONTENT)
}

/// Whether it is a request of the client that sets a session up.
fn sets_up(view: &View<'_>) -> bool {
    view.is_call(Party::Client) && crate::wire::sets_up(view.method)
}

fn absolute_cwd(view: &View<'_>) -> RuleResult {
    let cwd = view.params().get("cwd").and_then(Value::as_str);
    match cwd.filter(|_| sets_up(view)) {
        Some(cwd) if !crate::requirements::is_absolute(cwd) => {
            violation(format!("expected an absolute path as `cwd`, got {cwd:?}"))
        }
        cwd => Ok(usize::from(cwd.is_some())),
    }
}

fn methods(view: &View<'_>) -> RuleResult {
    if !view.is_call(Party::Client) {
        return Ok(0);
    }
    match view.state.needed(Party::Agent, view.method) {
        Some(pointer) => needs(view, pointer, view.method),
        None => Ok(0),
    }
}

/// Each of these things needs the capability of its kind.
fn kinds<'a>(
    view: &View<'_>,
    things: impl Iterator<Item = &'a Value>,
    known: &[(&str, &str)],
) -> RuleResult {
    let mut seen = 0;
    for kind in things.filter_map(|thing| thing.get("type")?.as_str()) {
        if let Some((kind, pointer)) = known.iter().find(|(known, _)| *known == kind) {
            seen += needs(view, pointer, &format!("`{kind}`"))?;
        }
    }
    Ok(seen)
}

fn list<'a>(view: &View<'a>, member: &str) -> impl Iterator<Item = &'a Value> {
    let list = view.params().get(member).and_then(Value::as_array);
    list.into_iter().flatten()
}

fn content(view: &View<'_>) -> RuleResult {
    if !view.calls(Party::Client, "session/prompt") {
        return Ok(0);
    }
    kinds(view, list(view, "prompt"), &CONTENT)
}

fn servers(view: &View<'_>) -> RuleResult {
    servers_of(view, &SERVERS)
}

fn v2_servers(view: &View<'_>) -> RuleResult {
    servers_of(view, &V2_SERVERS)
}

fn servers_of(view: &View<'_>, known: &[(&str, &str)]) -> RuleResult {
    if !sets_up(view) {
        return Ok(0);
    }
    kinds(view, list(view, "mcpServers"), known)
}

fn directories(view: &View<'_>) -> RuleResult {
    directories_by(view, "/sessionCapabilities/additionalDirectories")
}

fn v2_directories(view: &View<'_>) -> RuleResult {
    directories_by(view, "/session/additionalDirectories")
}

fn directories_by(view: &View<'_>, pointer: &str) -> RuleResult {
    if !sets_up(view) || list(view, "additionalDirectories").next().is_none() {
        return Ok(0);
    }
    needs(view, pointer, "`additionalDirectories`")
}

/// What the user chose, if it is that.
fn chosen<'a>(view: &View<'a>) -> Option<&'a str> {
    let result = view.result(Party::Agent, "session/request_permission")?;
    result.pointer("/outcome/optionId")?.as_str()
}

fn permission(view: &View<'_>) -> RuleResult {
    let (Some(chosen), Some(asked)) = (chosen(view), view.asked) else {
        return Ok(0);
    };
    let offered = asked.params.get("options").and_then(Value::as_array);
    let mut offered = offered.into_iter().flatten();
    if offered.any(|option| option.get("optionId").and_then(Value::as_str) == Some(chosen)) {
        return Ok(1);
    }
    violation(format!(
        "expected an option that was offered, got {chosen:?}"
    ))
}

/// No option is chosen once the turn is cancelled.
fn chooses_nothing(view: &View<'_>) -> RuleResult {
    let asked = view.asked.filter(|asked| asked.cancelled);
    match (asked, chosen(view)) {
        (Some(_), Some(_)) => {
            violation("expected the outcome `cancelled` in a cancelled turn, got an option")
        }
        (asked, _) => Ok(usize::from(asked.is_some())),
    }
}

#[cfg(test)]
#[path = "rules_tests.rs"]
mod tests;
