//! `acp-conformance agent`: the suite against an agent.

use std::ffi::OsString;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crate::outputs::{Chosen, Outputs};
use crate::progress::Progress;
use crate::remote::RemoteArgs;
use crate::{Failure, Verdict};
use acp_conformance::harness::{Conditions, Env, Profile, Unresponsive};
use acp_conformance::internal::Workdir;
use acp_conformance::mutants;
use acp_conformance::report::{Document, Rerun, RunInfo};
use acp_conformance::suite::{self, Effort, Options, QuickLimits};
use acp_conformance::target::Target;
use acp_conformance::wire::{Party, Schema, Version};
use acp_conformance::{Error, Result};
use acp_conformance_fuzz as fuzz;

/// How many agents run at once, unless they take long to start.
const JOBS: u16 = 4;

/// How long an answer may take, in seconds, unless the agent turns out to be slower.
const TIMEOUT: f64 = 5.0;

/// How long a prompt turn may take, in seconds, unless the agent turns out to be slower.
const TURN_TIMEOUT: f64 = 60.0;

const EXAMPLES: &str = "Examples:
  acp-conformance agent --quick -- my-agent --acp        in a minute, with few prompts
  acp-conformance agent --auth-method key --env KEY=… -- my-agent
  acp-conformance agent --only cancellation -- my-agent  one area; `acp-conformance list` has all
  acp-conformance agent --known known.toml --junit report.xml -- my-agent";

/// The profile that is built in.
const REFERENCE: &str = "reference";

/// Run the suite against an agent
///
/// The agent is a command that speaks the protocol on its standard input and output. Without one,
/// the bundled reference agent is tested. It is started many times, in the current directory.
///
/// First the suite tries the steps that most checks need: initialize, login, session, one prompt.
/// If a step fails, the cause is reported once, and everything that depends on it is `blocked`.
///
/// Side effects: sessions work in an empty temporary folder and are deleted or closed afterwards,
/// where the agent can do that. Prompts go to the agent's model; their number is printed before the
/// run. Permission is granted only for paths in that folder. Modes that bypass permissions, and
/// other models, are not selected without --allow-privileged.
///
/// The prompts are texts by word: `hello` is answered with text, `slow` runs until it is
/// cancelled, `tool` makes a tool call. A profile may have more words: permission, read, relative
/// (reads input.txt of its working directory), write, terminal, form, url, plan, usage, commands,
/// and any other for coverage. An agent can name its own in `_meta["acp-conformance"].prompts` of its
/// answer to initialize.
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Args {
    /// The agent's command; the bundled reference agent by default
    #[arg(last = true, value_name = "COMMAND", conflicts_with = "url")]
    command: Vec<OsString>,
    #[command(flatten)]
    remote: RemoteArgs,
    #[command(flatten)]
    chosen: Chosen,
    /// Test this version of the protocol: 1, or 2 for the draft
    #[arg(long, value_name = "N", default_value = "1", value_parser = crate::version)]
    protocol: Version,
    /// Wait so many seconds for an answer [default: 5, or 5 times what the first session took, at most 30]
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    timeout: Option<f64>,
    /// Wait so many seconds for the end of a turn or the start of a session [default: 60, or 5 times
    /// what the first turn took, at most 600; with --quick 15 for a turn. The first turn may take 180,
    /// with --quick 30]
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    turn_timeout: Option<f64>,
    /// Take at most a minute, besides the first start of the agent: at most 12 prompts, and only as many
    /// starts as fit; no check begins after 40 seconds. A line says what was left out
    #[arg(long, conflicts_with_all = ["thorough", "fuzz"])]
    quick: bool,
    /// Repeat a check that was inconclusive, at most twice, because a model may act otherwise
    #[arg(long, conflicts_with = "fuzz")]
    thorough: bool,
    /// Run so many agents at once [default: 4, but not more than cores if the agent takes over a second
    /// to start]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    jobs: Option<u16>,
    /// Send this prompt where the agent is to answer with text
    #[arg(long, value_name = "TEXT")]
    prompt: Option<String>,
    /// Send this prompt where the agent is to make a tool call
    #[arg(long, value_name = "TEXT")]
    tool_prompt: Option<String>,
    /// Send this prompt where the agent is to work until it is cancelled
    #[arg(long, value_name = "TEXT")]
    cancel_prompt: Option<String>,
    /// Read prompts and settings from a TOML file; `reference` is the built-in profile of the reference agent
    #[arg(long, value_name = "FILE")]
    profile: Option<PathBuf>,
    /// Start the agent in this directory; the current one by default. Sessions have another one
    #[arg(long, value_name = "DIR", requires = "command")]
    cwd: Option<PathBuf>,
    /// Set a variable in the agent's environment; may be repeated
    #[arg(long, value_name = "NAME=VALUE", value_parser = variable, requires = "command")]
    env: Vec<(OsString, OsString)>,
    /// Log in by this method, on every connection whose sessions need it
    #[arg(long, value_name = "ID")]
    auth_method: Option<String>,
    /// Let the suite select modes that bypass permissions, and other models
    #[arg(long)]
    allow_privileged: bool,
    /// Break the reference agent in this way, to see what a failure looks like
    #[arg(long, value_name = "NAME", conflicts_with = "command", hide = true)]
    broken: Option<String>,
    /// Instead of the suite, send so many messages made from the schema: unusual ones
    /// must be accepted, faulty ones refused or tolerated, and none may end the agent
    #[arg(long, value_name = "N", conflicts_with_all = ["Chosen", "Outputs"])]
    fuzz: Option<u64>,
    /// Which messages --fuzz makes; the same for the same number
    #[arg(long, value_name = "S", default_value_t = 1, requires = "fuzz")]
    seed: u64,
    #[command(flatten)]
    outputs: Outputs,
}

/// A number of seconds that makes sense as a limit.
pub(crate) fn seconds(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(value) if (0.05..=3600.0).contains(&value) => Ok(value),
        _ => Err("a number of seconds from 0.05 to 3600".into()),
    }
}

/// A variable of the environment and its value.
fn variable(text: &str) -> Result<(OsString, OsString), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.into(), value.into())),
        _ => Err("expected NAME=VALUE".into()),
    }
}

pub(crate) fn run(args: &Args, out: &mut dyn Write) -> Result<Verdict, Failure> {
    #[cfg(unix)]
    crate::orphan_reaper::protect();
    args.outputs.probe()?;
    let known = args.chosen.known()?;
    let workdir = Workdir::new()?;
    let profile = profile(args)?;
    let env = Arc::new(Env {
        target: target(args, &workdir.beside("sessions"))?,
        schema: Schema::of(args.protocol)?,
        folder: workdir.path().to_owned(),
        timeout: Duration::from_secs_f64(args.timeout.unwrap_or(TIMEOUT)),
        turn_timeout: Duration::from_secs_f64(args.turn_timeout.unwrap_or(TURN_TIMEOUT)),
        quiet: Duration::from_millis(100),
        unresponsive: Unresponsive::default(),
        conditions: Conditions {
            allow_privileged: args.allow_privileged || profile.allow_privileged,
            cleans_up: true,
            ..Conditions::default()
        },
        profile,
    });
    #[cfg(unix)]
    crate::interruption::watch_signals(&env.conditions.interruption);
    if let Some(count) = args.fuzz {
        return fuzzed(args, &env, count, out);
    }
    let options = Options {
        choice: args.chosen.choice(),
        jobs: args.jobs.unwrap_or(JOBS).into(),
        adapts_jobs: args.jobs.is_none(),
        effort: match (args.quick, args.thorough) {
            (true, _) => Effort::Quick,
            (_, true) => Effort::Thorough,
            _ => Effort::Normal,
        },
        tries_setup: true,
        quick: QuickLimits::default(),
        adapts_timeout: args.timeout.is_none(),
        adapts_turn_timeout: args.turn_timeout.is_none(),
        takes_words: args.profile.is_none(),
        transcripts: args.outputs.transcripts()?,
        ..Options::default()
    };
    let prompts = suite::estimate(&env, &options)?;
    // Nobody may read it.
    let _ = writeln!(io::stderr(), "acp-conformance: up to {prompts} prompts");
    let mut progress = Progress::checks();
    let report = suite::run(&env, &options, |done, all| progress.reach(done, all))?;
    drop(progress);
    let rest = again(args);
    let setting = RunInfo {
        strict: args.chosen.strict,
        choice: &options.choice,
        again: Rerun::Command {
            start: "acp-conformance agent",
            rest: &rest,
        },
    };
    let mut report = Document::of_agent(&report, &setting);
    report.accept(&known);
    let transcripts = options.transcripts.as_deref();
    Ok(args.outputs.write(report, transcripts, out)?)
}

fn fuzzed(
    args: &Args,
    env: &Arc<Env>,
    count: u64,
    out: &mut dyn Write,
) -> Result<Verdict, Failure> {
    let mut progress = Progress::checks();
    let all = usize::try_from(count).unwrap_or(usize::MAX);
    let report = fuzz::run(env, count, args.seed, |done| {
        progress.reach(usize::try_from(done).unwrap_or(usize::MAX), all);
    })?;
    drop(progress);
    let text = report.text(args.seed);
    out.write_all(text.as_bytes()).map_err(Error::Output)?;
    Ok(match report.interrupted {
        true => Verdict::Incomplete,
        false => Verdict::of(report.failures.is_empty()),
    })
}

/// The reference agent as a child of this program, which keeps its sessions in a folder.
fn reference(version: Version, sessions: &Path) -> Result<Target> {
    let failed = Error::starting("acp-conformance reference-agent");
    let program = std::env::current_exe().map_err(failed)?;
    let words = ["reference-agent", "--protocol", version.as_str()];
    let mut command = vec![program.into()];
    command.extend(words.map(OsString::from));
    command.extend(["--sessions".into(), sessions.into()]);
    Ok(Target::command(command))
}

/// `sessions` is the folder in which the reference agent keeps its sessions.
fn target(args: &Args, sessions: &Path) -> Result<Target> {
    let target = match (args.remote.target()?, args.command.as_slice()) {
        (Some(remote), _) => remote,
        (None, []) => reference(args.protocol, sessions)?,
        (None, command) => {
            let mut target = Target::command(command.to_vec());
            if let Some(folder) = &args.cwd {
                target = target.current_dir(folder);
            }
            let env = args.env.iter().cloned();
            env.fold(target, |target, (name, value)| target.env(name, value))
        }
    };
    match &args.broken {
        None => Ok(target),
        Some(name) => {
            let mutant = mutants::find(Party::Agent, name);
            let rewrite = mutant.and_then(mutants::Mutant::rewrite);
            let rewrite = rewrite.ok_or_else(|| Error::NoBroken(name.clone()))?;
            Ok(target.behind(rewrite))
        }
    }
}

/// What follows to run one requirement against the same agent in the same way.
fn again(args: &Args) -> String {
    let mut words: Vec<OsString> = args.chosen.verdict_options();
    let mut option = |name: &str, value: Option<OsString>| {
        if let Some(value) = value {
            words.extend([name.into(), value]);
        }
    };
    let text = |text: &Option<String>| text.clone().map(OsString::from);
    let protocol = args.protocol;
    option(
        "--protocol",
        (protocol != Version::V1).then(|| protocol.as_str().into()),
    );
    option("--profile", args.profile.clone().map(OsString::from));
    option("--prompt", text(&args.prompt));
    option("--tool-prompt", text(&args.tool_prompt));
    option("--cancel-prompt", text(&args.cancel_prompt));
    option("--auth-method", text(&args.auth_method));
    option("--cwd", args.cwd.clone().map(OsString::from));
    for (name, _) in &args.env {
        // The value may be a secret.
        let mut variable = name.clone();
        variable.push("=VALUE");
        option("--env", Some(variable));
    }
    option("--broken", text(&args.broken));
    let limit = |given: Option<f64>| given.map(|given| given.to_string().into());
    option("--timeout", limit(args.timeout));
    option("--turn-timeout", limit(args.turn_timeout));
    if args.thorough {
        words.push("--thorough".into());
    }
    if args.allow_privileged {
        words.push("--allow-privileged".into());
    }
    words.extend(args.remote.again());
    crate::outputs::again(words, &args.command)
}

fn profile(args: &Args) -> Result<Profile> {
    let is_reference = args.command.is_empty() && !args.remote.is_given();
    let is_built_in = args.profile.as_deref() == Some(Path::new(REFERENCE));
    let is_reference = is_built_in || (is_reference && args.profile.is_none());
    let mut profile = match (&args.profile, is_reference) {
        (_, true) => Profile::reference()?,
        (Some(path), false) => Profile::read(path)?,
        (None, false) => Profile::unknown_agent(),
    };
    let given = [
        ("hello", &args.prompt),
        ("tool", &args.tool_prompt),
        ("slow", &args.cancel_prompt),
    ];
    for (word, text) in given {
        if let Some(text) = text {
            profile.set_prompt(word, text);
        }
    }
    if let Some(method) = &args.auth_method {
        profile.auth_method = Some(method.clone());
    }
    Ok(profile)
}
