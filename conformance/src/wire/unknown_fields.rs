//! Members that the schema does not have.
//!
//! JSON Schema lets objects have more members than it names, and so do receivers;
//! but the protocol reserves all names for its own future. A member counts when no
//! branch of a union that fits the object knows it; where the schema leaves the
//! members open, as in `_meta`, nothing counts.

mod reserved;

use std::collections::HashMap;

use serde_json::{Map, Value};

use self::reserved::Tags;

/// How deep schemas are followed; the protocol's are not half as deep.
const DEPTH: usize = 64;

/// How many members of a message are reported.
pub(super) const MOST: usize = 20;

/// A member that the schema does not have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct UnknownField<'a> {
    /// Its JSON Pointer.
    pub(crate) pointer: String,
    /// The definitions that its object is of.
    pub(crate) of: Vec<&'a str>,
    /// Its name.
    pub(crate) name: String,
}

/// The way to a member from its end, and the definitions that its object is of.
type Way<'a> = (Vec<String>, Vec<&'a str>);

/// Which members the definitions of a document know. Looked up in advance: every message of a
/// live connection is held against it.
#[derive(Debug)]
pub(crate) struct Members {
    nodes: Vec<Node>,
    definitions: HashMap<String, usize>,
}

/// What a schema says of members: by itself, by what it refers to and by its intersections.
#[derive(Debug, Default)]
struct Node {
    /// The definitions that it is made of.
    definitions: Vec<String>,
    /// Whether there may be any others.
    open: bool,
    /// Members by name, with the node of their schema.
    properties: Vec<(String, usize)>,
    /// Branches of unions.
    branches: Vec<Branch>,
    /// The values of a string, if there is a fallback for others.
    values: Option<Vec<String>>,
    /// The tags of unions that have a fallback for others.
    tags: Tags,
    /// The schemas that the elements of an array may be of.
    items: Vec<usize>,
    /// Members that must be there.
    required: Vec<String>,
}

/// A branch of a union.
#[derive(Debug)]
struct Branch {
    /// The constants that an object of it has.
    constants: Vec<(String, Value)>,
    /// Of a fallback: the tags, with the values that other branches are for.
    other_than: Vec<(String, Vec<String>)>,
    node: usize,
}

impl Members {
    /// Those of the definitions, by name.
    pub(crate) fn of(definitions: &Value) -> Self {
        let mut reader = Reader {
            definitions,
            nodes: Vec::new(),
            known: HashMap::new(),
        };
        let all = definitions.as_object().into_iter().flatten();
        let known = all.map(|(name, schema)| {
            let place = reader.node(schema);
            if let Some(node) = reader.nodes.get_mut(place) {
                node.definitions.push(name.clone());
            }
            (name.clone(), place)
        });
        let known = known.collect();
        Self {
            nodes: reader.nodes,
            definitions: known,
        }
    }

    /// The members of `value` that the definition `name` does not have, at most [`MOST`].
    #[must_use]
    pub(crate) fn unknown_fields(&self, name: &str, value: &Value) -> Vec<UnknownField<'_>> {
        let node = self.definitions.get(name);
        let ways = node.map(|node| self.visit(*node, value, DEPTH));
        let field = |(way, of)| {
            let way: Vec<String> = way;
            let pointer = pointer(way.iter().rev());
            let name = way.into_iter().next().unwrap_or_default();
            UnknownField { pointer, of, name }
        };
        ways.unwrap_or_default().into_iter().map(field).collect()
    }

    /// The ways to such members.
    fn visit(&self, node: usize, value: &Value, depth: usize) -> Vec<Way<'_>> {
        match (depth.checked_sub(1), value) {
            (Some(depth), Value::Object(members)) => self.visit_object(node, members, depth),
            (Some(depth), Value::Array(elements)) => self.visit_array(node, elements, depth),
            _ => Vec::new(),
        }
    }

    fn visit_object(
        &self,
        node: usize,
        members: &Map<String, Value>,
        depth: usize,
    ) -> Vec<Way<'_>> {
        let mut shape = Vec::with_capacity(4);
        self.shape(node, members, &mut shape, depth);
        let mut found = Vec::new();
        if shape.iter().any(|node| node.open) || shape.iter().all(|node| node.properties.is_empty())
        {
            return found;
        }
        for (name, member) in members {
            let properties = shape.iter().flat_map(|node| &node.properties);
            let mut known = properties.filter(|(known, _)| known == name);
            let Some((_, first)) = known.next() else {
                if found.len() < MOST {
                    let of = shape.iter().flat_map(|node| &node.definitions);
                    found.push((vec![name.clone()], of.map(String::as_str).collect()));
                }
                continue;
            };
            let inside = self.visit(*first, member, depth);
            // Known by several branches: unknown only if each of them says so.
            let mut others = known.map(|(_, other)| self.visit(*other, member, depth));
            if !inside.is_empty() && others.all(|other| !other.is_empty()) {
                extend(&mut found, inside, name);
            }
        }
        found
    }

    fn visit_array(&self, node: usize, elements: &[Value], depth: usize) -> Vec<Way<'_>> {
        let mut found = Vec::new();
        let Some(all) = self.nodes.get(node).map(|node| &node.items) else {
            return found;
        };
        for (index, element) in elements.iter().enumerate() {
            // Of a union of arrays, those count whose elements have what it takes.
            let is_whole = |items: &&usize| self.is_whole(**items, element);
            let whole: Vec<_> = all.iter().filter(is_whole).collect();
            let candidates = if whole.is_empty() {
                all.iter().collect()
            } else {
                whole
            };
            let mut visits = candidates
                .iter()
                .map(|items| self.visit(**items, element, depth));
            let inside = visits.next().unwrap_or_default();
            if !inside.is_empty() && visits.all(|other| !other.is_empty()) {
                extend(&mut found, inside, &index.to_string());
            }
        }
        found
    }

    /// What an object may hold, by all that the schema says about it: the node and the branches
    /// of which no constant is contradicted.
    fn shape<'a>(
        &'a self,
        node: usize,
        members: &Map<String, Value>,
        found: &mut Vec<&'a Node>,
        depth: usize,
    ) {
        let (Some(depth), Some(node)) = (depth.checked_sub(1), self.nodes.get(node)) else {
            return;
        };
        found.push(node);
        // Branches mostly differ in one member.
        let mut last: (&str, Option<&Value>) = ("", None);
        for branch in &node.branches {
            let fits = branch.constants.iter().all(|(name, constant)| {
                if name != last.0 {
                    last = (name, members.get(name));
                }
                last.1 == Some(constant)
            });
            let known = branch.other_than.iter().any(|(name, values)| {
                let tag = members.get(name).and_then(Value::as_str);
                tag.is_some_and(|tag| values.iter().any(|value| value == tag))
            });
            if fits && !known {
                self.shape(branch.node, members, found, depth);
            }
        }
    }

    /// Whether a value has all members that a schema requires of it.
    fn is_whole(&self, node: usize, value: &Value) -> bool {
        let required = self.nodes.get(node).map(|node| &node.required);
        let mut names = required.into_iter().flatten();
        names.all(|name| value.get(name).is_some())
    }
}

/// The JSON Pointer of names.
pub(super) fn pointer<'a>(names: impl Iterator<Item = &'a String>) -> String {
    let escaped = names.map(|name| name.replace('~', "~0").replace('/', "~1"));
    escaped.fold(String::new(), |pointer, name| pointer + "/" + &name)
}

/// Adds the ways inside of a member, of which no more are needed than are reported.
fn extend<'a>(found: &mut Vec<Way<'a>>, inside: Vec<Way<'a>>, member: &str) {
    let room = MOST.saturating_sub(found.len());
    found.extend(inside.into_iter().take(room).map(|(mut way, of)| {
        way.push(member.to_owned());
        (way, of)
    }));
}

/// Makes nodes of schemas.
struct Reader<'a> {
    definitions: &'a Value,
    nodes: Vec<Node>,
    /// The nodes of the schemas that were seen, by where they stand in memory: definitions
    /// refer to each other, and to themselves.
    known: HashMap<*const Value, usize>,
}

impl<'a> Reader<'a> {
    fn node(&mut self, schema: &'a Value) -> usize {
        let schema = referent(self.definitions, schema)
            .filter(|_| schema.as_object().is_some_and(|all| all.len() == 1))
            .unwrap_or(schema);
        if let Some(known) = self.known.get(&std::ptr::from_ref(schema)) {
            return *known;
        }
        let place = self.nodes.len();
        self.known.insert(schema, place);
        self.nodes.push(Node::default());
        let mut node = Node::default();
        self.add(&mut node, schema, DEPTH);
        self.items(&mut node.items, schema, DEPTH);
        let whole = referent(self.definitions, schema).unwrap_or(schema);
        let required = whole.get("required").and_then(Value::as_array);
        let names = required.into_iter().flatten().filter_map(Value::as_str);
        node.required = names.map(str::to_owned).collect();
        if let Some(slot) = self.nodes.get_mut(place) {
            *slot = node;
        }
        place
    }

    fn add(&mut self, node: &mut Node, schema: &'a Value, depth: usize) {
        let Some(depth) = depth.checked_sub(1) else {
            return;
        };
        if let Some(referent) = referent(self.definitions, schema) {
            node.definitions.extend(referred(schema).map(str::to_owned));
            self.add(node, referent, depth);
        }
        for keyword in ["additionalProperties", "unevaluatedProperties"] {
            let extra = schema.get(keyword);
            node.open |= extra.is_some_and(|extra| extra != &Value::Bool(false));
        }
        node.open |= schema.as_bool() == Some(true);
        let properties = schema.get("properties").and_then(Value::as_object);
        for (name, schema) in properties.into_iter().flatten() {
            let place = self.node(schema);
            node.properties.push((name.clone(), place));
        }
        for part in parts(schema, "allOf") {
            self.add(node, part, depth);
        }
        for union in ["oneOf", "anyOf"] {
            let branches: Vec<_> = parts(schema, union).collect();
            node.values = node.values.take().or(reserved::values(&branches));
            let tags = reserved::tags(&branches);
            for branch in branches {
                let place = self.node(branch);
                if let Some(node) = self.nodes.get_mut(place) {
                    node.open |= allows_anything(branch);
                }
                let other_than = reserved::fallback(branch, &tags);
                node.tags.0.extend_from_slice(&other_than);
                node.branches.push(Branch {
                    constants: constants(branch),
                    other_than,
                    node: place,
                });
            }
        }
    }

    fn items(&mut self, found: &mut Vec<usize>, schema: &'a Value, depth: usize) {
        let Some(depth) = depth.checked_sub(1) else {
            return;
        };
        if let Some(items) = schema.get("items") {
            found.push(self.node(items));
        }
        let referent = referent(self.definitions, schema);
        let unions = ["allOf", "oneOf", "anyOf"];
        let parts = unions.iter().flat_map(|union| parts(schema, union));
        for part in referent.into_iter().chain(parts) {
            self.items(found, part, depth);
        }
    }
}

/// Whether a branch of a union says nothing of the value: it is there for any JSON.
fn allows_anything(branch: &Value) -> bool {
    let keywords = branch.as_object().into_iter().flat_map(Map::keys);
    let mut keywords = keywords.filter(|name| !name.starts_with("x-"));
    branch.is_object() && keywords.all(|name| name == "title" || name == "description")
}

/// The members of which a branch says what they are.
fn constants(branch: &Value) -> Vec<(String, Value)> {
    let properties = branch.get("properties").and_then(Value::as_object);
    let properties = properties.into_iter().flatten();
    let constants =
        properties.filter_map(|(name, schema)| Some((name.clone(), schema.get("const")?.clone())));
    constants.collect()
}

/// The name of the definition that a schema refers to.
pub(crate) fn referred(schema: &Value) -> Option<&str> {
    schema.get("$ref")?.as_str()?.strip_prefix("#/$defs/")
}

/// The definition that a schema refers to.
pub(crate) fn referent<'a>(definitions: &'a Value, schema: &Value) -> Option<&'a Value> {
    definitions.get(referred(schema)?)
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

    fn found(name: &str, value: &Value) -> Vec<String> {
        let document = acp_schema::Document::v1().unwrap();
        let members = Members::of(&document.value()["$defs"]);
        pointers(members.unknown_fields(name, value))
    }

    fn pointers(found: Vec<UnknownField<'_>>) -> Vec<String> {
        found.into_iter().map(|field| field.pointer).collect()
    }

    #[test]
    fn members_of_a_union_are_those_of_its_branch() {
        let chunk = json!({"sessionId": "s", "update": {
            "sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "x"},
        }});
        assert!(found("SessionNotification", &chunk).is_empty());
        let mut other = chunk.clone();
        other["update"]["content"]["mimeType"] = json!("text/plain");
        let place = "/update/content/mimeType";
        assert_eq!(found("SessionNotification", &other), [place]);
        let mut other = chunk;
        other["update"]["toolCallId"] = json!("t");
        let place = "/update/toolCallId";
        assert_eq!(found("SessionNotification", &other), [place]);
    }

    #[test]
    fn elements_of_arrays_count() {
        let response = json!({"sessionId": "s", "configOptions": [
            {"id": "m", "name": "M", "type": "select", "currentValue": "a",
             "options": [{"value": "a", "name": "A", "icon": "x"}]},
        ]});
        let place = "/configOptions/0/options/0/icon";
        assert_eq!(found("NewSessionResponse", &response), [place]);
    }

    #[test]
    fn all_unknown_members_are_found_up_to_a_limit() {
        let mut response = json!({"sessionId": "s", "a": 1, "b": {}});
        assert_eq!(found("NewSessionResponse", &response), ["/a", "/b"]);
        for number in 0..2 * MOST {
            response[number.to_string()] = json!(1);
        }
        assert_eq!(found("NewSessionResponse", &response).len(), MOST);
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
        assert!(found("NewSessionResponse", &grouped(group.clone())).is_empty());
        let mut odd = group;
        odd["options"][0]["icon"] = json!("x");
        let place = "/configOptions/0/options/0/options/0/icon";
        assert_eq!(found("NewSessionResponse", &grouped(odd)), [place]);
    }

    #[test]
    fn what_one_of_several_branches_knows_is_known() {
        let branch = |known: &str| json!({"properties": {"x": {"properties": {known: {}}}}});
        let members = Members::of(&json!({"A": {"anyOf": [branch("a"), branch("b")]}}));
        for known in ["a", "b"] {
            let value = json!({"x": {known: 1}});
            assert!(members.unknown_fields("A", &value).is_empty());
        }
        let value = json!({"x": {"c/d": 1}});
        assert_eq!(pointers(members.unknown_fields("A", &value)), ["/x/c~1d"]);
    }

    #[test]
    fn a_branch_for_any_json_knows_all_members() {
        let document = acp_schema::Document::v2().unwrap();
        let members = Members::of(&document.value()["$defs"]);
        let error = json!({"code": -32603, "message": "m", "data": {"kind": "unknown"}});
        assert!(members.unknown_fields("Error", &error).is_empty());
        let update = json!({"sessionId": "s", "update": {
            "sessionUpdate": "state_update", "state": "idle", "stopReason": "error", "error": error,
        }});
        let name = "UpdateSessionNotification";
        assert!(members.unknown_fields(name, &update).is_empty());
        let mut other = update;
        other["update"]["error"]["kind"] = json!("unknown");
        let found = pointers(members.unknown_fields(name, &other));
        assert_eq!(found, ["/update/error/kind"]);
    }

    #[test]
    fn what_is_open_stays_open() {
        let call = json!({"sessionId": "s", "_meta": {"a": {"b": 1}}, "update": {
            "sessionUpdate": "tool_call", "toolCallId": "t", "title": "T",
            "rawInput": {"any": {"thing": 1}}, "_meta": {"x": 1},
        }});
        assert!(found("SessionNotification", &call).is_empty());
        let form = json!({"sessionId": "s", "mode": "form", "message": "m", "requestedSchema": {
            "type": "object", "properties": {"a": {"type": "string", "title": "A"}},
        }});
        assert!(found("CreateElicitationRequest", &form).is_empty());
    }
}
