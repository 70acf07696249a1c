//! What several areas look for in a message.

use std::path::Path;

use serde_json::Value;

use super::Check;
use crate::passive::{Rule, RuleResult, State, View, at, violation};
use crate::wire::Party;

/// Looks at every message but pieces of text.
pub(super) const fn watch(check: fn(&View<'_>) -> RuleResult, missing: &'static str) -> Check {
    let look = Rule::Messages(check);
    Check::Watch { look, missing }
}

/// Looks at every message; there are so many pieces of text that few rules should.
pub(super) const fn watch_all(check: fn(&View<'_>) -> RuleResult, missing: &'static str) -> Check {
    let look = Rule::Everything(check);
    Check::Watch { look, missing }
}

/// Inspects the state of a connection at its end.
pub(super) const fn at_end(check: fn(&State) -> RuleResult, missing: &'static str) -> Check {
    let look = Rule::End(check);
    Check::Watch { look, missing }
}

/// The agent must do without a capability that the client does not declare; whether
/// it does shows in a turn. `breaks` says whether this message uses it.
pub(super) fn undeclared(view: &View<'_>, pointer: &str, breaks: bool, what: &str) -> RuleResult {
    let turn = view.result(Party::Client, "session/prompt").is_some();
    // Most messages are neither, and what is declared takes longer to find out.
    if !(breaks || turn) || view.state.client_declares(pointer) != Some(false) {
        return Ok(0);
    }
    if breaks {
        return violation(format!(
            "expected no use of what the client does not declare, got {what}"
        ));
    }
    Ok(1)
}

/// The same for a method whose capability the documents state. `breaks` says whether this message
/// is a call that needs it.
pub(super) fn undeclared_method(view: &View<'_>, method: &str, breaks: bool) -> RuleResult {
    match view.state.needed(Party::Client, method) {
        Some(pointer) => undeclared(view, pointer, breaks, view.method),
        None => Ok(0),
    }
}

/// Whether it is a call of the agent of a method that starts like this.
pub(super) fn is_agents(view: &View<'_>, prefix: &str) -> bool {
    view.is_call(Party::Agent) && view.method.starts_with(prefix)
}

/// Whether a path is absolute, on this system or on another.
pub(crate) fn is_absolute(path: &str) -> bool {
    let drive = path
        .get(1..3)
        .is_some_and(|root| root == ":\\" || root == ":/");
    Path::new(path).is_absolute() || path.starts_with('/') || path.starts_with("\\\\") || drive
}

/// Every path of these must be absolute.
pub(super) fn absolute<'a>(paths: impl IntoIterator<Item = &'a str>) -> RuleResult {
    let mut seen = 0;
    for path in paths {
        seen += 1;
        if !is_absolute(path) {
            return violation(format!("expected an absolute path, got {path:?}"));
        }
    }
    Ok(seen)
}

/// Every number among these is that of a line, which are counted from 1.
pub(super) fn from_one<'a>(lines: impl IntoIterator<Item = &'a Value>) -> RuleResult {
    let mut seen = 0;
    for line in lines.into_iter().filter(|line| line.is_number()) {
        seen += 1;
        if line.as_f64() < Some(1.0) {
            return violation(format!("expected a line from 1 on, got {line}"));
        }
    }
    Ok(seen)
}

/// The string at a place.
pub(super) fn text<'a>(value: &'a Value, pointer: &str) -> Option<&'a str> {
    at(value, pointer)?.as_str()
}

/// The elements at a place; none when there is no array.
pub(super) fn items<'a>(value: &'a Value, pointer: &str) -> impl Iterator<Item = &'a Value> {
    at(value, pointer)
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
}

/// The first text that occurs twice.
pub(super) fn repeated<'a>(texts: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let mut seen = std::collections::HashSet::new();
    texts.into_iter().find(|text| !seen.insert(*text))
}

/// No id may belong to two of these.
pub(super) fn unique<'a>(what: &str, ids: impl IntoIterator<Item = &'a str>) -> RuleResult {
    let ids: Vec<_> = ids.into_iter().collect();
    match repeated(ids.iter().copied()) {
        Some(id) => violation(format!(
            "expected {what} with ids of their own, got {id} twice"
        )),
        None => Ok(ids.len()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn lines_are_numbers_from_1_on() {
        assert_eq!(from_one([&json!(1), &Value::Null, &json!(7)]), Ok(2));
        for line in [json!(0), json!(-1), json!(0.5)] {
            assert!(from_one([&line]).is_err(), "{line}");
        }
    }
}
