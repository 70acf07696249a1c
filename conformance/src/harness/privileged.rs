//! Modes and options that a suite does not select by itself: they take the user's protection away, or
//! choose a model that costs more.

use serde_json::Value;

use super::names::plain;

/// Words in the id or the name of a mode that bypasses permissions, without case and separators.
const WORDS: [&str; 8] = [
    "bypass",
    "yolo",
    "fullaccess",
    "danger",
    "unrestricted",
    "autoapprove",
    "approveall",
    "neverask",
];

/// Returns whether a mode, an option that is switched on, or a value of one bypasses permissions by its
/// id or its name.
#[must_use]
pub(crate) fn is_privileged(mode: &Value) -> bool {
    let texts =
        ["id", "configId", "value", "name"].map(|name| mode.get(name).and_then(Value::as_str));
    let mut names = texts.into_iter().flatten().map(plain);
    names.any(|name| WORDS.iter().any(|word| name.contains(word)))
}

/// Returns whether an option chooses a model, by its category or its id.
#[must_use]
pub(crate) fn chooses_model(option: &Value) -> bool {
    let is_model = |name: &str| option.get(name).and_then(Value::as_str) == Some("model");
    ["category", "id", "configId"].into_iter().any(is_model)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn modes_that_bypass_permissions_are_known_by_their_names() {
        for mode in [
            json!({"id": "bypassPermissions", "name": "Bypass"}),
            json!({"id": "agent-full-access", "name": "Agent"}),
            json!({"id": "x", "name": "Danger: full access"}),
            json!({"value": "YOLO", "name": "Go"}),
            json!({"configId": "auto-approve", "type": "boolean"}),
        ] {
            assert!(is_privileged(&mode), "{mode}");
        }
        for mode in ["ask", "code", "plan", "read-only", "default", "acceptEdits"] {
            assert!(!is_privileged(&json!({"id": mode, "name": mode})), "{mode}");
        }
        assert!(chooses_model(&json!({"id": "a", "category": "model"})));
        assert!(!chooses_model(
            &json!({"id": "thinking", "category": "thought_level"})
        ));
    }
}
