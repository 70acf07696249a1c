//! What becomes of the messages that an edit is about.

use std::collections::BTreeMap;

use acp_sdk::ErrorCode;
use serde::Deserialize;
use serde_json::{Value, json};

use super::matcher::{Kind, On};
use super::pointer::Pointer;
use crate::target::{Passing, Rewriter, Tap, Until};
use crate::wire::Party;

/// The edits of a mutant. Each is made on the messages that its `on` describes as they were
/// written; what they change adds up.
#[derive(Debug)]
pub struct Edits {
    /// The side that they break.
    side: Party,
    edits: Vec<Edit>,
}

/// One edit.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Edit {
    on: On,
    /// Puts these values at these places, whose parents exist.
    #[serde(default)]
    set: BTreeMap<Pointer, Value>,
    /// Puts these values in the stead of what stands at these places.
    #[serde(default)]
    replace: BTreeMap<Pointer, Value>,
    /// Takes away what stands at this place.
    remove: Option<Pointer>,
    /// Adds elements to the arrays at these places.
    #[serde(default)]
    push: BTreeMap<Pointer, Value>,
    /// Adds a copy of the element at this place to its array.
    repeat: Option<Pointer>,
    /// Keeps only the first element of the array at this place.
    truncate: Option<Pointer>,
    /// Sends something before the message.
    before: Option<Insert>,
    /// Sends something after the message.
    then: Option<Insert>,
    /// Answers the request with this result in the stead of its receiver, or replaces the answer.
    result: Option<Value>,
    /// The same with an error of this code.
    refuse: Option<i32>,
    /// Drops the message.
    #[serde(default)]
    drop: bool,
    /// Sends the message once more, after what `then` sends.
    #[serde(default)]
    duplicate: bool,
    /// Sends the messages of an array one by one.
    #[serde(default)]
    split: bool,
    /// Holds the message back: until the next `"message"` of its side has passed, or until the
    /// `"answer"` to a request of `before` comes.
    hold: Option<Until>,
}

/// Something that a mutant sends of its own accord: exactly one of these. In values, the text
/// `"{params}"` stands for the params of the message or of the request that it answers, and
/// `"{params/a/b}"` for what stands there; `"{result/a/b}"` for a part of its result.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Insert {
    /// A `session/update` in the session of the message.
    update: Option<Value>,
    /// A notification with this method and `params`.
    notification: Option<String>,
    /// A request with this method and `params`.
    request: Option<String>,
    params: Option<Value>,
    /// An error with this code and the id null.
    error: Option<i64>,
    /// A line that need not be a message.
    line: Option<String>,
}

impl Edits {
    /// Checks the edits of a mutant of this side.
    ///
    /// # Errors
    ///
    /// When one of them can never be made.
    pub(super) fn new(side: Party, edits: Vec<Edit>) -> Result<Self, String> {
        edits.iter().try_for_each(Edit::check)?;
        Ok(Self { side, edits })
    }

    /// Returns how many there are.
    #[must_use]
    pub fn count(&self) -> usize {
        self.edits.len()
    }
}

impl Rewriter for Edits {
    fn concerns(&self, passing: &Passing) -> bool {
        self.edits.iter().any(|edit| edit.on.concerns(passing))
    }

    fn pass(&self, tap: &mut Tap<'_>, passing: &Passing) {
        let mut changed = None;
        let mut made = Vec::new();
        for (index, edit) in self.edits.iter().enumerate() {
            if edit.on.meets(tap, passing, index) {
                let changed = changed.get_or_insert_with(|| passing.clone());
                if edit.change(&mut changed.value) {
                    tap.edited(index);
                    made.push(edit);
                }
            }
        }
        let Some(changed) = changed.filter(|_| !made.is_empty()) else {
            return tap.forward();
        };
        for insert in made.iter().filter_map(|edit| edit.before.as_ref()) {
            insert.send(tap, self.side, passing);
        }
        match made.iter().find(|edit| edit.is_final()) {
            Some(edit) => edit.deliver(tap, &changed),
            None => tap.send(&changed),
        }
        for insert in made.iter().filter_map(|edit| edit.then.as_ref()) {
            insert.send(tap, self.side, passing);
        }
        if made.iter().any(|edit| edit.duplicate) {
            tap.send(&changed);
        }
    }
}

impl Edit {
    fn check(&self) -> Result<(), String> {
        let kind = self.on.kind()?;
        let pointers = [&self.remove, &self.repeat, &self.truncate];
        let values = [&self.set, &self.replace, &self.push];
        let pointers = pointers.into_iter().flatten();
        for pointer in pointers.chain(values.into_iter().flat_map(BTreeMap::keys)) {
            let root = pointer.root();
            let members: &[&str] = match kind {
                Kind::Call => &["jsonrpc", "id", "method", "params"],
                Kind::Answer => &["jsonrpc", "id", "result", "error"],
                Kind::Any => &["jsonrpc", "id", "method", "params", "result", "error"],
            };
            if !members.contains(&root) {
                return Err(format!("the message of the edit has no member `{root}`"));
            }
        }
        for insert in [&self.before, &self.then].into_iter().flatten() {
            insert.check()?;
        }
        let finals = [
            self.result.is_some(),
            self.refuse.is_some(),
            self.drop,
            self.split,
            self.hold.is_some(),
        ];
        let sends = self.before.is_some() || self.then.is_some() || self.duplicate;
        match finals.into_iter().filter(|is| *is).count() {
            0 if !self.changes() && !sends => Err("an edit does nothing".to_owned()),
            0 | 1 => Ok(()),
            _ => Err("an edit delivers its message in several ways".to_owned()),
        }
    }

    fn changes(&self) -> bool {
        let values = [&self.set, &self.replace, &self.push];
        let pointers = [&self.remove, &self.repeat, &self.truncate];
        values.iter().any(|values| !values.is_empty()) || pointers.iter().any(|p| p.is_some())
    }

    /// Changes a message. Returns false if it has none of the places.
    fn change(&self, value: &mut Value) -> bool {
        let mut changed = !self.changes();
        for (pointer, new) in &self.set {
            changed |= pointer.set(value, new.clone());
        }
        for (pointer, new) in &self.replace {
            changed |= pointer.replace(value, new.clone());
        }
        for (pointer, new) in &self.push {
            if let Some(Value::Array(elements)) = pointer.find(value) {
                elements.push(new.clone());
                changed = true;
            }
        }
        if let Some(pointer) = &self.remove {
            changed |= pointer.remove(value);
        }
        if let Some(pointer) = &self.repeat {
            changed |= pointer.repeat(value);
        }
        if let Some(Value::Array(elements)) = self.truncate.as_ref().and_then(|p| p.find(value)) {
            changed |= elements.len() > 1;
            elements.truncate(1);
        }
        changed
    }

    /// Whether the message is delivered otherwise than by being forwarded.
    fn is_final(&self) -> bool {
        let answers = self.result.is_some() || self.refuse.is_some();
        answers || self.drop || self.split || self.hold.is_some()
    }

    fn deliver(&self, tap: &mut Tap<'_>, it: &Passing) {
        if let Some(until) = self.hold {
            return tap.hold(it, until);
        }
        if self.split {
            let line = it.raw.as_deref().unwrap_or_default();
            let messages: Vec<Value> = serde_json::from_slice(line).unwrap_or_default();
            return messages
                .iter()
                .for_each(|message| tap.write_to(it.from.peer(), message));
        }
        let is_call = it.value.get("method").is_some();
        match (&self.result, self.refuse) {
            (Some(result), _) if is_call => tap.reply(it, true, result),
            (Some(result), _) => tap.write_to(it.from.peer(), &replaced(it, "result", result)),
            (None, Some(code)) if is_call => tap.refuse(it, true, ErrorCode::new(code)),
            (None, Some(code)) => {
                let error = json!({"code": code, "message": "the mutant fails"});
                tap.write_to(it.from.peer(), &replaced(it, "error", &error));
            }
            (None, None) => tap.lose(it, true),
        }
    }
}

/// The same answer with something else in it.
fn replaced(it: &Passing, member: &str, value: &Value) -> Value {
    let id = it.value.get("id").cloned().unwrap_or_default();
    json!({"jsonrpc": "2.0", "id": id, member: value})
}

impl Insert {
    fn check(&self) -> Result<(), String> {
        let kinds = [
            self.update.is_some(),
            self.notification.is_some(),
            self.request.is_some(),
            self.error.is_some(),
            self.line.is_some(),
        ];
        let has_method = self.notification.is_some() || self.request.is_some();
        match kinds.into_iter().filter(|is| *is).count() {
            1 if has_method || self.params.is_none() => Ok(()),
            1 => Err("`params` without a method".to_owned()),
            _ => Err("expected one of update, notification, request, error, line".to_owned()),
        }
    }

    /// Sends it as this side.
    fn send(&self, tap: &mut Tap<'_>, side: Party, it: &Passing) {
        let params = self.params.as_ref().map(|params| filled(params, it));
        if let Some(update) = &self.update {
            let session = it.params.get("sessionId");
            let session = session.or_else(|| it.value.pointer("/result/sessionId"));
            let params = json!({"sessionId": session, "update": filled(update, it)});
            let update = json!({"jsonrpc": "2.0", "method": "session/update", "params": params});
            tap.write_to(side.peer(), &update);
        } else if let Some(method) = &self.notification {
            let mut message = json!({"jsonrpc": "2.0", "method": method});
            if let Some(params) = params {
                message["params"] = params;
            }
            tap.write_to(side.peer(), &message);
        } else if let Some(method) = &self.request {
            tap.ask(side.peer(), method, &params.unwrap_or_default());
        } else if let Some(code) = self.error {
            let error = json!({"code": code, "message": "the mutant does not like this"});
            tap.write_to(
                side.peer(),
                &json!({"jsonrpc": "2.0", "id": null, "error": error}),
            );
        } else if let Some(line) = &self.line {
            match side {
                Party::Agent => tap.raw(line.clone()),
                Party::Client => tap.raw_to_agent(format!("{line}\n")),
            }
        }
    }
}

/// A value with the parts of a message that it names.
fn filled(value: &Value, it: &Passing) -> Value {
    match value {
        Value::String(text) => part(text, it).cloned().unwrap_or_else(|| value.clone()),
        Value::Array(elements) => elements.iter().map(|value| filled(value, it)).collect(),
        Value::Object(members) => {
            let members = members.iter();
            members
                .map(|(name, value)| (name.clone(), filled(value, it)))
                .collect()
        }
        other => other.clone(),
    }
}

fn part<'a>(text: &str, it: &'a Passing) -> Option<&'a Value> {
    let path = text.strip_prefix('{')?.strip_suffix('}')?;
    match path.strip_prefix("params") {
        Some(pointer) => it.params.pointer(pointer),
        None => it
            .value
            .get("result")?
            .pointer(path.strip_prefix("result")?),
    }
}
