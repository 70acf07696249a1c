//! `acp-conformance agent`: the suite against an agent.

use std::ffi::OsString;
use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use super::Verdict;
use super::outputs::{Chosen, Outputs};
use super::remote::RemoteArgs;
use crate::broken;
use crate::fuzz;
use crate::harness::{Env, Profile, Silence};
use crate::progress::Progress;
use crate::report::{Again, Document, Setting};
use crate::subject::Subject;
use crate::suite::{self, Options};
use crate::wire::{Schema, Version};
use crate::workdir::Workdir;
use crate::{Error, Result};

/// How long an answer may take, in seconds, unless it is said otherwise.
const TIMEOUT: f64 = 5.0;

/// How long a prompt turn may take, in seconds, unless it is said otherwise.
const TURN_TIMEOUT: f64 = 60.0;

/// Run the suite against an agent
///
/// The agent is a command that speaks the protocol on its standard input and
/// output; without one, the bundled reference agent is tested. It is started
/// several times, in the current directory; its sessions work in an empty one. Every message in
/// both directions is held against the schema. It is ended by the end of its input, and two
/// seconds later by SIGTERM.
///
/// What the agent is asked to do is in its prompts: `hello` (answered with text),
/// `slow` (runs until cancelled) and `tool` (makes a tool call). A profile may have
/// more words: permission, read, write, terminal, form, url, plan, usage, commands,
/// and any other for coverage. In version 2 it is hello, slow, tool, plan, form and url.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The agent's command; the bundled reference agent by default
    #[arg(last = true, value_name = "COMMAND", conflicts_with = "url")]
    command: Vec<OsString>,
    #[command(flatten)]
    remote: RemoteArgs,
    #[command(flatten)]
    chosen: Chosen,
    /// The version of the protocol to test: 1, or 2 for the draft, as far as it is covered
    #[arg(long, value_name = "N", default_value = "1", value_parser = super::version)]
    protocol: Version,
    /// How long an answer may take, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = TIMEOUT, value_parser = seconds)]
    timeout: f64,
    /// How long a prompt turn or the start of a session may take, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = TURN_TIMEOUT, value_parser = seconds)]
    turn_timeout: f64,
    /// How many agents run at once
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..))]
    jobs: u16,
    /// The prompt that is answered with text
    #[arg(long, value_name = "TEXT")]
    prompt: Option<String>,
    /// The prompt that makes a tool call
    #[arg(long, value_name = "TEXT")]
    tool_prompt: Option<String>,
    /// The prompt that runs until it is cancelled
    #[arg(long, value_name = "TEXT")]
    cancel_prompt: Option<String>,
    /// Prompts and settings from a TOML file
    #[arg(long, value_name = "FILE")]
    profile: Option<PathBuf>,
    /// Start the agent in this directory; the current one by default. Sessions have another one
    #[arg(long, value_name = "DIR", requires = "command")]
    cwd: Option<PathBuf>,
    /// Set a variable in the agent's environment; may be repeated
    #[arg(long, value_name = "NAME=VALUE", value_parser = variable, requires = "command")]
    env: Vec<(OsString, OsString)>,
    /// Authenticate by this method before opening sessions
    #[arg(long, value_name = "ID")]
    auth_method: Option<String>,
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
pub(super) fn seconds(text: &str) -> Result<f64, String> {
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

pub(super) fn run(args: &Args, out: &mut dyn Write) -> Result<Verdict> {
    #[cfg(unix)]
    super::guard::protect();
    args.outputs.probe()?;
    let workdir = Workdir::new()?;
    let env = Arc::new(Env {
        subject: subject(args)?,
        profile: profile(args)?,
        schema: Arc::new(Schema::of(args.protocol)?),
        folder: workdir.path().to_owned(),
        timeout: Duration::from_secs_f64(args.timeout),
        turn_timeout: Duration::from_secs_f64(args.turn_timeout),
        quiet: Duration::from_millis(100),
        silence: Silence::default(),
    });
    if let Some(count) = args.fuzz {
        return fuzzed(args, &env, count, out);
    }
    let options = Options {
        choice: args.chosen.choice(),
        jobs: args.jobs.into(),
    };
    let mut progress = Progress::checks();
    let report = suite::run(&env, &options, |done, all| progress.reach(done, all))?;
    drop(progress);
    let rest = again(args);
    let setting = Setting {
        strict: args.chosen.strict,
        choice: &options.choice,
        again: Again::Command {
            start: "acp-conformance agent",
            rest: &rest,
        },
    };
    let report = Document::of_agent(&report, &setting);
    args.outputs.write(&report, out)
}

fn fuzzed(args: &Args, env: &Arc<Env>, count: u64, out: &mut dyn Write) -> Result<Verdict> {
    let mut progress = Progress::checks();
    let all = usize::try_from(count).unwrap_or(usize::MAX);
    let report = fuzz::run(env, count, args.seed, |done| {
        progress.reach(usize::try_from(done).unwrap_or(usize::MAX), all);
    })?;
    drop(progress);
    let text = report.text(args.seed);
    out.write_all(text.as_bytes()).map_err(Error::Output)?;
    Ok(Verdict::of(report.failures.is_empty()))
}

fn subject(args: &Args) -> Result<Subject> {
    let subject = match (args.remote.subject()?, args.command.as_slice()) {
        (Some(remote), _) => remote,
        (None, []) => Subject::reference(args.protocol)?,
        (None, command) => {
            let mut subject = Subject::command(command.to_vec());
            if let Some(folder) = &args.cwd {
                subject = subject.current_dir(folder);
            }
            let env = args.env.iter().cloned();
            env.fold(subject, |subject, (name, value)| subject.env(name, value))
        }
    };
    match &args.broken {
        None => Ok(subject),
        Some(name) => match broken::find(name) {
            Some(broken) => Ok(subject.behind(broken.filter)),
            None => Err(Error::NoBroken(name.clone())),
        },
    }
}

/// What follows to run one requirement against the same agent in the same way.
fn again(args: &Args) -> String {
    let mut words: Vec<OsString> = args.chosen.strict_option().into_iter().collect();
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
    let limit = |given: f64, usual: f64| (given != usual).then(|| given.to_string().into());
    option("--timeout", limit(args.timeout, TIMEOUT));
    option("--turn-timeout", limit(args.turn_timeout, TURN_TIMEOUT));
    words.extend(args.remote.again());
    super::outputs::again(words, &args.command)
}

fn profile(args: &Args) -> Result<Profile> {
    let is_reference = args.command.is_empty() && !args.remote.is_given();
    let mut profile = match (&args.profile, is_reference) {
        (Some(path), _) => Profile::read(path)?,
        (None, true) if args.protocol == Version::V2 => Profile::second_reference(),
        (None, true) => Profile::reference()?,
        (None, false) => Profile::unknown_agent(),
    };
    let given = [
        ("hello", &args.prompt),
        ("tool", &args.tool_prompt),
        ("slow", &args.cancel_prompt),
    ];
    for (word, text) in given {
        if let Some(text) = text {
            profile.prompts.insert(word.to_owned(), text.clone());
        }
    }
    if let Some(method) = &args.auth_method {
        profile.auth_method = Some(method.clone());
    }
    Ok(profile)
}
