//! Plays the scenarios to a client, and judges what it said.

use std::ffi::OsString;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

use super::control_channel::{self, Marks};
use super::launch::{self, ClientEnv};
use super::played::Played;
use super::table::{self, ClientRequirement, scenarios};
use crate::harness::{INTERRUPTED, LOOK};
use crate::requirements::Choice;
use crate::suite::{Messages, Verdict};
use crate::target::{Event, Link, Target};
use crate::wire::{Judged, Party, Version};
use crate::workdir::Workdir;
use crate::{Error, Result};

/// The result of a run against a client.
#[derive(Clone, Debug)]
pub struct Report {
    /// The client's command.
    pub command: String,
    /// The client's name and version, as it reports them.
    pub client: String,
    /// In the order of the table.
    pub rows: Vec<(&'static ClientRequirement, Verdict)>,
    /// Files of the scenarios that were kept, in the folder of the transcripts.
    pub transcripts: Vec<(&'static str, String)>,
    /// How much was said, by the agent that the suite played and by the client.
    pub messages: Messages,
    /// The version of the protocol.
    pub protocol: Version,
    /// How long it took.
    pub took: Duration,
    /// Whether it was interrupted.
    pub interrupted: bool,
}

impl Report {
    /// Counts the messages of a scenario, and learns the client's name.
    fn add(&mut self, played: &Played) {
        for entry in &played.recording.entries {
            match entry.from {
                Party::Agent => self.messages.agent += 1,
                Party::Client => {
                    self.messages.client += 1;
                    self.messages.invalid += usize::from(entry.judged == Judged::Invalid);
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

/// Plays every scenario that one of the chosen requirements needs.
///
/// # Errors
/// When the client cannot be started or does not start the agent, or no requirement is called what
/// the choice says.
pub fn run(env: &ClientEnv, choice: &Choice, progress: impl FnMut(usize, usize)) -> Result<Report> {
    let command = env.command_line();
    let version = env.schema.version();
    run_scenes(
        version,
        command,
        choice,
        |scenario| env.unless_interrupted(|| play(env, scenario)),
        progress,
    )
}

/// As [`run`], with whatever plays a scenario.
pub(super) fn run_scenes(
    version: Version,
    command: String,
    choice: &Choice,
    play: impl Fn(&str) -> Result<Option<Played>>,
    progress: impl FnMut(usize, usize),
) -> Result<Report> {
    let rows: Vec<_> = table::of(version).collect();
    let names: Vec<_> = scenarios(version)
        .iter()
        .map(|scenario| scenario.name)
        .collect();
    run_rows(version, &rows, &names, command, choice, play, progress)
}

/// As [`run_scenes`], with whatever rows and scenarios.
pub(super) fn run_rows(
    version: Version,
    rows: &[&'static ClientRequirement],
    names: &[&'static str],
    command: String,
    choice: &Choice,
    play: impl Fn(&str) -> Result<Option<Played>>,
    mut progress: impl FnMut(usize, usize),
) -> Result<Report> {
    let started = Instant::now();
    let rows = choice.of(rows.iter().copied(), |row| (row.id, row.scenario, row.tier))?;
    let needed = |name: &str| rows.iter().any(|row| row.scenario == name);
    let scenarios: Vec<_> = names.iter().filter(|name| needed(name)).collect();
    let mut report = Report {
        command,
        client: "a client without a name".to_owned(),
        rows: Vec::new(),
        transcripts: Vec::new(),
        messages: Messages::default(),
        protocol: version,
        took: Duration::ZERO,
        interrupted: false,
    };
    let mut judged = 0;
    for (done, &&scenario) in scenarios.iter().enumerate() {
        let Some(played) = play(scenario)? else {
            break;
        };
        if !played.launched {
            return Err(Error::NotLaunched {
                command: report.command,
                says: played.stderr.lines().last().unwrap_or("nothing").to_owned(),
            });
        }
        progress(done + 1, scenarios.len());
        report.add(&played);
        let transcript = played.transcript.clone();
        report
            .transcripts
            .extend(transcript.map(|file| (scenario, file)));
        for row in rows.iter().filter(|row| row.scenario == scenario) {
            let verdict = Verdict::from(row.check(&played));
            report.rows.push((*row, verdict));
        }
        judged = done + 1;
    }
    report.interrupted = judged < scenarios.len();
    for &&scenario in scenarios.iter().skip(judged) {
        let left = rows.iter().filter(|row| row.scenario == scenario);
        let verdict = || Verdict::Inconclusive(INTERRUPTED.to_owned());
        report.rows.extend(left.map(|row| (*row, verdict())));
    }
    let place = |row: &ClientRequirement| rows.iter().position(|other| other.id == row.id);
    report.rows.sort_by_key(|(row, _)| place(row));
    report.took = started.elapsed();
    Ok(report)
}

/// Returns a client as it is started: one that outlives its scenario is killed.
pub(super) fn target(words: Vec<OsString>, cwd: &Path) -> Target {
    let target = Target::command(words).current_dir(cwd);
    target.grace(Duration::ZERO)
}

/// Plays one scenario.
///
/// # Errors
/// When the client cannot be started.
pub fn play(env: &ClientEnv, scenario: &str) -> Result<Played> {
    let began = SystemTime::now();
    let (stage, workdir) = (Workdir::new()?, Workdir::new()?);
    let cwd = workdir.path().to_owned();
    let record = stage.path().join("record.jsonl");
    let command = launch::command(env, table::scenario(scenario)?, &record, &cwd);
    let (words, seat) = command.map_err(Error::Folder)?;
    let mut link = target(words, &cwd).start()?;
    let mark = link.marker();
    let marks = Marks::of(&record, move || mark.tell()).map_err(Error::Folder)?;
    // A client that reads its standard input finds it empty.
    link.close();
    let ended = watch(&mut link, env);
    drop(marks);
    let deadline = Instant::now() + Duration::from_millis(500);
    let exit = match ended {
        true => link.exit_code(deadline),
        false => None,
    };
    let stderr = seat.shown().unwrap_or_else(|| link.stderr());
    // Instead of closing its input.
    let was_killed = control_channel::was_killed(&record);
    drop(link);
    // The agent creates the record when it is started.
    let launched = record.exists();
    let record = std::fs::read_to_string(record).unwrap_or_default();
    let mut played = Played::new(&env.schema, record, exit, stderr, cwd);
    played.launched = launched;
    played.closed |= was_killed;
    env.keep(scenario, began, &mut played);
    played.keep(workdir.into_folder());
    Ok(played)
}

/// Reads away the client's output until it ends, and interrupts it when the scenario
/// asks for it. Whether it has ended.
pub(super) fn watch(link: &mut Link, env: &ClientEnv) -> bool {
    let deadline = Instant::now() + env.timeout;
    while !env.interruption.is_interrupted() {
        match link.next(deadline.min(Instant::now() + LOOK)) {
            Some(Event::End) => return true,
            Some(Event::Mark) => link.interrupt(),
            // One that writes without end does not gain time by it.
            _ if Instant::now() >= deadline => return false,
            _ => {}
        }
    }
    false
}
