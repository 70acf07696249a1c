//! `acp-conformance client`: the suite against a client.

use std::ffi::{OsStr, OsString};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::Verdict;
use crate::outputs::{Chosen, Outputs};
use crate::progress::Progress;
use crate::reference_client;
use acp_conformance::clients::{self, ClientEnv};
use acp_conformance::harness::Interruption;
use acp_conformance::report::{Document, Rerun, RunInfo};
use acp_conformance::requirements::Choice;
use acp_conformance::wire::{Schema, Version};
use acp_conformance::{Error, Result};

/// How long a scenario may take, in seconds, unless it is said otherwise.
const TIMEOUT: f64 = 30.0;

/// What the client is to say, unless it is said otherwise.
const PROMPT: &str = "Hello, agent";

/// Run the suite against a client
///
/// The client is a command that launches an agent; the suite gives it one that acts a scenario
/// each time: permission, files, terminals, unknown methods and update kinds, cancellation, death.
/// Without a command, the bundled `acp run` is tested.
///
/// In the command, these are replaced:
///   {agent}         the agent's command: its words where it stands alone, a line of text within a word
///   {agent-line}    the same as one word, for clients that take a command line
///   {agent-script}  a script that starts the agent, for clients that take a path
///   {cwd}           the working directory
///   {prompt}        what the client is to say
///
/// The client is started many times, each time in a folder of the suite, which {cwd} stands for, too. Words that
/// name a file in the current directory are made absolute: `client -- python3 my_client.py ...` works.
///
/// Where a turn is to be cancelled, the client is interrupted as by Ctrl-C.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    /// The client's command; the bundled client by default
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<OsString>,
    /// Play the server instead: the client is given a URL over HTTP or WebSocket, which `{url}` stands
    /// for in its command
    #[arg(long)]
    remote: bool,
    #[command(flatten)]
    chosen: Chosen,
    /// The version of the protocol to test: 1, or 2 for the draft, as far as it is covered
    #[arg(long, value_name = "N", default_value = "1", value_parser = crate::version)]
    protocol: Version,
    /// How long a scenario may take, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = TIMEOUT, value_parser = crate::agent::seconds)]
    timeout: f64,
    /// A word of the command, and what to say instead so that the client declares no
    /// terminals: for the scenario about clients without
    #[arg(long, num_args = 2, value_names = ["WORD", "INSTEAD"], requires = "command", allow_hyphen_values = true)]
    without_terminals: Vec<OsString>,
    /// The command that has the client ask its user for permission, words with spaces between: for the
    /// scenario in which the turn is cancelled while the client asks. The client has a terminal there
    #[arg(long, value_name = "LINE", requires = "command")]
    asking: Option<String>,
    /// The command that has the client list its agent's sessions, words with spaces between: for
    /// the scenario about pages
    #[arg(long, value_name = "LINE", requires = "command")]
    listing: Option<String>,
    /// What the client is to say
    #[arg(long, value_name = "TEXT", default_value = PROMPT)]
    prompt: String,
    #[command(flatten)]
    outputs: Outputs,
}

/// Act a scenario as the agent of a client under test
#[derive(Debug, clap::Args)]
pub(crate) struct ActArgs {
    scenario: String,
    record: PathBuf,
}

/// The word of the bundled client's command that has it offer terminals, and the one that has it
/// offer none.
const TERMINALS: &str = "--terminals=yes";
const NO_TERMINALS: &str = "--terminals=no";

/// The bundled client, as a command of this program.
const CLIENT: &str = "reference-client";

/// How the command of the bundled client begins.
const BUNDLED: [&str; 6] = [CLIENT, "run", APPROVE, TERMINALS, "--cwd", "{cwd}"];

/// How it ends when it starts its agent, and when it connects to one.
const STARTED: [&str; 3] = ["{prompt}", "--", "{agent}"];
const REMOTE: [&str; 3] = ["--url", "{url}", "{prompt}"];

/// What has the bundled client speak version 2.
const V2: [&str; 2] = ["--protocol-version", "2"];

/// The word of the bundled client's command without which it asks its user for permission.
const APPROVE: &str = "--approve-all";

/// How the bundled client lists sessions.
const LISTING: [&str; 3] = [CLIENT, "sessions", "list"];

pub(crate) fn run(args: &Args, out: &mut dyn Write) -> Result<Verdict> {
    #[cfg(unix)]
    crate::orphan_reaper::protect();
    args.outputs.probe()?;
    let known = args.chosen.known()?;
    let program = std::env::current_exe().map_err(Error::starting("acp-conformance"))?;
    let command = if args.command.is_empty() {
        let v2 = V2.into_iter().filter(|_| args.protocol == Version::V2);
        let end = if args.remote { REMOTE } else { STARTED };
        bundled(&program, BUNDLED.into_iter().chain(v2).chain(end))
    } else {
        let command = args.command.iter().enumerate();
        command
            .map(|(place, word)| found(word, place == 0))
            .collect()
    };
    let env = ClientEnv {
        without_terminals: without_terminals(args, &command)?,
        asking: match &args.asking {
            Some(line) => Some(words(line)),
            None if args.command.is_empty() => {
                let asks = command.iter().filter(|word| *word != APPROVE);
                Some(asks.cloned().collect())
            }
            None => None,
        },
        listing: match &args.listing {
            Some(line) => Some(words(line)),
            None if args.command.is_empty() => {
                let v2 = V2.into_iter().filter(|_| args.protocol == Version::V2);
                let words = LISTING.into_iter().chain(v2).chain(["--", "{agent}"]);
                Some(bundled(&program, words))
            }
            None => None,
        },
        command,
        program,
        prompt: args.prompt.clone(),
        schema: Schema::of(args.protocol)?,
        timeout: Duration::from_secs_f64(args.timeout),
        interruption: Interruption::default(),
        transcripts: args.outputs.transcripts()?,
    };
    #[cfg(unix)]
    crate::interruption::watch_signals(&env.interruption);
    let mut progress = Progress::checks();
    let choice = args.chosen.choice();
    let reach = |done, all| progress.reach(done, all);
    let report = match args.remote {
        true => remote(&env, &choice, reach)?,
        false => clients::run(&env, &choice, reach)?,
    };
    drop(progress);
    let rest = again(args);
    let setting = RunInfo {
        strict: args.chosen.strict,
        choice: &choice,
        again: Rerun::Command {
            start: "acp-conformance client",
            rest: &rest,
        },
    };
    let mut report = Document::of_client(&report, &setting);
    report.accept(&known);
    args.outputs.write(report, env.transcripts.as_deref(), out)
}

#[cfg(all(unix, feature = "remote"))]
fn remote(
    env: &ClientEnv,
    choice: &Choice,
    progress: impl FnMut(usize, usize),
) -> Result<clients::Report> {
    clients::remote::run(env, choice, progress)
}

#[cfg(not(all(unix, feature = "remote")))]
fn remote(_: &ClientEnv, _: &Choice, _: impl FnMut(usize, usize)) -> Result<clients::Report> {
    Err(Error::NoRemote)
}

/// The words of a line, which is a command.
fn words(line: &str) -> Vec<OsString> {
    let words = line.split_whitespace().enumerate();
    words
        .map(|(place, word)| found(OsStr::new(word), place == 0))
        .collect()
}

/// Returns a word of a client's command; the path of a file in the current directory is made absolute,
/// for the client starts in another one. A program without a slash is searched for elsewhere.
fn found(word: &OsStr, is_program: bool) -> OsString {
    let path = Path::new(word);
    let is_searched = is_program && path.components().count() < 2;
    match std::path::absolute(path) {
        Ok(absolute) if !is_searched && absolute.is_file() => absolute.into(),
        _ => word.to_owned(),
    }
}

/// A command of this program.
fn bundled(program: &Path, words: impl IntoIterator<Item = &'static str>) -> Vec<OsString> {
    let words = words.into_iter().map(OsString::from);
    std::iter::once(program.into()).chain(words).collect()
}

/// The command that has the client declare no terminals.
fn without_terminals(args: &Args, command: &[OsString]) -> Result<Option<Vec<OsString>>> {
    let bundled = [TERMINALS, NO_TERMINALS].map(OsString::from);
    let [word, instead] = match args.without_terminals.as_slice() {
        [word, instead] => [word, instead],
        _ if args.command.is_empty() => bundled.each_ref(),
        _ => return Ok(None),
    };
    let mut command = command.to_vec();
    match command.iter_mut().find(|own| *own == word) {
        Some(own) => own.clone_from(instead),
        None => return Err(Error::NoWord(word.to_string_lossy().into_owned())),
    }
    Ok(Some(command))
}

/// What follows to run one requirement against the same client in the same way.
fn again(args: &Args) -> String {
    let mut words: Vec<OsString> = args.chosen.verdict_options();
    if args.remote {
        words.push("--remote".into());
    }
    if args.protocol != Version::V1 {
        words.extend(["--protocol".into(), args.protocol.as_str().into()]);
    }
    if args.prompt != PROMPT {
        words.extend(["--prompt".into(), args.prompt.clone().into()]);
    }
    if !args.without_terminals.is_empty() {
        words.push("--without-terminals".into());
        words.extend(args.without_terminals.iter().cloned());
    }
    if let Some(line) = &args.asking {
        words.extend(["--asking".into(), line.into()]);
    }
    if let Some(line) = &args.listing {
        words.extend(["--listing".into(), line.into()]);
    }
    if args.timeout != TIMEOUT {
        words.extend(["--timeout".into(), args.timeout.to_string().into()]);
    }
    crate::outputs::again(words, &args.command)
}

/// Be a client of version 2 without any type of this project
#[derive(Debug, clap::Args)]
pub(crate) struct V2Args {
    /// Ask somebody who never answers for permission, instead of granting it
    #[arg(long)]
    asking: bool,
    prompt: String,
    #[arg(last = true, required = true)]
    command: Vec<OsString>,
}

pub(crate) fn v2_client(args: &V2Args) -> Result<Verdict> {
    reference_client::run(&args.prompt, args.asking, &args.command).map(Verdict::of)
}

/// Start a client on a terminal
#[cfg(unix)]
#[derive(Debug, clap::Args)]
pub(crate) struct TerminalArgs {
    name: PathBuf,
    #[arg(last = true, required = true)]
    command: Vec<OsString>,
}

#[cfg(unix)]
pub(crate) fn on_terminal(args: &TerminalArgs) -> Result<Verdict> {
    clients::on_terminal(&args.name, &args.command)?;
    Ok(Verdict::Conformant)
}

pub(crate) fn act(args: &ActArgs) -> Result<Verdict> {
    clients::act(&args.scenario, &args.record)?;
    Ok(Verdict::Conformant)
}

/// Break the bundled client: pass on what it and its agent say, changed
#[derive(Debug, clap::Args)]
pub(crate) struct BrokenArgs {
    name: String,
    #[arg(last = true, required = true)]
    command: Vec<OsString>,
}

pub(crate) fn broken(args: &BrokenArgs) -> Result<Verdict> {
    clients::filter(&args.name, &args.command)?;
    Ok(Verdict::Conformant)
}
