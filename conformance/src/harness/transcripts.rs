//! A folder of transcripts: what was said on each connection, as files.
//!
//! A file has the format that `acp-conformance check` reads. Secrets are redacted as in the log of
//! the proxy. A file is named by the requirement whose check had the connection; further
//! connections of it are numbered.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use super::{Entry, Recording};
use crate::transcript::{Record, Writer, redact, redact_text};
use crate::wire::Party;
use crate::{Error, Result};

/// A folder that transcripts are written to, by several threads.
#[derive(Debug)]
pub struct Transcripts {
    folder: PathBuf,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// How many files have a name.
    names: BTreeMap<String, usize>,
    /// The first error.
    failed: Option<Error>,
}

impl Transcripts {
    /// Creates the folder, or takes an empty one.
    ///
    /// # Errors
    /// When it cannot be created, or has files: transcripts of another run would stay in it.
    pub fn create(folder: &Path) -> Result<Self> {
        let failed = Error::writing(folder);
        fs::create_dir_all(folder).map_err(failed)?;
        if fs::read_dir(folder).map_err(failed)?.next().is_some() {
            let reason = "the folder for transcripts is not empty; name a new or an empty one";
            return Err(failed(io::Error::new(io::ErrorKind::AlreadyExists, reason)));
        }
        Ok(Self {
            folder: folder.to_owned(),
            state: Mutex::default(),
        })
    }

    /// The folder, as it was named.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns the first error of writing; later ones are not kept.
    ///
    /// # Errors
    /// When a transcript could not be written.
    pub fn finish(&self) -> Result<()> {
        match self.state().failed.take() {
            Some(error) => Err(error),
            None => Ok(()),
        }
    }

    /// Writes what was said from the place `from` on; before that stands the handshake, and that
    /// other messages are not shown. Returns the file's name; `None` when nothing was said, or it
    /// cannot be written.
    pub(crate) fn write(&self, name: &str, recording: &Recording, from: usize) -> Option<String> {
        recording.entries.get(from)?;
        let file = self.next_name(name);
        let path = self.folder.join(&file);
        match write(&path, recording, from) {
            Ok(()) => Some(file),
            Err(source) => {
                let failed = &mut self.state().failed;
                failed.get_or_insert(Error::Write { path, source });
                None
            }
        }
    }

    fn next_name(&self, name: &str) -> String {
        let mut state = self.state();
        let count = state.names.entry(name.to_owned()).or_default();
        *count += 1;
        match *count {
            1 => format!("{name}.jsonl"),
            count => format!("{name}-{count}.jsonl"),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn write(path: &Path, recording: &Recording, from: usize) -> io::Result<()> {
    let mut writer = Writer::new(BufWriter::new(File::create_new(path)?));
    let began = recording.began.unwrap_or(SystemTime::UNIX_EPOCH);
    let began = began.duration_since(SystemTime::UNIX_EPOCH);
    let began = began.unwrap_or_default();
    let at = |time: Duration| (began + time).as_secs_f64();
    let handshake = handshake(recording).min(from);
    for entry in recording.entries.iter().take(handshake) {
        writer.write(at(entry.at), &record(entry), None)?;
    }
    let hidden = recording.entries.get(handshake..from).unwrap_or_default();
    for party in [Party::Client, Party::Agent] {
        let of_party = hidden.iter().filter(|entry| entry.from == party);
        let Some(last) = of_party.clone().next_back() else {
            continue;
        };
        let lost = Record::Lost {
            from: party,
            messages: of_party.count() as u64,
            why: "part of earlier checks on this connection".to_owned(),
            on_purpose: true,
        };
        writer.write(at(last.at), &lost, None)?;
    }
    for entry in recording.entries.iter().skip(from) {
        writer.write(at(entry.at), &record(entry), None)?;
    }
    writer.flush()
}

/// Returns the place after the answer to the first `initialize`.
fn handshake(recording: &Recording) -> usize {
    let mut calls = recording.calls(Party::Client, "initialize");
    let answer = calls.find_map(|(index, _)| recording.answer(index));
    answer.map_or(0, |(index, _)| index + 1)
}

/// Returns a message without its secrets.
fn record(entry: &Entry) -> Record {
    match &entry.raw {
        Some(text) => Record::Raw {
            from: entry.from,
            text: redact_text(text),
            // What the suite writes off the protocol is on purpose.
            why: entry.findings.first().map(|found| found.message.clone()),
        },
        None => {
            let mut value = entry.value.clone();
            redact(&mut value);
            Record::Message(entry.from, value)
        }
    }
}

#[cfg(test)]
mod tests {

    use serde_json::{Value, json};

    use super::*;
    use crate::harness::Recorder;
    use crate::judge::Level;
    use crate::judge::{CheckOptions, check};
    use crate::transcript::parse;
    use crate::wire::{FindingKind, Schema, Schemas};

    const HANDSHAKE: [&str; 2] = [
        r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1}}"#,
        r#"{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":1,"agentCapabilities":{}}}"#,
    ];

    fn recording() -> Recording {
        let mut recorder = Recorder::new(Schema::v1().unwrap());
        let mut say = |from, value: Value| {
            recorder.message(from, value, Duration::from_millis(1500));
        };
        for (from, text) in [Party::Client, Party::Agent].into_iter().zip(HANDSHAKE) {
            say(from, serde_json::from_str(text).unwrap());
        }
        let server = json!({"name": "m", "command": "/m", "args": ["--token=s3cret"], "env": []});
        let params = json!({"cwd": "/", "mcpServers": [server]});
        say(
            Party::Client,
            json!({"jsonrpc": "2.0", "id": 1, "method": "session/new", "params": params}),
        );
        say(
            Party::Agent,
            json!({"jsonrpc": "2.0", "id": 1, "result": {"sessionId": "s"}}),
        );
        let at = Duration::from_secs(2);
        recorder.probe("{\"password\": \"s3cret\", oops".to_owned(), at);
        recorder.noise(
            Party::Agent,
            "Hello!".to_owned(),
            FindingKind::NotJson,
            "it is not JSON",
            at,
        );
        let mut recording = recorder.recording;
        recording.began = Some(SystemTime::UNIX_EPOCH + Duration::from_secs(100));
        recording
    }

    fn lines(folder: &Path, name: &str) -> Vec<Record> {
        let text = fs::read_to_string(folder.join(name)).unwrap();
        assert!(!text.contains("s3cret"), "{text}");
        let lines = text.lines();
        lines.map(|line| parse(line.as_bytes()).unwrap()).collect()
    }

    #[test]
    fn a_connection_becomes_a_file_without_secrets() {
        let folder = tempfile::tempdir().unwrap();
        let transcripts = Transcripts::create(folder.path()).unwrap();
        let name = transcripts.write("a.b", &recording(), 0).unwrap();
        assert_eq!(name, "a.b.jsonl");
        let lines = lines(folder.path(), &name);
        assert_eq!(lines.len(), 6);
        assert!(matches!(&lines[2], Record::Message(Party::Client, _)));
        assert!(matches!(
            &lines[4],
            Record::Raw {
                from: Party::Client,
                why: None,
                ..
            }
        ));
        assert!(matches!(
            &lines[5],
            Record::Raw {
                from: Party::Agent,
                why: Some(_),
                ..
            }
        ));
        let text = fs::read_to_string(folder.path().join(&name)).unwrap();
        assert!(
            text.starts_with(r#"{"dir":"c2a","at":101.500000,"#),
            "{text}"
        );
        assert_eq!(
            transcripts.write("a.b", &recording(), 0).unwrap(),
            "a.b-2.jsonl"
        );
        assert_eq!(transcripts.write("a.b", &recording(), 6), None);
        transcripts.finish().unwrap();
    }

    #[test]
    fn what_other_checks_said_is_left_out_and_held_against_nobody() {
        let folder = tempfile::tempdir().unwrap();
        let transcripts = Transcripts::create(folder.path()).unwrap();
        let mut recording = recording();
        recording.entries.truncate(4);
        // The answer to a request that is left out.
        let name = transcripts.write("a.b", &recording, 3).unwrap();
        let lines = lines(folder.path(), &name);
        assert!(matches!(
            &lines[2],
            Record::Lost {
                from: Party::Client,
                messages: 1,
                ..
            }
        ));
        assert_eq!(lines.len(), 4);
        let mut found = Vec::new();
        let file = File::open(folder.path().join(&name)).unwrap();
        let schemas = Schemas::any().unwrap();
        check(
            file,
            schemas,
            &CheckOptions::default(),
            |finding| found.push(finding),
            |_| {},
        )
        .unwrap();
        assert!(
            found.iter().all(|it| {
                let is_gap = it.finding.rule == FindingKind::Lost;
                it.level < if is_gap { Level::Warning } else { Level::Error }
            }),
            "{found:?}"
        );
    }

    #[test]
    fn a_folder_with_files_is_refused_and_a_failure_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        let transcripts = Transcripts::create(folder.path()).unwrap();
        assert_eq!(transcripts.write("no/folder", &recording(), 0), None);
        let error = transcripts.finish().unwrap_err().to_string();
        assert!(error.contains("no/folder.jsonl"), "{error}");
        fs::write(folder.path().join("old.jsonl"), "").unwrap();
        let error = Transcripts::create(folder.path()).unwrap_err().to_string();
        assert!(error.contains("is not empty"), "{error}");
    }
}
