//! `acp-conformance proxy`: live traffic between an editor and an agent.

use std::ffi::OsString;
use std::fs::OpenOptions;
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use crate::check::{Entry, findings, is_assumed, spoken};
use crate::{Failure, write_json};
use acp_conformance::judge::{Diagnostic, Level};
use acp_conformance::wire::Version;
use acp_conformance::{Error, Result};
use acp_conformance_proxy::{Options, Outcome};

/// How many findings are written to standard error, so that a stream of them does not
/// fill an editor's log.
const TOLD: u64 = 100;

/// Stand between an editor and an agent, and judge what passes
///
/// Forwards standard input and output byte by byte, and judges copies of every
/// message in both directions as `check` does. Where an editor starts its agent
/// as `opencode acp`, have it start
///
///   acp-conformance proxy --log /tmp/acp-{pid}.jsonl -- opencode acp
///
/// The wire does not wait for the judge. Should it fall behind, as it does when an
/// agent writes many thousands of messages within a second, messages pass unjudged;
/// their number is reported as a finding and stands in the transcript. With --strict
/// the wire waits: every message is judged and recorded, and a peer that writes
/// faster than that is slowed down. Memory is bounded either way.
///
/// Findings go to standard error, beside what the agent writes there, or to a
/// file. A finding's number is its message's line in the transcript, which `check`
/// reads and judges alike.
///
/// Signals are passed on to the agent, and its exit code is passed back (128 and
/// the number of the signal, if one ended it). When the editor is gone, or this
/// process is killed, the agent is ended: end of input, SIGTERM, SIGKILL.
///
/// Secrets are replaced before anything is judged or written: values of
/// environment variables and headers, all that `authenticate` carries, strings
/// under names that end in apiKey, token, secret, password and the like, and
/// arguments such as --api-key. Prompts, file contents and terminal output are
/// recorded as they are; the transcript is readable by its owner only.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment, after_help = EXIT_CODES)]
pub(crate) struct Args {
    /// Write a transcript to this file; {pid} becomes the process id
    #[arg(long, value_name = "FILE")]
    log: Option<PathBuf>,
    /// Write findings to this file instead of standard error; {pid} likewise
    #[arg(long, value_name = "FILE")]
    findings: Option<PathBuf>,
    /// Judge every message, if need be by slowing the wire down; exit with 1 instead
    /// of 0 if there was an error or a warning
    #[arg(long)]
    strict: bool,
    /// The version of the protocol to judge by: 1, or 2 for the draft; the one that
    /// `initialize` agrees on by default, and 1 where there is none
    #[arg(long, value_name = "N", value_parser = crate::version)]
    protocol: Option<Version>,
    /// Print notes too
    #[arg(long)]
    notes: bool,
    /// Print findings as `check --json` does
    #[arg(long)]
    json: bool,
    /// Leave secrets in the transcript and in findings
    #[arg(long)]
    no_redact: bool,
    /// How long the agent may take to end once the editor is gone, and again after
    /// SIGTERM
    #[arg(long, value_name = "SECONDS", default_value = "2", value_parser = seconds)]
    grace: Duration,
    /// The agent and its arguments
    #[arg(last = true, required = true, value_name = "AGENT")]
    command: Vec<OsString>,
}

const EXIT_CODES: &str =
    "Exit codes: the agent's; 2 if it cannot be started; with --strict, 1 instead of 0";

pub(crate) fn run(args: &Args) -> Result<ExitCode, Failure> {
    let log = args.log.as_deref().map(numbered);
    let transcript = log.as_deref().map(create).transpose()?;
    let report = Report {
        out: match args.findings.as_deref().map(numbered) {
            Some(path) => Out::File(create(&path)?),
            None => Out::Stderr { left: TOLD },
        },
        log: log.as_deref().map(|path| path.display().to_string()),
        json: args.json,
        floor: if args.notes {
            Level::Note
        } else {
            Level::Warning
        },
    };
    // Without a guard, a killed proxy leaves the agent to the end of its input.
    if let Err(error) = crate::orphan_reaper::protect_for(args.grace) {
        // Standard error may be closed; the wire is what matters.
        let _ = writeln!(
            io::stderr(),
            "acp-conformance: the agent will outlive a kill: {error}"
        );
    }
    let outcome = acp_conformance_proxy::run(Options {
        command: args.command.clone(),
        version: args.protocol,
        log: transcript.map(|file| Box::new(BufWriter::new(file)) as _),
        redact: !args.no_redact,
        complete: args.strict,
        findings: report.into_sink(),
        grace: args.grace,
    })?;
    Ok(concluded(args, &outcome).into())
}

/// Says what was found, and decides the exit code.
fn concluded(args: &Args, outcome: &Outcome) -> u8 {
    let (clean, text) = match outcome.summary {
        None => (false, "the judge did not finish in time".to_owned()),
        Some(summary) => {
            let clean = summary.errors + summary.warnings == 0;
            let version = spoken(summary);
            let text = format!(
                "{} messages{version}, {}",
                summary.messages(),
                findings(summary)
            );
            (clean, text)
        }
    };
    let assumed = outcome.summary.is_some_and(is_assumed);
    if !clean || assumed {
        // Standard error may be gone with the editor.
        let _ = writeln!(io::stderr(), "acp-conformance: {text}");
    }
    match outcome.code {
        0 if args.strict && !clean => 1,
        code => code,
    }
}

/// Where findings go, and how.
struct Report {
    out: Out,
    log: Option<String>,
    json: bool,
    floor: Level,
}

enum Out {
    File(std::fs::File),
    /// How many further ones may be reported.
    Stderr {
        left: u64,
    },
}

impl Report {
    fn into_sink(mut self) -> Box<dyn FnMut(&Diagnostic) + Send> {
        Box::new(move |finding| {
            if finding.level >= self.floor {
                // Nobody may be reading; the wire is what matters.
                let _ = self.tell(finding);
            }
        })
    }

    fn tell(&mut self, finding: &Diagnostic) -> Result<()> {
        let mut line = Vec::new();
        let file = self.log.as_deref().unwrap_or_default();
        if self.json {
            write_json(&mut line, &Entry::Finding { file, finding })?;
        } else if self.log.is_some() {
            writeln!(line, "{file}:{}: {finding}", finding.finding.place).map_err(Error::Output)?;
        } else {
            writeln!(line, "message {}: {finding}", finding.finding.place)
                .map_err(Error::Output)?;
        }
        match &mut self.out {
            Out::File(file) => file.write_all(&line),
            Out::Stderr { left: 0 } => Ok(()),
            Out::Stderr { left } => {
                *left -= 1;
                if *left == 0 {
                    line.extend_from_slice(
                        b"acp-conformance: more findings are only counted; --findings FILE keeps them\n",
                    );
                }
                io::stderr().write_all(&line)
            }
        }
        .map_err(Error::Output)
    }
}

/// A file for the owner alone: it holds what was said.
fn create(path: &Path) -> Result<std::fs::File> {
    OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(path)
        .map_err(Error::writing(path))
}

/// Editors start several agents; each needs a file of its own.
fn numbered(path: &Path) -> PathBuf {
    match path.to_str() {
        Some(text) => text
            .replace("{pid}", &std::process::id().to_string())
            .into(),
        None => path.to_owned(),
    }
}

pub(crate) fn seconds(text: &str) -> std::result::Result<Duration, String> {
    let seconds: f64 = text.parse().map_err(|_| "not a number".to_owned())?;
    Duration::try_from_secs_f64(seconds).map_err(|error| error.to_string())
}
