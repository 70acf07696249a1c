//! Which messages an edit is about.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Value, json};

use crate::target::{Passing, Tap};
use crate::wire::Party;

/// What must hold of a message, all of it.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct On {
    /// A request or notification of the client with this method.
    client: Option<String>,
    /// A request or notification of the agent with this method.
    agent: Option<String>,
    /// The answer to a request with this method.
    answer: Option<String>,
    /// The same, unless it is an error.
    result: Option<String>,
    /// A `session/update` of this kind.
    update: Option<String>,
    /// Its writer.
    from: Option<Party>,
    /// The line, which is no JSON object, without white space at its ends.
    line: Option<Pattern>,
    /// By JSON Pointer, what stands in its params, or in those of the request that it answers.
    #[serde(default)]
    params: BTreeMap<String, Pattern>,
    /// By JSON Pointer, what stands in the message.
    #[serde(default)]
    message: BTreeMap<String, Pattern>,
    /// By JSON Pointer, what stands in the params of the connection's `initialize`.
    #[serde(default)]
    initialize: BTreeMap<String, Pattern>,
    /// The text of the prompt that it is or answers.
    prompt: Option<Pattern>,
    /// Its number among the messages of the connection of which all else holds, from 1.
    nth: Option<u64>,
    /// At least so many turns run, together with the one that it asks for.
    turns: Option<usize>,
    /// The same in its session.
    session_turns: Option<usize>,
    /// No turn runs in its session.
    #[serde(default)]
    idle: bool,
    /// It comes after a message like this.
    after: Option<Box<On>>,
    /// It does not come after a message like this, unless one like `after` came since.
    until: Option<Box<On>>,
    /// The message of `after` has the same value at this JSON Pointer of its params.
    same: Option<String>,
}

/// What a value must be: a TOML value that it equals, or a table of conditions.
#[derive(Debug, Deserialize)]
#[serde(try_from = "Value")]
enum Pattern {
    Is(Value),
    Has(Box<Conditions>),
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Conditions {
    /// It equals this; for tables, which would be conditions otherwise.
    is: Option<Value>,
    /// It is something else.
    not: Option<Value>,
    /// The text begins with this.
    starts: Option<String>,
    /// The text ends with this.
    ends: Option<String>,
    /// The text contains this.
    contains: Option<String>,
    /// The text does not contain this.
    lacks: Option<String>,
    /// It is there, and not null.
    present: Option<bool>,
    /// It is of this type.
    r#type: Option<Type>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Type {
    Null,
    Boolean,
    Number,
    String,
    Array,
    Object,
}

/// What a message can have that an edit is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A request or notification.
    Call,
    /// A result or error.
    Answer,
    /// Either of them.
    Any,
}

impl On {
    /// Returns what kind of message it is about.
    ///
    /// # Errors
    ///
    /// When no message can be meant.
    pub(super) fn kind(&self) -> Result<Kind, String> {
        let calls = [&self.client, &self.agent, &self.update];
        let answers = [&self.answer, &self.result];
        let given = |names: &[&Option<String>]| names.iter().filter(|name| name.is_some()).count();
        let pointers = [&self.params, &self.message, &self.initialize];
        let pointers = pointers.iter().flat_map(|place| place.keys());
        let mut pointers = pointers.chain(&self.same);
        if let Some(bad) = pointers.find(|name| !name.is_empty() && !name.starts_with('/')) {
            return Err(format!("the pointer `{bad}` does not begin with `/`"));
        }
        if self.same.is_some() && self.after.is_none() {
            return Err("`same` needs `after`".to_owned());
        }
        for earlier in [&self.after, &self.until].into_iter().flatten() {
            earlier.kind()?;
            if earlier.after.is_some() || earlier.until.is_some() || earlier.nth.is_some() {
                return Err("`after`, `until` and `nth` cannot stand in `after`".to_owned());
            }
        }
        match (given(&calls), given(&answers)) {
            (1, 0) => Ok(Kind::Call),
            (0, 1) => Ok(Kind::Answer),
            (0, 0) if self.from.is_some() || self.after.is_some() || !self.message.is_empty() => {
                Ok(Kind::Any)
            }
            (0, 0) => Err("`on` names no message".to_owned()),
            _ => Err("`on` names several kinds of messages".to_owned()),
        }
    }

    /// Returns whether a message is meant by the edit of this index, and remembers what later ones
    /// need.
    pub(super) fn meets(&self, tap: &mut Tap<'_>, it: &Passing, index: usize) -> bool {
        let mut holds = self.describes(tap, it) && self.follows(tap, it, index);
        if holds && let Some(nth) = self.nth {
            let count = tap.kept(&format!("edit {index}: count"));
            *count = json!(count.as_u64().unwrap_or_default() + 1);
            holds = *count == nth;
        }
        self.remember(tap, it, index);
        holds
    }

    /// Returns whether the kind, writer and method of a message fit, whatever came before it.
    pub(super) fn concerns(&self, it: &Passing) -> bool {
        let is =
            |name: &Option<String>, holds: &dyn Fn(&str) -> bool| name.as_deref().is_none_or(holds);
        let answers = |method: &str| {
            it.method == method && it.value.get("method").is_none() && it.raw.is_none()
        };
        is(&self.client, &|method| it.calls(Party::Client, method))
            && is(&self.agent, &|method| it.calls(Party::Agent, method))
            && is(&self.update, &|kind| it.updates(kind))
            && is(&self.answer, &answers)
            && is(&self.result, &|method| {
                answers(method) && it.value.get("result").is_some()
            })
            && self.from.is_none_or(|from| it.from == from)
    }

    fn describes(&self, tap: &mut Tap<'_>, it: &Passing) -> bool {
        let all = |patterns: &BTreeMap<String, Pattern>, value: &Value| {
            let mut patterns = patterns.iter();
            patterns.all(|(pointer, pattern)| pattern.fits(value.pointer(pointer)))
        };
        self.concerns(it)
            && self.line.as_ref().is_none_or(|line| fits_line(line, it))
            && all(&self.params, &it.params)
            && all(&self.message, &it.value)
            && (self.initialize.is_empty() || all(&self.initialize, tap.kept("initialize")))
            && (self.prompt.as_ref())
                .is_none_or(|prompt| prompt.fits(it.params.pointer("/prompt/0/text")))
            && self.turns.is_none_or(|turns| tap.turns("") >= turns)
            && self
                .session_turns
                .is_none_or(|turns| tap.turns(it.at("/sessionId")) >= turns)
            && (!self.idle || tap.turns(it.at("/sessionId")) == 0)
    }

    /// Whether what came before it is as it should be.
    fn follows(&self, tap: &mut Tap<'_>, it: &Passing, index: usize) -> bool {
        if self.after.is_none() && self.until.is_none() {
            return true;
        }
        let state = tap.kept(&state(index));
        match (&self.after, &self.same) {
            (None, _) => state.is_null(),
            (Some(_), None) => *state == true,
            (Some(_), Some(same)) => {
                let value = it.params.pointer(same);
                value.is_some_and(|value| state.get(value.to_string()).is_some())
            }
        }
    }

    fn remember(&self, tap: &mut Tap<'_>, it: &Passing, index: usize) {
        let began = self
            .after
            .as_ref()
            .is_some_and(|after| after.describes(tap, it));
        let ended = self
            .until
            .as_ref()
            .is_some_and(|until| until.describes(tap, it));
        if !began && !ended {
            return;
        }
        let state = tap.kept(&state(index));
        match &self.same {
            None => *state = json!(began),
            Some(same) => {
                let value = it.params.pointer(same).map(Value::to_string);
                let Some(value) = value else { return };
                if began {
                    state[value] = json!(true);
                } else if let Some(values) = state.as_object_mut() {
                    values.remove(&value);
                }
            }
        }
    }
}

fn state(index: usize) -> String {
    format!("edit {index}: state")
}

fn fits_line(pattern: &Pattern, it: &Passing) -> bool {
    it.raw.as_deref().is_some_and(|raw| {
        let text = String::from_utf8_lossy(raw);
        pattern.fits(Some(&json!(text.trim())))
    })
}

impl TryFrom<Value> for Pattern {
    type Error = String;

    fn try_from(value: Value) -> Result<Self, String> {
        if !value.is_object() {
            return Ok(Self::Is(value));
        }
        let conditions = serde_json::from_value(value).map_err(|error| error.to_string())?;
        Ok(Self::Has(Box::new(conditions)))
    }
}

impl Pattern {
    fn fits(&self, value: Option<&Value>) -> bool {
        match self {
            Self::Is(expected) => value == Some(expected),
            Self::Has(conditions) => conditions.hold_of(value),
        }
    }
}

impl Conditions {
    fn hold_of(&self, value: Option<&Value>) -> bool {
        let text = value.and_then(Value::as_str);
        let has = |part: &Option<String>, holds: &dyn Fn(&str, &str) -> bool| {
            let part = part.as_deref();
            part.is_none_or(|part| text.is_some_and(|text| holds(text, part)))
        };
        self.is
            .as_ref()
            .is_none_or(|expected| value == Some(expected))
            && self
                .not
                .as_ref()
                .is_none_or(|other| value.is_some_and(|value| value != other))
            && has(&self.starts, &|text, part| text.starts_with(part))
            && has(&self.ends, &|text, part| text.ends_with(part))
            && has(&self.contains, &|text, part| text.contains(part))
            && has(&self.lacks, &|text, part| !text.contains(part))
            && self
                .present
                .is_none_or(|present| present == value.is_some_and(|value| !value.is_null()))
            && self
                .r#type
                .is_none_or(|expected| value.map(Type::of) == Some(expected))
    }
}

impl Type {
    fn of(value: &Value) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Bool(_) => Self::Boolean,
            Value::Number(_) => Self::Number,
            Value::String(_) => Self::String,
            Value::Array(_) => Self::Array,
            Value::Object(_) => Self::Object,
        }
    }
}
