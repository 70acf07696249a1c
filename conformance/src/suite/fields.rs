//! Which members of the protocol's objects a run has seen.
//!
//! A member is counted where the schema declares it, by the definition that it belongs
//! to, and apart for each party: some objects both of them send. `_meta`, which nearly
//! every object may have, and members that are `null` do not count.

use std::collections::{BTreeMap, BTreeSet};

use acp_schema::{Kind, Protocol, Side};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::harness::{Entry, Recording};
use crate::wire::{self, Party, fits, parts, referent, referred};

/// How deep schemas are followed; the protocol's are not half as deep.
const DEPTH: usize = 64;

/// A member of an object, and how often a party sent it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FieldUse {
    /// Who may send it.
    pub by: Party,
    /// The definition that declares it.
    pub of: String,
    /// Its name.
    pub field: String,
    /// How often it was sent.
    pub times: usize,
}

/// Who calls the methods of a side.
pub(super) fn callers(side: Side) -> &'static [Party] {
    match side {
        Side::AGENT => &[Party::Client],
        Side::CLIENT => &[Party::Agent],
        _ => &[Party::Client, Party::Agent],
    }
}

/// A member, by its definition and its name.
type Field = (String, String);

/// Every member that the protocol's messages can have, and how often these have them.
pub(super) fn fields(
    definitions: &Value,
    protocol: &Protocol,
    recordings: &[Recording],
) -> Vec<FieldUse> {
    let mut uses: BTreeMap<(Party, Field), usize> = BTreeMap::new();
    for method in protocol.methods() {
        for caller in callers(method.side) {
            let (params, result) = match &method.kind {
                Kind::Request { params, result } => (params, Some(result)),
                Kind::Notification { params } => (params, None),
            };
            let mut roots = vec![(*caller, params)];
            roots.extend(result.map(|result| (caller.peer(), result)));
            for (sender, name) in roots {
                let mut known = Known::default();
                known.definition(definitions, name);
                let fields = known.fields.into_iter();
                uses.extend(fields.map(|field| ((sender, field), 0)));
            }
        }
    }
    let entries = recordings.iter().flat_map(|recording| &recording.entries);
    for entry in entries {
        if let Some((name, value)) = body(protocol, entry) {
            let mut seen = |field: Field| {
                if let Some(times) = uses.get_mut(&(entry.from, field)) {
                    *times += 1;
                }
            };
            let schema = definitions.get(name).unwrap_or(&Value::Null);
            visit(definitions, schema, name, value, &mut seen, DEPTH);
        }
    }
    let uses = uses.into_iter();
    uses.map(|((by, (of, field)), times)| FieldUse {
        by,
        of,
        field,
        times,
    })
    .collect()
}

/// What a message says, and the definition of it.
fn body<'a>(protocol: &'a Protocol, entry: &'a Entry) -> Option<(&'a str, &'a Value)> {
    let name = entry.method.as_deref()?;
    let called = |caller: Party| {
        let mut methods = protocol.methods();
        methods.find(|method| method.name == name && callers(method.side).contains(&caller))
    };
    match entry.kind {
        wire::Kind::Request | wire::Kind::Notification => {
            let (Kind::Request { params, .. } | Kind::Notification { params }) =
                &called(entry.from)?.kind;
            Some((params, entry.params()))
        }
        wire::Kind::Result => match &called(entry.from.peer())?.kind {
            Kind::Request { result, .. } => Some((result, entry.value.get("result")?)),
            Kind::Notification { .. } => None,
        },
        _ => None,
    }
}

/// The members that a definition, and all that it refers to, can have.
#[derive(Default)]
struct Known {
    fields: BTreeSet<Field>,
    seen: BTreeSet<String>,
}

impl Known {
    fn definition(&mut self, definitions: &Value, name: &str) {
        if self.seen.insert(name.to_owned())
            && let Some(schema) = definitions.get(name)
        {
            self.schema(definitions, schema, name, DEPTH);
        }
    }

    fn schema(&mut self, definitions: &Value, schema: &Value, name: &str, depth: usize) {
        let Some(depth) = depth.checked_sub(1) else {
            return;
        };
        if let Some(referent) = referred(schema) {
            self.definition(definitions, referent);
        }
        for (key, member) in properties(schema) {
            self.fields.insert((name.to_owned(), key.clone()));
            self.schema(definitions, member, name, depth);
        }
        for keyword in ["allOf", "oneOf", "anyOf"] {
            for part in parts(schema, keyword) {
                self.schema(definitions, part, name, depth);
            }
        }
        if let Some(items) = schema.get("items") {
            self.schema(definitions, items, name, depth);
        }
    }
}

/// Tells `seen` of every member of a value that the schema declares.
fn visit(
    definitions: &Value,
    schema: &Value,
    name: &str,
    value: &Value,
    seen: &mut dyn FnMut(Field),
    depth: usize,
) {
    let Some(depth) = depth.checked_sub(1) else {
        return;
    };
    if let (Some(of), Some(referent)) = (referred(schema), referent(definitions, schema)) {
        visit(definitions, referent, of, value, seen, depth);
    }
    if let Some(members) = value.as_object() {
        for (key, member) in properties(schema) {
            if let Some(value) = members.get(key).filter(|value| !value.is_null()) {
                seen((name.to_owned(), key.clone()));
                visit(definitions, member, name, value, seen, depth);
            }
        }
        for branch in branches(schema, members) {
            visit(definitions, branch, name, value, seen, depth);
        }
    } else {
        for branch in ["oneOf", "anyOf"]
            .iter()
            .flat_map(|union| parts(schema, union))
        {
            visit(definitions, branch, name, value, seen, depth);
        }
    }
    for part in parts(schema, "allOf") {
        visit(definitions, part, name, value, seen, depth);
    }
    if let (Some(items), Some(elements)) = (schema.get("items"), value.as_array()) {
        for element in elements {
            visit(definitions, items, name, element, seen, depth);
        }
    }
}

/// The branches of a union that an object may be: those whose tag it has, and only if
/// there is none, those without a tag.
fn branches<'a>(schema: &'a Value, members: &Map<String, Value>) -> Vec<&'a Value> {
    let unions = ["oneOf", "anyOf"].iter();
    let all = unions.flat_map(|union| parts(schema, union));
    let fitting: Vec<_> = all.filter(|branch| fits(branch, members)).collect();
    let tagged =
        |branch: &&&Value| properties(branch).any(|(_, member)| member.get("const").is_some());
    let with_tag: Vec<_> = fitting.iter().filter(tagged).copied().collect();
    if with_tag.is_empty() {
        fitting
    } else {
        with_tag
    }
}

fn properties(schema: &Value) -> impl Iterator<Item = (&String, &Value)> {
    let properties = schema.get("properties").and_then(Value::as_object);
    properties
        .into_iter()
        .flatten()
        .filter(|(key, _)| *key != "_meta")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use acp_schema::Document;
    use serde_json::json;

    use super::*;
    use crate::harness::Recorder;
    use crate::wire::Schema;

    fn of(messages: &[(Party, Value)]) -> Vec<FieldUse> {
        let schema = Schema::v1().unwrap();
        let mut recorder = Recorder::new(schema.clone());
        for (from, message) in messages {
            recorder.message(*from, message.clone(), Duration::ZERO);
        }
        let document = Document::v1().unwrap();
        fields(
            &document.value()["$defs"],
            schema.protocol(),
            &[recorder.recording],
        )
    }

    fn times(uses: &[FieldUse], by: Party, of: &str, field: &str) -> Option<usize> {
        let mut uses = uses.iter();
        let found = uses.find(|row| row.by == by && row.of == of && row.field == field);
        found.map(|row| row.times)
    }

    #[test]
    fn members_are_counted_by_definition_and_sender() {
        let chunk = json!({"jsonrpc": "2.0", "method": "session/update", "params": {
            "sessionId": "s", "_meta": {"x": 1}, "update": {
                "sessionUpdate": "agent_message_chunk", "messageId": null,
                "content": {"type": "text", "text": "x", "unknown": 1},
        }}});
        let prompt = json!({"jsonrpc": "2.0", "id": 1, "method": "session/prompt", "params": {
            "sessionId": "s", "prompt": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}],
        }});
        let answer = json!({"jsonrpc": "2.0", "id": 1, "result": {"stopReason": "end_turn"}});
        let uses = of(&[
            (Party::Client, prompt),
            (Party::Agent, chunk),
            (Party::Agent, answer),
        ]);
        let agent = |of: &str, field: &str| times(&uses, Party::Agent, of, field);
        assert_eq!(agent("ContentChunk", "content"), Some(1));
        assert_eq!(agent("ContentChunk", "messageId"), Some(0));
        assert_eq!(agent("TextContent", "text"), Some(1));
        assert_eq!(agent("TextContent", "unknown"), None);
        assert_eq!(agent("PromptResponse", "stopReason"), Some(1));
        assert_eq!(
            agent("PromptRequest", "prompt"),
            None,
            "agents do not prompt"
        );
        assert_eq!(agent("ToolCall", "title"), Some(0));
        assert_eq!(times(&uses, Party::Client, "TextContent", "text"), Some(2));
        assert!(uses.iter().all(|row| row.field != "_meta"));
    }

    #[test]
    fn a_branch_with_its_tag_is_not_the_one_without() {
        let new = |servers: Value| {
            json!({"jsonrpc": "2.0", "id": 1, "method": "session/new",
            "params": {"cwd": "/", "mcpServers": servers}})
        };
        let http = json!([{"type": "http", "name": "n", "url": "u", "headers": []}]);
        let uses = of(&[(Party::Client, new(http))]);
        assert_eq!(times(&uses, Party::Client, "McpServerHttp", "url"), Some(1));
        assert_eq!(
            times(&uses, Party::Client, "McpServerStdio", "name"),
            Some(0)
        );
        let stdio = json!([{"name": "n", "command": "c", "args": [], "env": []}]);
        let uses = of(&[(Party::Client, new(stdio))]);
        assert_eq!(
            times(&uses, Party::Client, "McpServerStdio", "name"),
            Some(1)
        );
    }
}
