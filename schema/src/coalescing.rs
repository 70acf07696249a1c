//! The notifications whose texts may be joined, from the keyword `x-coalesce`.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::walk::escaped;
use crate::{Document, Error};

/// References that lead into each other are followed so far.
const DEPTH: usize = 8;

/// A notification that a sender may join with the previous one, by concatenating one text.
///
/// Two notifications may be joined when they are equal except for that text, and have no member
/// that the rule does not name: only named members are known to mean the same for a longer text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CoalescingInfo {
    /// The name on the wire.
    pub method: String,
    /// The members of the params.
    pub params: TextPattern,
}

/// A value of a notification whose text may be joined.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TextPattern {
    /// The text that is joined.
    Text,
    /// One of these strings.
    Tag(Vec<String>),
    /// Any value. The member may be absent.
    Equal,
    /// An object with these members and no others.
    Object(BTreeMap<String, TextPattern>),
}

/// `x-coalesce` as it is written: JSON Pointers into the params.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Keyword {
    /// The text that is joined.
    text: String,
    /// Required members, and their permitted values.
    #[serde(default)]
    tags: BTreeMap<String, Vec<String>>,
    /// Further members.
    #[serde(default)]
    equal: Vec<String>,
}

impl Document {
    /// Returns the rules of the notifications that are marked with `x-coalesce`, with the names of
    /// their definitions, in the order of the document.
    ///
    /// # Errors
    /// When a marked definition is not the params of a notification, or the keyword names a member
    /// or a value that the definition does not have.
    pub fn coalescing(&self) -> Result<Vec<(&str, CoalescingInfo)>, Error> {
        let marked = self
            .defs()
            .filter_map(|(name, schema)| Some((name, schema, schema.get("x-coalesce")?)));
        marked
            .map(|(name, schema, keyword)| {
                let invalid = |message: String| {
                    let at = format!("/$defs/{}/x-coalesce", escaped(name));
                    self.invalid(&at, message)
                };
                let is_notification = !name.ends_with("Request") && !name.ends_with("Response");
                let method = schema.get("x-method").and_then(Value::as_str);
                let Some(method) = method.filter(|_| is_notification) else {
                    let message = "not the params of a notification; mark one with `x-method`";
                    return Err(invalid(message.to_owned()));
                };
                let params = self.pattern(schema, keyword).map_err(invalid)?;
                let method = method.to_owned();
                Ok((name, CoalescingInfo { method, params }))
            })
            .collect()
    }

    fn pattern(&self, schema: &Value, keyword: &Value) -> Result<TextPattern, String> {
        let Keyword { text, tags, equal } =
            serde::Deserialize::deserialize(keyword).map_err(|error| {
                format!("{error}; write `{{\"text\": \"/text\", \"tags\": {{}}, \"equal\": []}}`")
            })?;
        let mut pattern = TextPattern::Object(BTreeMap::new());
        let found = self.members(schema, &text)?;
        if !found.iter().any(|schema| schema["type"] == "string") {
            return Err(format!("`{text}` is not a string"));
        }
        insert(&mut pattern, &text, TextPattern::Text)?;
        for (at, values) in tags {
            let found = self.members(schema, &at)?;
            let is_known = |value: &&String| {
                found.iter().any(|schema| {
                    let listed = schema.get("enum").and_then(Value::as_array);
                    schema.get("const").is_some_and(|one| one == value.as_str())
                        || listed.is_some_and(|all| all.iter().any(|one| one == value.as_str()))
                })
            };
            if let Some(unknown) = values.iter().find(|value| !is_known(value)) {
                return Err(format!("`{unknown}` is not a value of `{at}`"));
            }
            insert(&mut pattern, &at, TextPattern::Tag(values))?;
        }
        for at in equal {
            self.members(schema, &at)?;
            insert(&mut pattern, &at, TextPattern::Equal)?;
        }
        Ok(pattern)
    }

    /// Returns the schemas of the member at a JSON Pointer, of all branches of unions.
    fn members<'a>(&'a self, schema: &'a Value, at: &str) -> Result<Vec<&'a Value>, String> {
        let mut found = Vec::new();
        self.expand(schema, DEPTH, &mut found);
        for name in steps(at)? {
            let mut members = Vec::new();
            for schema in found {
                if let Some(member) = schema.get("properties").and_then(|all| all.get(&name)) {
                    self.expand(member, DEPTH, &mut members);
                }
            }
            found = members;
        }
        match found.is_empty() {
            true => Err(format!("no member at `{at}`; correct the path")),
            false => Ok(found),
        }
    }

    /// Collects the schemas that `schema` is made of, at the same place of a message.
    fn expand<'a>(&'a self, schema: &'a Value, depth: usize, found: &mut Vec<&'a Value>) {
        found.push(schema);
        if depth == 0 {
            return;
        }
        let target = schema.get("$ref").and_then(Value::as_str);
        let target = target.and_then(|target| self.def(target.strip_prefix("#/$defs/")?));
        let branches = ["anyOf", "oneOf", "allOf"]
            .into_iter()
            .filter_map(|keyword| schema.get(keyword)?.as_array())
            .flatten();
        for part in target.into_iter().chain(branches) {
            self.expand(part, depth - 1, found);
        }
    }
}

/// Returns the names in a JSON Pointer.
fn steps(at: &str) -> Result<Vec<String>, String> {
    let Some(names) = at.strip_prefix('/') else {
        return Err(format!("`{at}` is not a path; write `/member/member`"));
    };
    let unescaped = |name: &str| name.replace("~1", "/").replace("~0", "~");
    Ok(names.split('/').map(unescaped).collect())
}

fn insert(pattern: &mut TextPattern, at: &str, value: TextPattern) -> Result<(), String> {
    let twice = || format!("`{at}` is named twice, or lies inside of another path");
    let mut names = steps(at)?;
    let last = names.pop().unwrap_or_default();
    let mut slot = pattern;
    for name in names {
        let TextPattern::Object(members) = slot else {
            return Err(twice());
        };
        let empty = || TextPattern::Object(BTreeMap::new());
        slot = members.entry(name).or_insert_with(empty);
    }
    let TextPattern::Object(members) = slot else {
        return Err(twice());
    };
    match members.insert(last, value) {
        None => Ok(()),
        Some(_) => Err(twice()),
    }
}
