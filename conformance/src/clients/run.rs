//! Plays the scenes to a client, and judges what it said.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::marks::Marks;
use super::scenes::{Scene, scenes};
use super::stage::CLOSED;
use super::table::{self, ClientRequirement};
use crate::harness::{Recorder, Recording};
use crate::requirements::Choice;
use crate::subject::{Event, Link, Subject};
use crate::suite::Verdict;
use crate::wire::{Judged, Party, Rule, Schema, Version};
use crate::workdir::{Folder, Workdir};
use crate::{Error, Result};

/// The client, and what the suite needs to play to it.
#[derive(Clone, Debug)]
pub struct ClientEnv {
    /// Its command; `{agent}`, `{cwd}` and `{prompt}` are replaced.
    pub command: Vec<OsString>,
    /// The command that has it declare no terminals, if there is one; for scenes about what
    /// is not declared.
    pub without_terminals: Option<Vec<OsString>>,
    /// The command that has it list sessions, if that is not done in every conversation; for the
    /// scene about pages.
    pub listing: Option<Vec<OsString>>,
    /// The program that acts as the agent: this one.
    pub program: PathBuf,
    /// What is said to the agent.
    pub prompt: String,
    /// The protocol.
    pub schema: Arc<Schema>,
    /// How long a scene may take.
    pub timeout: Duration,
}

/// What a run against a client came to.
#[derive(Clone, Debug)]
pub struct Report {
    /// The client's command.
    pub command: String,
    /// The client's name and version, as it told them.
    pub client: String,
    /// In the order of the table.
    pub rows: Vec<(&'static ClientRequirement, Verdict)>,
    /// Messages of the agent that the suite played.
    pub from_agent: usize,
    /// Messages of the client.
    pub from_client: usize,
    /// Those of them that the schema or the envelope forbids.
    pub invalid: usize,
    /// The version of the protocol.
    pub protocol: Version,
    /// How long it took.
    pub took: Duration,
}

/// A scene that was played.
#[derive(Clone, Debug)]
pub struct Played {
    /// The record, as the agent of the scene wrote it.
    pub record: String,
    /// What was said.
    pub recording: Recording,
    /// Whether the client closed the agent's input.
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
    pub remote: super::remote::Log,
    /// Removes the working directory when the checks, which look into it, are done.
    kept: Option<Arc<Folder>>,
}

impl ClientEnv {
    /// The command as a shell would take it.
    fn command_line(&self) -> String {
        Subject::command(self.command.clone()).command_line()
    }
}

impl Report {
    /// Counts the messages of a scene, and learns the client's name.
    fn add(&mut self, played: &Played) {
        for entry in &played.recording.entries {
            match entry.from {
                Party::Agent => self.from_agent += 1,
                Party::Client => {
                    self.from_client += 1;
                    self.invalid += usize::from(entry.judged == Judged::Invalid);
                }
            }
        }
        let member = match self.protocol {
            Version::V1 => "clientInfo",
            Version::V2 => "info",
        };
        let mut calls = played.recording.calls(Party::Client, "initialize");
        let info = calls.next().and_then(|(_, call)| call.params().get(member));
        let told = |name: &str| Some(info?.get(name)?.as_str()?.to_owned());
        if let Some(name) = told("name") {
            self.client = match told("version") {
                Some(version) => format!("{name} {version}"),
                None => name,
            };
        }
    }
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
            record,
            recording,
            closed,
            exit,
            stderr,
            folder,
            launched: true,
            #[cfg(all(unix, feature = "remote"))]
            remote: super::remote::Log::default(),
            kept: None,
        }
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

/// Plays every scene that one of the chosen requirements needs.
///
/// # Errors
/// When the client cannot be started or does not start the agent, or no requirement is called what
/// the choice says.
pub fn run(env: &ClientEnv, choice: &Choice, progress: impl FnMut(usize, usize)) -> Result<Report> {
    let command = env.command_line();
    let version = env.schema.version();
    run_scenes(version, command, choice, |scene| play(env, scene), progress)
}

/// As [`run`], with whatever plays a scene.
pub(super) fn run_scenes(
    version: Version,
    command: String,
    choice: &Choice,
    play: impl Fn(&str) -> Result<Played>,
    progress: impl FnMut(usize, usize),
) -> Result<Report> {
    let rows: Vec<_> = table::of(version).collect();
    let names: Vec<_> = scenes(version).iter().map(|scene| scene.name).collect();
    run_rows(version, &rows, &names, command, choice, play, progress)
}

/// As [`run_scenes`], with whatever rows and scenes.
pub(super) fn run_rows(
    version: Version,
    rows: &[&'static ClientRequirement],
    names: &[&'static str],
    command: String,
    choice: &Choice,
    play: impl Fn(&str) -> Result<Played>,
    mut progress: impl FnMut(usize, usize),
) -> Result<Report> {
    let started = Instant::now();
    let rows = choice.of(rows.iter().copied(), |row| (row.id, row.scene, row.tier))?;
    let needed = |name: &str| rows.iter().any(|row| row.scene == name);
    let scenes: Vec<_> = names.iter().filter(|name| needed(name)).collect();
    let mut report = Report {
        command,
        client: "a client without a name".to_owned(),
        rows: Vec::new(),
        from_agent: 0,
        from_client: 0,
        invalid: 0,
        protocol: version,
        took: Duration::ZERO,
    };
    for (done, &&scene) in scenes.iter().enumerate() {
        let played = play(scene)?;
        if !played.launched {
            return Err(Error::NotLaunched {
                command: report.command,
                says: played.stderr.lines().last().unwrap_or("nothing").to_owned(),
            });
        }
        progress(done + 1, scenes.len());
        report.add(&played);
        for row in rows.iter().filter(|row| row.scene == scene) {
            let verdict = Verdict::from((row.check)(&played));
            report.rows.push((*row, verdict));
        }
    }
    let place = |row: &ClientRequirement| rows.iter().position(|other| other.id == row.id);
    report.rows.sort_by_key(|(row, _)| place(row));
    report.took = started.elapsed();
    Ok(report)
}

/// Returns a client as it is started: one that outlives its scene is killed.
pub(super) fn subject(words: Vec<OsString>, cwd: &Path) -> Subject {
    let subject = Subject::command(words).current_dir(cwd);
    subject.grace(Duration::ZERO)
}

/// Plays one scene.
///
/// # Errors
/// When the client cannot be started.
pub fn play(env: &ClientEnv, scene: &str) -> Result<Played> {
    let (stage, workdir) = (Workdir::new()?, Workdir::new()?);
    let cwd = workdir.path().to_owned();
    let record = stage.path().join("record.jsonl");
    let words = command(env, Scene::find(scene)?, &record, &cwd);
    let mut link = subject(words, &cwd).start()?;
    let mark = link.marker();
    let marks = Marks::of(&record, move || mark.tell()).map_err(Error::Folder)?;
    // A client that reads its standard input finds it empty.
    link.close();
    let ended = watch(&mut link, Instant::now() + env.timeout);
    drop(marks);
    let deadline = Instant::now() + Duration::from_millis(500);
    let exit = match ended {
        true => link.exit_code(deadline),
        false => None,
    };
    let stderr = link.stderr();
    drop(link);
    // The agent creates the record when it is started.
    let launched = record.exists();
    let record = std::fs::read_to_string(record).unwrap_or_default();
    let mut played = Played::new(&env.schema, record, exit, stderr, cwd);
    played.launched = launched;
    played.keep(workdir.into_folder());
    Ok(played)
}

/// Reads away the client's output until it ends, and interrupts it when the scene
/// asks for it. Whether it has ended.
pub(super) fn watch(link: &mut Link, deadline: Instant) -> bool {
    loop {
        match link.next(deadline) {
            Some(Event::End) => return true,
            Some(Event::Mark) => link.interrupt(),
            // One that writes without end does not gain time by it.
            Some(_) if Instant::now() > deadline => return false,
            Some(_) => {}
            None => return false,
        }
    }
}

/// The client's command for a scene.
fn command(env: &ClientEnv, scene: &Scene, record: &Path, cwd: &Path) -> Vec<OsString> {
    let agent = [
        env.program.clone().into_os_string(),
        "act".into(),
        scene.name.into(),
        record.as_os_str().to_owned(),
    ];
    let line = Subject::command(agent.to_vec()).command_line();
    let instead = match scene {
        Scene { pages: true, .. } => &env.listing,
        Scene {
            without_terminals: true,
            ..
        } => &env.without_terminals,
        _ => &None,
    };
    let mut words = Vec::new();
    for word in instead.as_ref().unwrap_or(&env.command) {
        match word.to_str() {
            // On its own it is as many words as the agent's command has.
            Some("{agent}") => words.extend(agent.iter().cloned()),
            Some(text) => {
                let text = text.replace("{agent}", &line);
                let text = text.replace("{cwd}", &cwd.to_string_lossy());
                words.push(text.replace("{prompt}", &env.prompt).into());
            }
            None => words.push(word.clone()),
        }
    }
    words
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
                recorder.noise(from, raw.to_owned(), Rule::NotJson, "it is not JSON", at);
            }
            (None, None) => {}
        }
    }
    (recorder.recording, closed)
}
