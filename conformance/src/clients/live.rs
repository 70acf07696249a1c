//! What clients must obey in any connection, whatever agent they talk to: the rules of
//! their table that need no scenario.

use serde_json::Value;

use super::{choices, requests};
use crate::passive::{Rule, RuleResult, View, violation};
use crate::wire::{FindingKind, Party, Version};

/// The rules of a version by the ids of its table.
pub(crate) fn rules(version: Version) -> &'static [(&'static str, Rule)] {
    match version {
        Version::V1 => V1,
        Version::V2 => V2,
    }
}

/// Findings about what is no valid message of a client.
pub(crate) const ONLY_MESSAGES: &[FindingKind] = &[
    FindingKind::Schema,
    FindingKind::Envelope,
    FindingKind::NotJson,
    FindingKind::TooLong,
    FindingKind::MissingId,
    FindingKind::NotificationAnswered,
    FindingKind::UnmatchedAnswer,
];

const V1: &[(&str, Rule)] = &[
    ("client.only-messages", Rule::Findings(ONLY_MESSAGES)),
    (
        "client.custom-fields",
        Rule::Findings(&[FindingKind::CustomField]),
    ),
    (
        "client.method-names",
        Rule::Findings(&[FindingKind::UnknownMethod]),
    ),
    ("client.info", Rule::Messages(info)),
    ("client.absolute-cwd", Rule::Messages(absolute_cwd)),
    ("client.no-undeclared-methods", Rule::Messages(methods)),
    ("client.no-undeclared-content", Rule::Messages(content)),
    ("client.no-undeclared-servers", Rule::Messages(servers)),
    (
        "client.no-undeclared-directories",
        Rule::Messages(directories),
    ),
    ("client.permission", Rule::Messages(permission)),
    (
        "client.cancels-permission",
        Rule::Messages(cancels_permission),
    ),
    ("client.unique-ids", Rule::Messages(requests::unique_ids)),
    (
        "client.no-terminal-login",
        Rule::Messages(choices::no_terminal_login),
    ),
    (
        "client.offered-login",
        Rule::Messages(choices::offered_login),
    ),
    (
        "client.initializes-once",
        Rule::Messages(requests::initializes_once),
    ),
    (
        "client.cancel-is-notification",
        Rule::Messages(requests::cancel_is_notification),
    ),
];

const V2: &[(&str, Rule)] = &[
    ("client.only-messages", Rule::Findings(ONLY_MESSAGES)),
    (
        "client.custom-fields",
        Rule::Findings(&[FindingKind::CustomField]),
    ),
    (
        "client.method-names",
        Rule::Findings(&[FindingKind::UnknownMethod]),
    ),
    ("client.info", Rule::Messages(v2_info)),
    ("client.absolute-cwd", Rule::Messages(absolute_cwd)),
    ("client.no-undeclared-methods", Rule::Messages(v2_methods)),
    ("client.no-undeclared-content", Rule::Messages(v2_content)),
    ("client.permission", Rule::Messages(permission)),
    (
        "client.cancels-permission",
        Rule::Messages(cancels_permission),
    ),
    ("client.unique-ids", Rule::Messages(requests::unique_ids)),
    (
        "client.no-terminal-login",
        Rule::Messages(choices::no_terminal_login),
    ),
    (
        "client.offered-login",
        Rule::Messages(choices::offered_login),
    ),
    (
        "client.initializes-once",
        Rule::Messages(requests::initializes_once),
    ),
    (
        "client.cancel-is-notification",
        Rule::Messages(requests::cancel_is_notification),
    ),
];

/// Kinds of content that need a capability of an agent of version 2.
const V2_CONTENT: [(&str, &str); 3] = [
    ("image", "/session/prompt/image"),
    ("audio", "/session/prompt/audio"),
    ("resource", "/session/prompt/embeddedContext"),
];

/// Methods that need a capability of the agent.
const METHODS: [(&str, &str); 6] = [
    ("session/load", "/loadSession"),
    ("session/resume", "/sessionCapabilities/resume"),
    ("session/list", "/sessionCapabilities/list"),
    ("session/close", "/sessionCapabilities/close"),
    ("session/delete", "/sessionCapabilities/delete"),
    ("logout", "/auth/logout"),
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

/// The client uses something that needs this capability.
fn needs(view: &View<'_>, pointer: &str, what: &str) -> RuleResult {
    match view.state.agent_declares(pointer) {
        Some(false) => violation(format!("the agent does not declare {what}")),
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
    violation(format!("no `{member}` with a name and a version"))
}

fn v2_methods(view: &View<'_>) -> RuleResult {
    if view.calls(Party::Client, "session/delete") {
        return needs(view, "/session/delete", "session/delete");
    }
    let logs = ["auth/login", "auth/logout"];
    let Some(method) = logs.iter().find(|method| view.calls(Party::Client, method)) else {
        return Ok(0);
    };
    let Some(agent) = &view.state.agent else {
        return Ok(0);
    };
    let offered = agent.get("authMethods").and_then(Value::as_array);
    match offered.is_some_and(|offered| !offered.is_empty()) {
        true => Ok(1),
        false => violation(format!("the agent offers no login, so it has no {method}")),
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
    let methods = ["session/new", "session/load", "session/resume"];
    view.is_call(Party::Client) && methods.contains(&view.method)
}

fn absolute_cwd(view: &View<'_>) -> RuleResult {
    let cwd = view.params().get("cwd").and_then(Value::as_str);
    match cwd.filter(|_| sets_up(view)) {
        Some(cwd) if !crate::requirements::is_absolute(cwd) => {
            violation(format!("`cwd` is {cwd:?}, not an absolute path"))
        }
        cwd => Ok(usize::from(cwd.is_some())),
    }
}

fn methods(view: &View<'_>) -> RuleResult {
    let called = |(method, _): &&(&str, &str)| view.calls(Party::Client, method);
    match METHODS.iter().find(called) {
        Some((method, pointer)) => needs(view, pointer, method),
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
    if !sets_up(view) {
        return Ok(0);
    }
    kinds(view, list(view, "mcpServers"), &SERVERS)
}

fn directories(view: &View<'_>) -> RuleResult {
    if !sets_up(view) || list(view, "additionalDirectories").next().is_none() {
        return Ok(0);
    }
    let pointer = "/sessionCapabilities/additionalDirectories";
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
    violation(format!("{chosen:?} was not offered"))
}

fn cancels_permission(view: &View<'_>) -> RuleResult {
    let asked = view.asked.filter(|asked| asked.cancelled);
    match (asked, chosen(view)) {
        (Some(_), Some(_)) => violation("an option was chosen although the turn was cancelled"),
        (asked, _) => Ok(usize::from(asked.is_some())),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::json;

    use super::*;
    use crate::clients;
    use crate::harness::Caps;
    use crate::passive::{Said, State};
    use crate::wire::Kind;

    /// The rules that a conversation breaks. A message with an id and a method is a
    /// request; the agent's have ids of text.
    fn broken(messages: &[Value]) -> Vec<&'static str> {
        let mut state = State::whole();
        let mut found = BTreeSet::new();
        for (place, value) in messages.iter().enumerate() {
            let text = value["id"].is_string();
            let (kind, calls) = match (value.get("method"), value.get("id")) {
                (Some(_), Some(_)) => (Kind::Request, true),
                (Some(_), None) => (Kind::Notification, true),
                _ => (Kind::Result, false),
            };
            let from = if text == calls {
                Party::Agent
            } else {
                Party::Client
            };
            let said = Said {
                place: place as u64,
                from,
                kind,
                value,
            };
            let view = View::new(&state, said);
            for (id, look) in V1 {
                if let Rule::Messages(look) = look
                    && look(&view).is_err()
                {
                    found.insert(*id);
                }
            }
            state.take(said);
        }
        found.into_iter().collect()
    }

    fn call(method: &str, params: Value) -> Value {
        json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
    }

    /// A handshake with an agent of these capabilities, and then this.
    fn after(capabilities: Value, then: &[Value]) -> Vec<&'static str> {
        let mut all = vec![
            call("initialize", Caps::Full.initialize(Version::V1)),
            json!({"id": 1, "result": {"agentCapabilities": capabilities}}),
        ];
        // Answers of the agent have the client's ids, which are numbers.
        all.extend_from_slice(then);
        broken(&all)
    }

    #[test]
    fn what_the_agent_does_not_declare_is_not_used() {
        for (message, pointer, id) in [
            (
                call("session/load", json!({"cwd": "/"})),
                json!({"loadSession": true}),
                "client.no-undeclared-methods",
            ),
            (
                call("session/prompt", json!({"prompt": [{"type": "image"}]})),
                json!({"promptCapabilities": {"image": true}}),
                "client.no-undeclared-content",
            ),
            (
                call(
                    "session/new",
                    json!({"cwd": "/", "mcpServers": [{"type": "http"}]}),
                ),
                json!({"mcpCapabilities": {"http": true}}),
                "client.no-undeclared-servers",
            ),
            (
                call(
                    "session/new",
                    json!({"cwd": "/", "additionalDirectories": ["/x"]}),
                ),
                json!({"sessionCapabilities": {"additionalDirectories": {}}}),
                "client.no-undeclared-directories",
            ),
        ] {
            assert_eq!(after(json!({}), std::slice::from_ref(&message)), [id]);
            assert!(
                after(pointer, std::slice::from_ref(&message)).is_empty(),
                "{id}"
            );
            // Nothing is known of an agent whose handshake was not seen.
            assert!(broken(&[message]).is_empty(), "{id}");
        }
    }

    #[test]
    fn directories_are_absolute_and_clients_have_names() {
        let new = |cwd: &str| call("session/new", json!({"cwd": cwd}));
        assert_eq!(broken(&[new("here")]), ["client.absolute-cwd"]);
        assert!(broken(&[new("/here")]).is_empty());
        assert_eq!(broken(&[call("initialize", json!({}))]), ["client.info"]);
    }

    #[test]
    fn pending_requests_have_ids_of_their_own() {
        let new = |id: u64| {
            json!({"jsonrpc": "2.0", "id": id, "method": "session/new",
            "params": {"cwd": "/"}})
        };
        assert!(after(json!({}), &[new(1), new(2)]).is_empty());
        assert_eq!(after(json!({}), &[new(1), new(1)]), ["client.unique-ids"]);
        let answer = json!({"id": 1, "result": {"sessionId": "s"}});
        assert!(after(json!({}), &[new(1), answer, new(1)]).is_empty());
    }

    #[test]
    fn a_choice_is_one_of_those_offered_and_none_after_a_cancellation() {
        let prompt = call("session/prompt", json!({"sessionId": "s"}));
        let ask = json!({"id": "a", "method": "session/request_permission",
            "params": {"sessionId": "s", "options": [{"optionId": "y"}]}});
        let choose = |id: &str| json!({"id": "a", "result": {"outcome": {"outcome": "selected", "optionId": id}}});
        let cancel = json!({"method": "session/cancel", "params": {"sessionId": "s"}});
        let run = |rest: &[&Value]| {
            let all: Vec<_> = [&prompt, &ask]
                .into_iter()
                .chain(rest.iter().copied())
                .cloned()
                .collect();
            broken(&all)
        };
        assert!(run(&[&choose("y")]).is_empty());
        assert_eq!(run(&[&choose("n")]), ["client.permission"]);
        assert_eq!(run(&[&cancel, &choose("y")]), ["client.cancels-permission"]);
        let cancelled = json!({"id": "a", "result": {"outcome": {"outcome": "cancelled"}}});
        assert!(run(&[&cancel, &cancelled]).is_empty());
    }

    #[test]
    fn every_rule_is_of_the_table() {
        for version in [Version::V1, Version::V2] {
            for (id, _) in rules(version) {
                assert!(clients::of(version).any(|row| row.id == *id), "{id}");
            }
        }
    }
}
