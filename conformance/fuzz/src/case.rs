//! A message to send, and what a conforming agent may make of it.

use std::path::PathBuf;

use acp_conformance::wire::{Message, Party, Schema, Verdict, excerpt, read_envelope};
use acp_schema::{Document, Kind, Side};
use serde_json::{Value, json};

use super::random::Random;
use super::sample::Sampler;

/// How often a sample is drawn again when the schema refuses it.
const TRIES: usize = 20;

/// What a message asks of the agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Demand {
    /// It is valid: it must succeed.
    Accept,
    /// Its params are not valid: it succeeds nevertheless, or it is refused with
    /// "invalid params".
    RefuseParams,
    /// It is no request, or valid but for its meaning: nothing is demanded but that
    /// the connection continues.
    Survive,
}

/// A message and its demand.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Case {
    pub(super) message: Value,
    pub(super) demand: Demand,
    /// What was done to a valid message, for reports.
    pub(super) done: String,
}

/// What cases are made for: values that have a meaning to this agent.
#[derive(Clone, Debug)]
pub(super) struct Setting {
    pub(super) folder: PathBuf,
    pub(super) session: String,
    /// A prompt that is answered with text.
    pub(super) prompt: String,
    /// The mode that the session is in, if it has modes.
    pub(super) mode: Option<String>,
    /// Whether sessions can be listed.
    pub(super) lists: bool,
}

/// Yields cases.
#[derive(Debug)]
pub(super) struct Cases {
    pub(super) document: Document,
    pub(super) random: Random,
    pub(super) next: u64,
}

impl Cases {
    /// The next case.
    pub(super) fn draw(&mut self, schema: &Schema, setting: &Setting) -> Case {
        let message = self.valid(schema, setting);
        let valid = Case {
            demand: demand(schema, &message, true),
            message,
            done: "a valid message".into(),
        };
        if self.random.percent(35) {
            return valid;
        }
        let mut message = valid.message.clone();
        let done = self.mutate(&mut message);
        Case {
            demand: demand(schema, &message, false),
            message,
            done,
        }
    }

    fn valid(&mut self, schema: &Schema, setting: &Setting) -> Value {
        let mut methods = vec!["session/new", "session/prompt", "session/cancel"];
        methods.extend(setting.lists.then_some("session/list"));
        methods.extend(setting.mode.as_ref().map(|_| "session/set_mode"));
        let method = self.random.pick(&methods).copied().unwrap_or_default();
        let found = schema.protocol().method(Side::AGENT, method);
        let definition = found.map_or("", |found| found.kind.params());
        let is_request = found.is_some_and(|found| matches!(found.kind, Kind::Request { .. }));
        let mut params = json!({});
        for _ in 0..TRIES {
            let mut sampler = Sampler {
                document: &self.document,
                random: &mut self.random,
            };
            let mut sample = sampler.definition(definition);
            setting.settle(&mut sample);
            params = sample;
            if schema.params(Party::Client, method, &params) == Verdict::Valid {
                break;
            }
        }
        let mut message = json!({"jsonrpc": "2.0", "method": method, "params": params});
        if is_request {
            message["id"] = self.id();
        }
        message
    }

    /// An id that no other request has.
    fn id(&mut self) -> Value {
        self.next += 1;
        let next = self.next;
        match self.random.below(4) {
            0 => json!(-i64::try_from(next).unwrap_or(0)),
            1 => json!(format!("fuzz \"{next}\" 🦀")),
            2 => json!(9_000_000_000_000_u64 + next),
            _ => json!(1_000_000 + next),
        }
    }

    /// Changes one thing; says what.
    fn mutate(&mut self, message: &mut Value) -> String {
        if self.random.percent(20) {
            return self.mutate_envelope(message);
        }
        let mut places = Vec::new();
        collect(
            message.get("params").unwrap_or(&Value::Null),
            "/params",
            &mut places,
        );
        let place = self.random.pick(&places).cloned().unwrap_or_default();
        if self.random.percent(40) && remove(message, &place) {
            return format!("without {place}");
        }
        let mut sampler = Sampler {
            document: &self.document,
            random: &mut self.random,
        };
        let other = sampler.anything(2);
        let done = format!("{place} is {}", excerpt(&other));
        if let Some(value) = message.pointer_mut(&place) {
            *value = other;
        }
        done
    }

    fn mutate_envelope(&mut self, message: &mut Value) -> String {
        let changes = [
            ("jsonrpc", json!("1.0")),
            ("jsonrpc", json!(2.0)),
            ("jsonrpc", Value::Null),
            ("method", json!(7)),
            ("method", json!("")),
            ("method", json!("session/dance")),
            ("params", json!([])),
            ("params", json!("text")),
            ("params", Value::Null),
            ("id", json!({})),
            ("id", json!(1.5)),
            ("id", json!([true])),
        ];
        let Some((name, value)) = self.random.pick(&changes).cloned() else {
            return String::new();
        };
        let done = format!("/{name} is {value}");
        message[name] = value;
        done
    }
}

/// Whether the envelope of a message is wrong.
pub(super) fn is_odd(message: &Value) -> bool {
    let (read, defects) = read_envelope(message);
    read.is_none() || !defects.is_empty()
}

/// What a message demands; a generated one that the schema accepts is `whole`, a
/// changed one may mean nothing to the agent all the same.
pub(super) fn demand(schema: &Schema, message: &Value, whole: bool) -> Demand {
    let (read, defects) = read_envelope(message);
    let Some(Message::Request { method, params, .. }) = read else {
        return Demand::Survive;
    };
    if !defects.is_empty() {
        return Demand::Survive;
    }
    let empty = json!({});
    let params = params.filter(|params| !params.is_null()).unwrap_or(&empty);
    match schema.params(Party::Client, method, params) {
        Verdict::Valid if whole => Demand::Accept,
        Verdict::Valid | Verdict::Unknown => Demand::Survive,
        Verdict::Invalid(_) => Demand::RefuseParams,
    }
}

impl Setting {
    /// Gives members that have a meaning values that the agent can do something with,
    /// and keeps it from starting or reaching anything.
    fn settle(&self, params: &mut Value) {
        let Some(members) = params.as_object_mut() else {
            return;
        };
        for name in ["additionalDirectories", "cursor"] {
            members.remove(name);
        }
        for (name, value) in members.iter_mut() {
            match name.as_str() {
                "sessionId" => *value = json!(self.session),
                "cwd" => *value = json!(self.folder),
                "mcpServers" => *value = json!([]),
                "modeId" => *value = json!(self.mode),
                "prompt" => self.settle_prompt(value),
                _ => {}
            }
        }
    }

    /// Text and links are what every agent takes.
    fn settle_prompt(&self, prompt: &mut Value) {
        let mut blocks = vec![json!({"type": "text", "text": self.prompt})];
        let given = prompt
            .as_array_mut()
            .map(std::mem::take)
            .unwrap_or_default();
        let links = given
            .into_iter()
            .filter(|block| block["type"] == "resource_link");
        blocks.extend(links);
        *prompt = json!(blocks);
    }
}

/// The places of all values within a value.
fn collect(value: &Value, at: &str, places: &mut Vec<String>) {
    places.push(at.to_owned());
    match value {
        Value::Object(members) => {
            for (name, member) in members {
                let name = name.replace('~', "~0").replace('/', "~1");
                collect(member, &format!("{at}/{name}"), places);
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                collect(item, &format!("{at}/{index}"), places);
            }
        }
        _ => {}
    }
}

/// Removes the value at a place; tells whether there was one to remove.
pub(super) fn remove(message: &mut Value, place: &str) -> bool {
    let Some((parent, name)) = place.rsplit_once('/') else {
        return false;
    };
    let name = name.replace("~1", "/").replace("~0", "~");
    match message.pointer_mut(parent) {
        Some(Value::Object(members)) => members.shift_remove(&name).is_some(),
        Some(Value::Array(items)) => match name.parse::<usize>() {
            Ok(index) if index < items.len() => {
                items.remove(index);
                true
            }
            _ => false,
        },
        _ => false,
    }
}

/// Every message that is this one with one thing less.
pub(super) fn smaller(message: &Value) -> Vec<Value> {
    let mut places = Vec::new();
    collect(
        message.get("params").unwrap_or(&Value::Null),
        "/params",
        &mut places,
    );
    let without = |place: &String| {
        let mut message = message.clone();
        remove(&mut message, place).then_some(message)
    };
    places.iter().filter_map(without).collect()
}

#[cfg(test)]
#[path = "case_tests.rs"]
mod tests;
