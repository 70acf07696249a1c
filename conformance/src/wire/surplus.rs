//! Members that the schema does not have.
//!
//! JSON Schema lets objects have more members than it names, and so do receivers;
//! but the protocol reserves all names for its own future. A member counts when no
//! branch of a union that fits the object knows it; where the schema leaves the
//! members open, as in `_meta`, nothing counts.

use serde_json::{Map, Value};

/// How deep schemas are followed; the protocol's are not half as deep.
const DEPTH: usize = 64;

/// The JSON Pointer of the first member of `value` that the definition `name` does
/// not have.
#[must_use]
pub(crate) fn surplus(definitions: &Value, name: &str, value: &Value) -> Option<String> {
    let schema = definitions.get(name)?;
    visit(definitions, schema, value, String::new(), DEPTH)
}

fn visit(
    definitions: &Value,
    schema: &Value,
    value: &Value,
    at: String,
    depth: usize,
) -> Option<String> {
    let depth = depth.checked_sub(1)?;
    match value {
        Value::Object(members) => {
            let mut shape = Shape::default();
            shape.add(definitions, schema, members, depth);
            if shape.open || shape.properties.is_empty() {
                return None;
            }
            members.iter().find_map(|(name, member)| {
                let at = format!("{at}/{}", name.replace('~', "~0").replace('/', "~1"));
                let mut known = shape.properties.iter().filter(|(known, _)| *known == name);
                let (_, first) = match known.next() {
                    Some(known) => known,
                    None => return Some(at),
                };
                // Known by several branches: surplus only if each of them says so.
                let found = visit(definitions, first, member, at.clone(), depth)?;
                let all = known.all(|(_, other)| {
                    visit(definitions, other, member, at.clone(), depth).is_some()
                });
                all.then_some(found)
            })
        }
        Value::Array(elements) => {
            let items = items(definitions, schema, depth)?;
            let mut elements = elements.iter().enumerate();
            elements.find_map(|(index, element)| {
                visit(definitions, items, element, format!("{at}/{index}"), depth)
            })
        }
        _ => None,
    }
}

/// What an object may hold, by all that the schema says about it.
#[derive(Default)]
struct Shape<'a> {
    properties: Vec<(&'a String, &'a Value)>,
    open: bool,
}

impl<'a> Shape<'a> {
    fn add(
        &mut self,
        definitions: &'a Value,
        schema: &'a Value,
        members: &Map<String, Value>,
        depth: usize,
    ) {
        let Some(depth) = depth.checked_sub(1) else {
            return;
        };
        if let Some(target) = target(definitions, schema) {
            self.add(definitions, target, members, depth);
        }
        let extra = schema.get("additionalProperties");
        self.open |= extra.is_some_and(|extra| extra != &Value::Bool(false));
        self.open |= schema.as_bool() == Some(true);
        if let Some(properties) = schema.get("properties").and_then(Value::as_object) {
            self.properties.extend(properties);
        }
        for part in parts(schema, "allOf") {
            self.add(definitions, part, members, depth);
        }
        for union in ["oneOf", "anyOf"] {
            for branch in parts(schema, union).filter(|branch| fits(branch, members)) {
                self.add(definitions, branch, members, depth);
            }
        }
    }
}

/// The elements' schema of an array.
fn items<'a>(definitions: &'a Value, schema: &'a Value, depth: usize) -> Option<&'a Value> {
    let depth = depth.checked_sub(1)?;
    if let Some(items) = schema.get("items") {
        return Some(items);
    }
    let target = target(definitions, schema);
    let unions = ["allOf", "oneOf", "anyOf"];
    let parts = unions.iter().flat_map(|union| parts(schema, union));
    let mut parts = target.into_iter().chain(parts);
    parts.find_map(|part| items(definitions, part, depth))
}

/// The definition that a schema refers to.
pub(crate) fn target<'a>(definitions: &'a Value, schema: &Value) -> Option<&'a Value> {
    let name = schema.get("$ref")?.as_str()?.strip_prefix("#/$defs/")?;
    definitions.get(name)
}

/// The branches of a union, or the parts of an intersection.
pub(crate) fn parts<'a>(schema: &'a Value, keyword: &str) -> impl Iterator<Item = &'a Value> {
    schema
        .get(keyword)
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
}

/// Whether no constant of a branch is contradicted.
pub(crate) fn fits(branch: &Value, members: &Map<String, Value>) -> bool {
    let properties = branch.get("properties").and_then(Value::as_object);
    let mut properties = properties.into_iter().flatten();
    properties.all(
        |(name, schema)| match (schema.get("const"), members.get(name)) {
            (Some(constant), Some(member)) => constant == member,
            (Some(_), None) => false,
            (None, _) => true,
        },
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn found(name: &str, value: &Value) -> Option<String> {
        let document = acp_schema::Document::v1().unwrap();
        surplus(&document.value["$defs"], name, value)
    }

    #[test]
    fn members_of_a_union_are_those_of_its_branch() {
        let chunk = json!({"sessionId": "s", "update": {
            "sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "x"},
        }});
        assert_eq!(found("SessionNotification", &chunk), None);
        let mut other = chunk.clone();
        other["update"]["content"]["mimeType"] = json!("text/plain");
        let place = "/update/content/mimeType";
        assert_eq!(found("SessionNotification", &other).as_deref(), Some(place));
        let mut other = chunk;
        other["update"]["toolCallId"] = json!("t");
        let place = "/update/toolCallId";
        assert_eq!(found("SessionNotification", &other).as_deref(), Some(place));
    }

    #[test]
    fn elements_of_arrays_count() {
        let response = json!({"sessionId": "s", "configOptions": [
            {"id": "m", "name": "M", "type": "select", "currentValue": "a",
             "options": [{"value": "a", "name": "A", "icon": "x"}]},
        ]});
        let place = "/configOptions/0/options/0/icon";
        assert_eq!(
            found("NewSessionResponse", &response).as_deref(),
            Some(place)
        );
    }

    #[test]
    fn what_is_open_stays_open() {
        let call = json!({"sessionId": "s", "_meta": {"a": {"b": 1}}, "update": {
            "sessionUpdate": "tool_call", "toolCallId": "t", "title": "T",
            "rawInput": {"any": {"thing": 1}}, "_meta": {"x": 1},
        }});
        assert_eq!(found("SessionNotification", &call), None);
        let form = json!({"sessionId": "s", "mode": "form", "message": "m", "requestedSchema": {
            "type": "object", "properties": {"a": {"type": "string", "title": "A"}},
        }});
        assert_eq!(found("CreateElicitationRequest", &form), None);
    }
}
