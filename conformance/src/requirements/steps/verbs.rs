//! The verbs of steps, with the members that each may have.

use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::harness::{Capability, Terminals};

pub(super) const VERBS: [&str; 18] = [
    "each",
    "open",
    "needs",
    "initialized",
    "session",
    "choose",
    "prompt",
    "begin",
    "cancel",
    "asked",
    "ends",
    "call",
    "notify",
    "raw",
    "expect",
    "settle",
    "silent",
    "serves",
];

/// Verbs with other members.
pub(super) const WITH_MEMBERS: [&str; 6] = ["open", "prompt", "begin", "ends", "call", "notify"];

/// One step.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Step {
    /// The steps after it are performed once for each of these values, which `{each}` stands for.
    Each(Vec<Value>),
    /// Takes or opens a connection. Without this step, it is the one that checks share.
    Open(Open),
    /// Skips the row if the agent does not declare this capability.
    Needs(Named),
    /// The result of `initialize` matches this pattern.
    Initialized(Value),
    /// Opens a session; its id becomes the value of the variable of this name.
    Session(String),
    /// Opens a session, `{session}`, that offers something to choose; skips the row if it does not.
    Choose(Choosable),
    /// Sends a prompt and waits for the end of the turn.
    Prompt(Prompt),
    /// Sends a prompt; of the prompt `slow`, waits for the first update as well.
    Begin(Begin),
    /// Sends `session/cancel` for a session.
    Cancel(Value),
    /// Waits until the agent calls this method in the turn that was begun last.
    Asked(String),
    /// Waits for the end of a turn, by its name.
    Ends(Ends),
    /// Sends a request and waits for the answer.
    Call(Call),
    /// Sends a notification.
    Notify(Notify),
    /// Sends a line as it is.
    Raw(Value),
    /// A message that matches this pattern comes for the last line that was sent.
    Expect(Value),
    /// Waits until the agent has read what was sent, or has ended; what comes too late is judged then.
    Settle(True),
    /// Nothing but requests was answered on the connection.
    Silent(True),
    /// A new session opens.
    Serves(True),
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Open {
    pub(super) open: Opening,
    /// Capabilities that the client declares besides all others.
    #[serde(default)]
    pub(super) with: Map<String, Value>,
    /// How commands in the client's terminals behave.
    #[serde(default)]
    pub(super) terminals: Terminals,
}

/// What a connection is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Opening {
    /// The initialized one that checks share.
    Ready,
    /// A new one, initialized.
    Connected,
    /// A new one on which nothing was sent.
    Fresh,
}

/// A capability by its name.
#[derive(Debug, Deserialize)]
#[serde(try_from = "String")]
pub(super) struct Named(pub(super) Capability);

impl TryFrom<String> for Named {
    type Error = String;

    fn try_from(name: String) -> Result<Self, String> {
        name.parse().map(Self)
    }
}

/// What a session may offer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Choosable {
    /// A mode; `{mode}` is the id of another one than the current one, as far as there is one.
    Mode,
    /// A select option; `{option}` are the params that set it to another value, as far as it has one.
    Option,
}

impl Choosable {
    /// Returns the variable with the choice.
    pub(super) fn variable(self) -> &'static str {
        match self {
            Self::Mode => "mode",
            Self::Option => "option",
        }
    }
}

/// The word of a prompt in the profile, or content blocks.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum Content {
    Word(String),
    Blocks(Vec<Value>),
}

/// How a turn ends.
#[derive(Debug, Default)]
pub(super) struct Ending<'a> {
    pub(super) stop: Option<&'a Value>,
    pub(super) not_stop: Option<&'a str>,
    pub(super) error: Option<&'a Errors>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Prompt {
    pub(super) prompt: Content,
    #[serde(rename = "in", default = "session")]
    pub(super) session: Value,
    /// Members of the params besides the session and the prompt.
    #[serde(default)]
    pub(super) with: Map<String, Value>,
    pub(super) stop: Option<Value>,
    not_stop: Option<String>,
    /// Absent: the turn ends without an error.
    error: Option<Errors>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Begin {
    pub(super) begin: Content,
    #[serde(rename = "in", default = "session")]
    pub(super) session: Value,
    /// The name of the turn, if it is not the word of its prompt.
    #[serde(rename = "as")]
    name: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Ends {
    pub(super) ends: String,
    pub(super) stop: Option<Value>,
    not_stop: Option<String>,
    /// Absent: the turn ends in any way; `false`: without an error.
    error: Option<Errors>,
    /// It ends within the time that an answer may take.
    #[serde(default)]
    pub(super) promptly: bool,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Call {
    pub(super) call: String,
    pub(super) id: Option<Value>,
    /// Instead of those that every request of the method has.
    pub(super) params: Option<Value>,
    /// Members besides those of the params.
    #[serde(default)]
    pub(super) with: Map<String, Value>,
    pub(super) result: Option<Value>,
    pub(super) error: Option<Errors>,
    /// Any answer but an error with this code.
    pub(super) not_error: Option<i32>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Notify {
    pub(super) notify: String,
    #[serde(default = "empty")]
    pub(super) params: Value,
}

/// `true`, of a verb that has no value.
#[derive(Debug, Deserialize)]
#[serde(try_from = "bool")]
pub(super) struct True;

impl TryFrom<bool> for True {
    type Error = &'static str;

    fn try_from(value: bool) -> Result<Self, Self::Error> {
        value.then_some(Self).ok_or("expected `true`")
    }
}

/// Which error comes.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum Errors {
    /// Some, or none.
    Is(bool),
    /// One with this code.
    Code(i32),
    /// One with any of these codes.
    Codes(Vec<i32>),
}

fn session() -> Value {
    json!("{session}")
}

fn empty() -> Value {
    json!({})
}

impl Prompt {
    /// Whether nothing but a turn without an error is expected.
    pub(super) fn is_plain(&self) -> bool {
        self.stop.is_none() && self.not_stop.is_none() && self.error.is_none()
    }

    pub(super) fn ending(&self) -> Ending<'_> {
        Ending {
            stop: self.stop.as_ref(),
            not_stop: self.not_stop.as_deref(),
            error: Some(self.error.as_ref().unwrap_or(&Errors::Is(false))),
        }
    }
}

impl Ends {
    pub(super) fn ending(&self) -> Ending<'_> {
        Ending {
            stop: self.stop.as_ref(),
            not_stop: self.not_stop.as_deref(),
            error: self.error.as_ref(),
        }
    }
}

impl Begin {
    /// Returns the name of the turn.
    pub(super) fn name(&self) -> &str {
        let word = match &self.begin {
            Content::Word(word) => word,
            Content::Blocks(_) => "prompt",
        };
        self.name.as_deref().unwrap_or(word)
    }
}

impl Content {
    /// Returns the blocks.
    pub(super) fn value(&self) -> Value {
        match self {
            Self::Word(_) => Value::Null,
            Self::Blocks(blocks) => json!(blocks),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_documentation_has_every_verb() {
        let readme = include_str!("../../../README.md");
        for verb in VERBS {
            let named = format!("`{verb}`");
            let rows = readme.lines().filter(|line| line.starts_with("| `"));
            let mut first = rows.filter_map(|line| line.split(" | ").next());
            assert!(first.any(|cell| cell.contains(&named)), "{verb}");
        }
    }
}
