//! Whether the agent takes servers inside of the connection.

use serde_json::{Value, json};

/// Returns whether a response to `initialize` announces it.
pub(super) fn is_announced(response: &Value) -> bool {
    let of_v1 = &response["agentCapabilities"]["mcpCapabilities"]["acp"];
    let of_v2 = &response["capabilities"]["session"]["mcp"]["acp"];
    *of_v1 == Value::Bool(true) || of_v2.is_object()
}

/// Announces it in a response to `initialize`. Returns whether the response could be changed.
pub(super) fn announce(response: &mut Value) -> bool {
    let is_v2 = response["protocolVersion"].as_u64() >= Some(2);
    let (path, capability) = match is_v2 {
        // Without sessions there is nothing that could have servers.
        true if !response["capabilities"]["session"].is_object() => return false,
        true => (["capabilities", "session", "mcp"].as_slice(), json!({})),
        false => (
            ["agentCapabilities", "mcpCapabilities"].as_slice(),
            json!(true),
        ),
    };
    let mut at = response;
    for member in path {
        let Some(object) = at.as_object_mut() else {
            return false;
        };
        at = object.entry(*member).or_insert(Value::Null);
        if at.is_null() {
            *at = json!({});
        }
    }
    let Some(capabilities) = at.as_object_mut() else {
        return false;
    };
    capabilities.insert("acp".to_owned(), capability);
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_announced_is_found_in_both_versions() {
        for mut response in [
            json!({"protocolVersion": 1}),
            json!({"protocolVersion": 1, "agentCapabilities": {"mcpCapabilities": null}}),
            json!({"protocolVersion": 2, "capabilities": {"session": {}}}),
        ] {
            assert!(!is_announced(&response), "{response}");
            assert!(announce(&mut response) && is_announced(&response));
        }
        for mut response in [
            json!({"protocolVersion": 2, "capabilities": {}}),
            json!({"protocolVersion": 1, "agentCapabilities": 3}),
        ] {
            assert!(!announce(&mut response) && !is_announced(&response));
        }
    }
}
