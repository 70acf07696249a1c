//! The command with which a client is started for a scenario.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use super::played::Played;
use super::scenarios::{Scenario, Start};
#[cfg(unix)]
use super::terminal::Terminal;
use crate::Result;
use crate::harness::{Interruption, Transcripts};
use crate::target::Target;
use crate::wire::Schema;

/// The client, and what the suite needs to play to it.
#[derive(Clone, Debug)]
pub struct ClientEnv {
    /// Its command; `{agent}`, `{agent-line}`, `{agent-script}`, `{cwd}` and `{prompt}` are replaced.
    pub command: Vec<OsString>,
    /// The command that has it declare no terminals, if there is one; for scenarios about what
    /// is not declared.
    pub without_terminals: Option<Vec<OsString>>,
    /// The command that has it ask its user for permission, if it decides by itself; for the scenario
    /// in which a turn is cancelled meanwhile.
    pub asking: Option<Vec<OsString>>,
    /// The command that has it list sessions, if that is not done in every conversation; for the
    /// scenario about pages.
    pub listing: Option<Vec<OsString>>,
    /// The program that acts as the agent: this one.
    pub program: PathBuf,
    /// What is said to the agent.
    pub prompt: String,
    /// The protocol.
    pub schema: Arc<Schema>,
    /// How long a scenario may take.
    pub timeout: Duration,
    /// What ends the run before its time.
    pub interruption: Interruption,
    /// Where the traffic of each scenario goes, if it is kept.
    pub transcripts: Option<Arc<Transcripts>>,
}

impl ClientEnv {
    /// The command as a shell would take it.
    pub(super) fn command_line(&self) -> String {
        Target::command(self.command.clone()).command_line()
    }

    /// Plays a scenario. Returns none if the run is interrupted before its end.
    pub(super) fn unless_interrupted(
        &self,
        play: impl FnOnce() -> Result<Played>,
    ) -> Result<Option<Played>> {
        if self.interruption.is_interrupted() {
            return Ok(None);
        }
        let played = play()?;
        Ok(Some(played).filter(|_| !self.interruption.is_interrupted()))
    }

    /// Keeps the traffic of a scenario that began at this time, if traffic is kept.
    pub(super) fn keep(&self, scenario: &str, began: SystemTime, played: &mut Played) {
        played.recording.began = Some(began);
        let transcripts = self.transcripts.as_ref();
        played.transcript = transcripts.and_then(|it| it.write(scenario, &played.recording, 0));
    }
}

/// What a client needs besides its command, until it has ended.
#[derive(Debug, Default)]
pub(super) struct Seat {
    #[cfg(unix)]
    terminal: Option<Terminal>,
}

impl Seat {
    /// What the client wrote to its terminal last, if it has one.
    pub(super) fn shown(&self) -> Option<String> {
        #[cfg(unix)]
        return self.terminal.as_ref().map(Terminal::shown);
        #[cfg(not(unix))]
        None
    }
}

/// The client's command for a scenario, and what it needs until it has ended.
///
/// # Errors
/// When the script that starts the agent cannot be written.
pub(super) fn command(
    env: &ClientEnv,
    scenario: &Scenario,
    record: &Path,
    cwd: &Path,
) -> std::io::Result<(Vec<OsString>, Seat)> {
    let agent = [
        env.program.clone().into_os_string(),
        "act".into(),
        scenario.name.into(),
        record.as_os_str().to_owned(),
    ];
    let line = Target::command(agent.to_vec()).command_line();
    let instead = match scenario.start {
        Start::Prompt => &None,
        Start::WithoutTerminals => &env.without_terminals,
        Start::Asking => &env.asking,
        Start::Listing => &env.listing,
    };
    let words_of_client = instead.as_ref().unwrap_or(&env.command);
    let names = |name: &str| {
        let mut words = words_of_client.iter();
        words.any(|word| word.to_str().is_some_and(|word| word.contains(name)))
    };
    let script = record.with_file_name("agent.sh");
    if names(SCRIPT) {
        write_script(&script, &line)?;
    }
    let mut words = Vec::new();
    for word in words_of_client {
        match word.to_str() {
            // On its own it is as many words as the agent's command has.
            Some("{agent}") => words.extend(agent.iter().cloned()),
            Some(text) => {
                let text = text.replace("{agent}", &line).replace(LINE, &line);
                let text = text.replace(SCRIPT, &script.to_string_lossy());
                let text = text.replace("{cwd}", &cwd.to_string_lossy());
                words.push(text.replace("{prompt}", &env.prompt).into());
            }
            None => words.push(word.clone()),
        }
    }
    let seat = seat(env, scenario, &mut words);
    Ok((words, seat))
}

/// Stands for the agent's command as one word, and for the path of a script that starts the agent.
const LINE: &str = "{agent-line}";
const SCRIPT: &str = "{agent-script}";

/// Writes an executable script that starts the agent.
fn write_script(path: &Path, line: &str) -> std::io::Result<()> {
    std::fs::write(path, format!("#!/bin/sh\nexec {line}\n"))?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755))?;
    }
    Ok(())
}

/// Has the client of a scenario about questions started on a terminal. On a system without, it can
/// ask nobody.
#[cfg(unix)]
fn seat(env: &ClientEnv, scenario: &Scenario, words: &mut Vec<OsString>) -> Seat {
    if scenario.start != Start::Asking {
        return Seat::default();
    }
    let Ok(terminal) = Terminal::open() else {
        return Seat::default();
    };
    // A path is meant from here, not from where the client runs.
    if let Some(program) = words.first_mut()
        && Path::new(&program).components().nth(1).is_some()
        && let Ok(path) = std::path::absolute(&program)
    {
        *program = path.into();
    }
    *words = terminal.wrap(&env.program, std::mem::take(words));
    let terminal = Some(terminal);
    Seat { terminal }
}

#[cfg(not(unix))]
fn seat(_: &ClientEnv, _: &Scenario, _: &mut Vec<OsString>) -> Seat {
    Seat::default()
}
