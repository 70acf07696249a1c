//! A script as a file: read as a whole, so that a mistake in the last step is
//! reported before the first one runs.

use std::collections::BTreeMap;
use std::time::Duration;

use acp_conformance::pattern::Bindings;
use acp_conformance::wire::excerpt;
use serde::Deserialize;
use serde_json::Value;

use super::failure::ScriptError;
use super::wire::Signal;

/// How long a step may wait, unless the file says otherwise.
const PATIENCE: f64 = 5.0;

/// The pause between the pieces of what is split, unless the step says otherwise.
const PAUSE: f64 = 0.002;

/// A script.
#[derive(Clone, Debug)]
pub struct Script {
    pub(super) file: String,
    pub(super) steps: Vec<Step>,
    pub(super) variables: Bindings,
}

/// One step.
#[derive(Clone, Debug)]
pub struct Step {
    /// The line at which it begins.
    pub line: usize,
    /// What it is called in reports.
    pub title: String,
    /// What it does.
    pub action: Action,
    /// How long it may take.
    pub within: Duration,
}

/// What a step does.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Action {
    /// Sends a message, with variables replaced.
    Send(Value, Manner),
    /// Sends bytes that need not be a message.
    Raw(Bytes, Manner),
    /// Waits for a message; others are passed over, unless `next`.
    Expect {
        /// What the message looks like.
        pattern: Value,
        /// Whether the very next line has to match.
        next: bool,
    },
    /// Nothing may come for so long.
    Silence(Duration),
    /// Does nothing for so long.
    Delay(Duration),
    /// Closes what is written to the peer.
    Close,
    /// Waits for the end of the peer's output; what comes before is passed over.
    End,
    /// Waits for the peer's process to exit with this code.
    Exit(u8),
    /// Sends a signal to the peer's process group.
    Kill(Signal),
    /// Exits at once with this code.
    Die(u8),
}

/// Bytes of a `raw` step.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Bytes {
    /// Text, in which variables are replaced.
    Text(String),
    /// Any bytes.
    Hex(Vec<u8>),
}

/// How bytes are sent.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Manner {
    /// How often; `{n}` counts from 0.
    pub repeat: u64,
    /// In pieces of so many bytes, with a pause between them.
    pub split: Option<(usize, Duration)>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    timeout: Option<f64>,
    #[serde(default)]
    variables: BTreeMap<String, Value>,
    #[serde(default)]
    step: Vec<Table>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    note: Option<String>,
    send: Option<Value>,
    raw: Option<String>,
    hex: Option<String>,
    expect: Option<Value>,
    silence: Option<f64>,
    delay: Option<f64>,
    close: Option<bool>,
    end: Option<bool>,
    exit: Option<u8>,
    kill: Option<Signal>,
    die: Option<u8>,
    next: Option<bool>,
    within: Option<f64>,
    repeat: Option<u64>,
    split: Option<usize>,
    pause: Option<f64>,
}

impl Script {
    /// Reads a script; `file` is what it is called in reports.
    ///
    /// # Errors
    /// When the text is not TOML, or a step is not one.
    pub fn parse(file: &str, text: &str) -> Result<Self, ScriptError> {
        let document: Document =
            basic_toml::from_str(text).map_err(|source| ScriptError::Toml {
                file: file.to_owned(),
                source,
            })?;
        let patience = document.timeout.unwrap_or(PATIENCE);
        let lines = text
            .lines()
            .zip(1..)
            .filter(|(line, _)| line.trim_start().starts_with("[[step]]"))
            .map(|(_, number)| number);
        let steps = document
            .step
            .into_iter()
            .zip(lines.chain(std::iter::repeat(0)))
            .enumerate()
            .map(|(index, (table, line))| {
                table
                    .step(line, patience)
                    .map_err(|reason| ScriptError::Step {
                        file: file.to_owned(),
                        line,
                        step: index + 1,
                        reason,
                    })
            })
            .collect::<Result<Vec<_>, _>>()?;
        if steps.is_empty() {
            return Err(ScriptError::Empty(file.to_owned()));
        }
        Ok(Self {
            file: file.to_owned(),
            steps,
            variables: document.variables.into_iter().collect(),
        })
    }

    /// Gives a variable a value, whatever the file says.
    pub fn set(&mut self, name: &str, value: Value) {
        self.variables.insert(name.to_owned(), value);
    }

    /// The steps.
    #[must_use]
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }
}

impl Table {
    fn step(self, line: usize, patience: f64) -> Result<Step, String> {
        let within = seconds("within", self.within.unwrap_or(patience))?;
        let note = self.note.clone();
        let action = self.action()?;
        Ok(Step {
            line,
            title: note.unwrap_or_else(|| action.title()),
            action,
            within,
        })
    }

    fn action(self) -> Result<Action, String> {
        let manner = self.manner()?;
        let plain = self.repeat.is_none() && self.split.is_none() && self.pause.is_none();
        let waits = self.within.is_some();
        let flag = |name: &str, value: Option<bool>, action: Action| match value {
            Some(false) => Err(format!("`{name} = false` does nothing; leave it out")),
            value => Ok(value.map(|_| action)),
        };
        let expect = self
            .expect
            .map(|pattern| json(pattern, "expect"))
            .transpose()?;
        let next = self.next.unwrap_or(false);
        let given = [
            self.send
                .map(|message| json(message, "send"))
                .transpose()?
                .map(|message| Action::Send(message, manner)),
            self.raw.map(|text| Action::Raw(Bytes::Text(text), manner)),
            self.hex
                .map(|text| bytes(&text))
                .transpose()?
                .map(|bytes| Action::Raw(Bytes::Hex(bytes), manner)),
            expect.map(|pattern| Action::Expect { pattern, next }),
            self.silence
                .map(|value| seconds("silence", value).map(Action::Silence))
                .transpose()?,
            self.delay
                .map(|value| seconds("delay", value).map(Action::Delay))
                .transpose()?,
            flag("close", self.close, Action::Close)?,
            flag("end", self.end, Action::End)?,
            self.exit.map(Action::Exit),
            self.kill.map(Action::Kill),
            self.die.map(Action::Die),
        ];
        let mut given = given.into_iter().flatten();
        let action = given.next().ok_or(
            "does nothing; it needs one of send, raw, hex, expect, silence, delay, close, end, exit, kill, die",
        )?;
        if let Some(second) = given.next() {
            return Err(format!(
                "does two things, {} and {}; make it two steps",
                action.name(),
                second.name()
            ));
        }
        let sends = matches!(action, Action::Send(..) | Action::Raw(..));
        if !sends && !plain {
            return Err("`repeat`, `split` and `pause` go with send, raw and hex".into());
        }
        if self.next.is_some() && !matches!(action, Action::Expect { .. }) {
            return Err("`next` goes with expect".into());
        }
        let instant = matches!(
            action,
            Action::Silence(_)
                | Action::Delay(_)
                | Action::Close
                | Action::Kill(_)
                | Action::Die(_)
        );
        if waits && instant {
            return Err(format!("`within` has no meaning for {}", action.name()));
        }
        Ok(action)
    }

    fn manner(&self) -> Result<Manner, String> {
        let pause = seconds("pause", self.pause.unwrap_or(PAUSE))?;
        if self.split == Some(0) {
            return Err("`split` is the size of a piece, at least 1".into());
        }
        if self.pause.is_some() && self.split.is_none() {
            return Err("`pause` goes with `split`".into());
        }
        Ok(Manner {
            repeat: self.repeat.unwrap_or(1),
            split: self.split.map(|size| (size, pause)),
        })
    }
}

impl Action {
    fn name(&self) -> &'static str {
        match self {
            Self::Send(..) => "send",
            Self::Raw(Bytes::Text(_), _) => "raw",
            Self::Raw(Bytes::Hex(_), _) => "hex",
            Self::Expect { .. } => "expect",
            Self::Silence(_) => "silence",
            Self::Delay(_) => "delay",
            Self::Close => "close",
            Self::End => "end",
            Self::Exit(_) => "exit",
            Self::Kill(_) => "kill",
            Self::Die(_) => "die",
        }
    }

    fn title(&self) -> String {
        let name = self.name();
        match self {
            Self::Send(message, _) => format!("{name} {}", excerpt(message)),
            Self::Expect { pattern, .. } => format!("{name} {}", excerpt(pattern)),
            Self::Silence(time) | Self::Delay(time) => format!("{name} of {time:?}"),
            Self::Exit(code) | Self::Die(code) => format!("{name} {code}"),
            _ => name.to_owned(),
        }
    }
}

/// A message or pattern: a table, to which `jsonrpc` is added, or JSON as text,
/// which is left as it is.
fn json(value: Value, name: &str) -> Result<Value, String> {
    match value {
        Value::String(text) => {
            serde_json::from_str(&text).map_err(|error| format!("`{name}` is not JSON: {error}"))
        }
        Value::Object(members) if name == "send" && !members.contains_key("jsonrpc") => {
            let version = [("jsonrpc".to_owned(), Value::from("2.0"))];
            Ok(Value::Object(version.into_iter().chain(members).collect()))
        }
        Value::Object(_) => Ok(value),
        _ => Err(format!("`{name}` is a table, or JSON in a string")),
    }
}

fn bytes(text: &str) -> Result<Vec<u8>, String> {
    let digits: Vec<char> = text.chars().filter(|c| !c.is_whitespace()).collect();
    let byte = |pair: &[char]| {
        let [high, low] = pair else { return None };
        let value = high.to_digit(16)? * 16 + low.to_digit(16)?;
        u8::try_from(value).ok()
    };
    digits
        .chunks(2)
        .map(byte)
        .collect::<Option<_>>()
        .ok_or_else(|| "`hex` is pairs of hexadecimal digits".to_owned())
}

fn seconds(name: &str, value: f64) -> Result<Duration, String> {
    Duration::try_from_secs_f64(value)
        .map_err(|_| format!("`{name}` is a number of seconds, 0 or more"))
}

#[cfg(test)]
#[path = "file_tests.rs"]
mod tests;
