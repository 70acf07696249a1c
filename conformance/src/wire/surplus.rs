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
            let mut all = Vec::new();
            items(definitions, schema, depth, &mut all);
            let mut elements = elements.iter().enumerate();
            elements.find_map(|(index, element)| {
                let at = format!("{at}/{index}");
                // Of a union of arrays, those count whose elements have what it takes.
                let whole = all
                    .iter()
                    .filter(|items| is_whole(definitions, items, element));
                let whole: Vec<_> = whole.collect();
                let candidates = if whole.is_empty() {
                    all.iter().collect()
                } else {
                    whole
                };
                let mut found = candidates
                    .iter()
                    .map(|items| visit(definitions, items, element, at.clone(), depth));
                let first = found.next()??;
                found.all(|other| other.is_some()).then_some(first)
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

/// The schemas that the elements of an array may be of.
fn items<'a>(definitions: &'a Value, schema: &'a Value, depth: usize, found: &mut Vec<&'a Value>) {
    let Some(depth) = depth.checked_sub(1) else {
        return;
    };
    found.extend(schema.get("items"));
    let target = target(definitions, schema);
    let unions = ["allOf", "oneOf", "anyOf"];
    let parts = unions.iter().flat_map(|union| parts(schema, union));
    for part in target.into_iter().chain(parts) {
        items(definitions, part, depth, found);
    }
}

/// Whether a value has all members that a schema requires of it.
fn is_whole(definitions: &Value, schema: &Value, value: &Value) -> bool {
    let schema = target(definitions, schema).unwrap_or(schema);
    let required = schema.get("required").and_then(Value::as_array);
    let mut names = required.into_iter().flatten().filter_map(Value::as_str);
    names.all(|name| value.get(name).is_some())
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
    fn an_array_is_of_the_branch_whose_elements_it_has() {
        let grouped = |group: Value| {
            let options = json!([group]);
            json!({"sessionId": "s", "configOptions": [
                {"id": "m", "name": "M", "type": "select", "currentValue": "a", "options": options},
            ]})
        };
        let value = json!({"value": "a", "name": "A"});
        let group = json!({"group": "g", "name": "G", "options": [value]});
        assert_eq!(found("NewSessionResponse", &grouped(group.clone())), None);
        let mut odd = group;
        odd["options"][0]["icon"] = json!("x");
        let place = "/configOptions/0/options/0/options/0/icon";
        let found = found("NewSessionResponse", &grouped(odd));
        assert_eq!(found.as_deref(), Some(place));
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
