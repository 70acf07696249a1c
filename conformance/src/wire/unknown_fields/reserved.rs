//! Values that are reserved: where the schema has known values and a fallback, an unknown value that
//! does not begin with `_` is for later versions of the protocol.

use serde_json::Value;

use super::{DEPTH, MOST, Members, Node, pointer};

impl Members {
    /// The JSON Pointers of such values in `value`, which is of the definition `name`, with the values;
    /// at most [`MOST`].
    #[must_use]
    pub(crate) fn reserved_values<'a>(
        &self,
        name: &str,
        value: &'a Value,
    ) -> Vec<(String, &'a str)> {
        let mut found = Vec::new();
        if let Some(node) = self.definitions.get(name) {
            self.find(*node, value, &mut Vec::new(), &mut found, DEPTH);
        }
        found.truncate(MOST);
        found
    }

    fn find<'a>(
        &self,
        node: usize,
        value: &'a Value,
        way: &mut Vec<String>,
        found: &mut Vec<(String, &'a str)>,
        depth: usize,
    ) {
        let Some(depth) = depth.checked_sub(1) else {
            return;
        };
        match value {
            Value::String(text) if self.is_reserved(node, text, depth) == Some(true) => {
                found.push((pointer(way.iter()), text));
            }
            Value::Object(members) => {
                let mut shape = Vec::with_capacity(4);
                self.shape(node, members, &mut shape, depth);
                for (name, member) in members {
                    let text = member.as_str();
                    let is_tag =
                        |node: &&Node| text.is_some_and(|text| node.tags.rules(name, text));
                    way.push(name.clone());
                    if let Some(text) = text.filter(|_| shape.iter().any(is_tag)) {
                        found.push((pointer(way.iter()), text));
                    }
                    let mut properties = shape.iter().flat_map(|node| &node.properties);
                    // Of several branches that have it, the first speaks for all.
                    if let Some((_, place)) = properties.find(|(known, _)| known == name) {
                        self.find(*place, member, way, found, depth);
                    }
                    way.pop();
                }
            }
            Value::Array(elements) => {
                let items = self.nodes.get(node).and_then(|node| node.items.first());
                for (index, element) in elements.iter().enumerate() {
                    if let Some(items) = items {
                        way.push(index.to_string());
                        self.find(*items, element, way, found, depth);
                        way.pop();
                    }
                }
            }
            _ => {}
        }
    }

    /// Whether a text is none of the values of a node that has values and a fallback; `None` if it
    /// has none.
    fn is_reserved(&self, node: usize, text: &str, depth: usize) -> Option<bool> {
        let (depth, node) = (depth.checked_sub(1)?, self.nodes.get(node)?);
        if let Some(values) = &node.values {
            return Some(!is_free(values, text));
        }
        let mut branches = node.branches.iter();
        branches.find_map(|branch| self.is_reserved(branch.node, text, depth))
    }
}

/// Tags of unions with a fallback: the member and its known values.
#[derive(Debug, Default)]
pub(super) struct Tags(pub(super) Vec<(String, Vec<String>)>);

impl Tags {
    /// Whether this member is a tag, and this text is reserved for it.
    fn rules(&self, member: &str, text: &str) -> bool {
        let mut tags = self.0.iter();
        tags.any(|(name, values)| name == member && !is_free(values, text))
    }
}

/// Values that the Preview of version 2 has and no document yet, each with one of its union that a
/// document has: kinds of updates, and of the content of a tool call.
const PREVIEW: [(&str, &str); 3] = [
    ("tool_call_update", "cursor_update"),
    ("tool_call_update", "prompt_suggestions_update"),
    ("diff", "session"),
];

fn is_free(values: &[String], text: &str) -> bool {
    let has = |known: &str| values.iter().any(|value| value == known);
    let is_preview = |(beside, new): &(&str, &str)| *new == text && has(beside);
    text.starts_with('_') || has(text) || PREVIEW.iter().any(is_preview)
}

/// The values of a union of strings that has a fallback.
pub(super) fn values(branches: &[&Value]) -> Option<Vec<String>> {
    let known = |branch: &&Value| Some(branch.get("const")?.as_str()?.to_owned());
    let values: Vec<_> = branches.iter().filter_map(known).collect();
    let falls_back = |branch: &&Value| {
        branch.get("const").is_none()
            && branch.get("type").and_then(Value::as_str) == Some("string")
    };
    (!values.is_empty() && branches.iter().any(falls_back)).then_some(values)
}

/// The tags of a union of objects: each member that has a constant in some branches, with these.
pub(super) fn tags(branches: &[&Value]) -> Vec<(String, Vec<String>)> {
    let mut tags: Vec<(String, Vec<String>)> = Vec::new();
    let all = branches.iter().flat_map(|branch| super::constants(branch));
    for (name, constant) in all {
        let Some(text) = constant.as_str().map(str::to_owned) else {
            continue;
        };
        match tags.iter_mut().find(|(known, _)| *known == name) {
            Some((_, values)) => values.push(text),
            None => tags.push((name, vec![text])),
        }
    }
    tags
}

/// The tags of a union that a branch has without a constant: it is the fallback.
pub(super) fn fallback(
    branch: &Value,
    tags: &[(String, Vec<String>)],
) -> Vec<(String, Vec<String>)> {
    let has = |name: &str| {
        let member = branch.get("properties").and_then(|all| all.get(name));
        member.is_some_and(|member| member.get("const").is_none())
    };
    let own = tags.iter().filter(|(name, _)| has(name));
    own.cloned().collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::wire::Version;

    fn found(name: &str, value: &Value) -> Vec<String> {
        let document = Version::V2.document().unwrap();
        let members = Members::of(&document.value()["$defs"]);
        let found = members.reserved_values(name, value);
        let mut found: Vec<_> = found.into_iter().map(|(pointer, _)| pointer).collect();
        found.sort_unstable();
        found
    }

    #[test]
    fn tags_and_values_with_a_fallback_are_reserved() {
        let call = json!({"sessionId": "s", "update": {
            "sessionUpdate": "tool_call_update", "toolCallId": "t", "kind": "gaze", "status": null,
            "content": [{"type": "content", "content": {"type": "smell"}}, {"type": "_own", "kind": "x"}],
            "rawInput": {"kind": "gaze", "type": "x"},
        }});
        let expected = ["/update/content/0/content/type", "/update/kind"];
        assert_eq!(found("UpdateSessionNotification", &call), expected);
        let preview = json!({"sessionId": "s", "update": {"sessionUpdate": "cursor_update"}});
        assert!(found("UpdateSessionNotification", &preview).is_empty());
        // A link to a subagent's session.
        let content = json!([{"type": "session", "sessionId": "c"}, {"type": "cursor_update"}]);
        let linked = json!({"sessionId": "s", "update": {
            "sessionUpdate": "tool_call_update", "toolCallId": "t", "content": content,
        }});
        let expected = ["/update/content/1/type"];
        assert_eq!(found("UpdateSessionNotification", &linked), expected);
    }
}
