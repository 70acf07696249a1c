//! What of the protocol a run has exercised.
//!
//! The lists come from the schema: a method or a kind that a new revision adds is
//! shown as not exercised until something exercises it.

use std::borrow::Cow;

use acp_schema::{Kind, Side};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::fields::{FieldUse, callers, fields};
use crate::Result;
use crate::harness::Recording;
use crate::requirements::{agent_blocks, agent_tool_content, client_blocks};
use crate::wire::{Party, Schema};

/// What was exercised, and how often.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Coverage {
    /// The protocol's methods.
    pub methods: Vec<MethodUse>,
    /// Unions whose kinds are worth counting.
    pub unions: Vec<UnionUse>,
    /// Members of the protocol's objects.
    #[serde(default)]
    pub fields: Vec<FieldUse>,
}

/// A method.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MethodUse {
    /// Who handles it: `agent`, `client` or `protocol`.
    pub side: Cow<'static, str>,
    /// Its name.
    pub method: String,
    /// How often it was called.
    pub calls: usize,
    /// How often it was answered with a result; calls, for a notification.
    pub succeeded: usize,
}

/// The kinds of a tagged union.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnionUse {
    /// The definition's name.
    pub name: Cow<'static, str>,
    /// Its kinds.
    pub kinds: Vec<KindUse>,
}

/// A kind of a union.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KindUse {
    /// The tag.
    pub kind: String,
    /// How often the agent sent it.
    pub by_agent: usize,
    /// How often the client sent it.
    pub by_client: usize,
}

/// Values of a union that stand in a connection's messages.
type Values = fn(&Recording) -> Vec<&Value>;

/// The unions that are counted, and where their values stand.
const UNIONS: [(&str, Values, Values); 3] = [
    ("SessionUpdate", updates, nothing),
    ("ContentBlock", agent_blocks, client_blocks),
    ("ToolCallContent", agent_tool_content, nothing),
];

impl Coverage {
    /// What these recordings exercise.
    ///
    /// # Errors
    /// Never for the document as shipped.
    pub fn of(schema: &Schema, recordings: &[Recording]) -> Result<Self> {
        let document = schema.version().document()?;
        let methods = schema.protocol().methods().map(|method| {
            let callers = callers(method.side);
            let request = matches!(method.kind, Kind::Request { .. });
            let (calls, succeeded) = uses(recordings, callers, &method.name, request);
            MethodUse {
                side: side(method.side).into(),
                method: method.name.clone(),
                calls,
                succeeded,
            }
        });
        let unions = UNIONS.iter().map(|(name, by_agent, by_client)| {
            let definition = document.def(name).unwrap_or(&Value::Null);
            let tag = tag(definition);
            let count = |values: &Values, kind: &str| {
                let values = recordings.iter().flat_map(values);
                values
                    .filter(|value| value.get(tag).and_then(Value::as_str) == Some(kind))
                    .count()
            };
            let kinds = kinds(definition, tag).map(|kind| KindUse {
                kind: kind.to_owned(),
                by_agent: count(by_agent, kind),
                by_client: count(by_client, kind),
            });
            UnionUse {
                name: (*name).into(),
                kinds: kinds.collect(),
            }
        });
        Ok(Self {
            methods: methods.collect(),
            unions: unions.collect(),
            fields: fields(&document.value()["$defs"], schema.protocol(), recordings),
        })
    }
}

fn side(side: Side) -> &'static str {
    match side {
        Side::AGENT => "agent",
        Side::CLIENT => "client",
        Side::BOTH => "both",
        _ => "protocol",
    }
}

fn uses(
    recordings: &[Recording],
    callers: &[Party],
    method: &str,
    request: bool,
) -> (usize, usize) {
    let (mut calls, mut succeeded) = (0, 0);
    for recording in recordings {
        for caller in callers {
            for (index, _) in recording.calls(*caller, method) {
                calls += 1;
                succeeded += usize::from(!request || recording.result(index).is_some());
            }
        }
    }
    (calls, succeeded)
}

/// The member that tells a union's branches apart: the one that is said to, or that is
/// constant in the first of them.
fn tag(definition: &Value) -> &str {
    let said = definition.pointer("/discriminator/propertyName");
    let said = said.and_then(Value::as_str);
    let first = ["/oneOf/0/properties", "/anyOf/0/properties"]
        .iter()
        .find_map(|pointer| definition.pointer(pointer)?.as_object());
    let constant = || {
        let mut members = first?.iter();
        members.find_map(|(name, schema)| schema.get("const").map(|_| name.as_str()))
    };
    said.or_else(constant).unwrap_or("type")
}

/// The tags of a union's branches.
fn kinds<'a>(definition: &'a Value, tag: &'a str) -> impl Iterator<Item = &'a str> {
    let branches = ["oneOf", "anyOf"]
        .iter()
        .filter_map(|union| definition.get(union));
    let branches = branches.filter_map(Value::as_array).flatten();
    branches.filter_map(move |branch| branch.get("properties")?.get(tag)?.get("const")?.as_str())
}

fn updates(recording: &Recording) -> Vec<&Value> {
    recording.updates().map(|update| update.body).collect()
}

fn nothing(_: &Recording) -> Vec<&Value> {
    Vec::new()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lists_are_the_schemas() {
        let schema = Schema::v1().unwrap();
        let coverage = Coverage::of(&schema, &[]).unwrap();
        assert_eq!(coverage.methods.len(), 25);
        assert!(coverage.methods.iter().all(|method| method.succeeded == 0));
        for union in &coverage.unions {
            assert!(union.kinds.len() >= 3, "{union:?}");
        }
        let updates = &coverage.unions[0].kinds;
        assert!(updates.iter().any(|kind| kind.kind == "plan"));

        let v2 = Schema::of(crate::wire::Version::V2).unwrap();
        for union in Coverage::of(&v2, &[]).unwrap().unions {
            assert!(union.kinds.len() >= 3, "{union:?}");
        }
    }
}
