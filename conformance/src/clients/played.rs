//! A scenario that was played: what the checks of clients look at.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use super::scripted_agent::CLOSED;
use crate::harness::{Outcome, Recorder, Recording};
use crate::wire::{FindingKind, Party, Schema, Version};
use crate::workdir::Folder;

/// A check of a client and the id of the requirement that it is of.
pub(super) type ClientCheck = (&'static str, fn(&Played) -> Outcome);

/// A scenario that was played.
#[derive(Clone, Debug)]
pub struct Played {
    /// The version of the protocol.
    pub version: Version,
    /// The record, as the agent of the scenario wrote it.
    pub record: String,
    /// What was said.
    pub recording: Recording,
    /// Its file in the folder of the transcripts, if it is kept.
    pub transcript: Option<String>,
    /// Whether the client closed the agent's input, or killed the agent.
    pub closed: bool,
    /// How the client ended: its exit code, if it has one; `None` when it had to be
    /// killed.
    pub exit: Option<Option<i32>>,
    /// The last lines of its standard error.
    pub stderr: String,
    /// The working directory.
    pub folder: PathBuf,
    /// Whether the client launched the agent at all.
    pub launched: bool,
    /// What was sent over the remote transport.
    #[cfg(all(unix, feature = "remote"))]
    pub remote: super::remote::log::Log,
    /// Removes the working directory when the checks, which look into it, are done.
    kept: Option<Arc<Folder>>,
}

impl Played {
    /// What a record says, and how the client ended.
    #[must_use]
    pub fn new(
        schema: &Arc<Schema>,
        record: String,
        exit: Option<Option<i32>>,
        stderr: String,
        folder: PathBuf,
    ) -> Self {
        let (recording, closed) = read(schema, &record);
        Self {
            version: schema.version(),
            record,
            recording,
            transcript: None,
            closed,
            exit,
            stderr,
            folder,
            launched: true,
            #[cfg(all(unix, feature = "remote"))]
            remote: super::remote::log::Log::default(),
            kept: None,
        }
    }

    /// What these messages say of a client of version 1 that failed.
    #[cfg(test)]
    pub(super) fn of(messages: impl IntoIterator<Item = (&'static str, Value)>) -> Self {
        let lines = messages.into_iter().map(|(from, mut value)| {
            value["jsonrpc"] = "2.0".into();
            serde_json::json!({"from": from, "at": 0, "value": value}).to_string() + "\n"
        });
        #[allow(clippy::unwrap_used, reason = "tests")]
        let schema = Schema::v1().unwrap();
        Self::new(
            &schema,
            lines.collect(),
            Some(Some(1)),
            String::new(),
            PathBuf::new(),
        )
    }

    /// Keeps the working directory as long as this.
    pub(super) fn keep(&mut self, folder: Folder) {
        self.kept = Some(Arc::new(folder));
    }

    /// What the client said last on its standard error, for the end of a sentence.
    #[must_use]
    pub fn stderr_tail(&self) -> String {
        let mut words = String::new();
        if let Some(line) = self.stderr.lines().last() {
            words += &format!("; it says: {line}");
        }
        words
    }
}

/// Reads a record back; whether the client closed the agent's input.
fn read(schema: &Arc<Schema>, record: &str) -> (Recording, bool) {
    let mut recorder = Recorder::new(schema.clone());
    let mut closed = false;
    for line in record.lines() {
        let Ok(line) = serde_json::from_str::<Value>(line) else {
            continue;
        };
        closed |= line.get("mark").and_then(Value::as_str) == Some(CLOSED);
        let from = match line.get("from").and_then(Value::as_str) {
            Some("client") => Party::Client,
            Some("agent") => Party::Agent,
            _ => continue,
        };
        let at = line.get("at").and_then(Value::as_u64).unwrap_or_default();
        let at = Duration::from_millis(at);
        match (line.get("value"), line.get("raw").and_then(Value::as_str)) {
            (Some(value), _) => {
                recorder.message(from, value.clone(), at);
            }
            (None, Some(raw)) => {
                recorder.noise(
                    from,
                    raw.to_owned(),
                    FindingKind::NotJson,
                    "it is not JSON",
                    at,
                );
            }
            (None, None) => {}
        }
    }
    (recorder.recording, closed)
}
