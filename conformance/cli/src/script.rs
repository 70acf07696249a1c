//! `acp-conformance script`: a scripted peer.

use std::ffi::OsString;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use serde_json::Value;

use crate::Failure;
use acp_conformance::{Error, Result};
use acp_conformance_script::{Played, Script, Wire, play};

/// Play a scripted peer, which can say and do what no SDK would
///
/// Plays a client against an agent's command, by default the bundled reference
/// agent; with --as-agent it plays the agent on standard input and output, to be
/// started by the client under test.
///
/// A script is a TOML file of steps. Each does one thing:
///
///   send = {…}      a message; "jsonrpc" is added. A string is JSON as it is.
///   raw = "…"       bytes as text; they need not be a message. No newline is added.
///   hex = "ff 00"   any bytes
///   expect = {…}    waits for a message with these members; others are passed over
///   silence = 0.5   nothing may come for so many seconds
///   delay = 0.5     waits
///   close = true    closes the peer's input
///   end = true      waits for the end of the peer's output
///   exit = 0        waits for the process to exit with this code (128 + signal)
///   kill = "TERM"   sends TERM, INT, KILL, STOP or CONT to its process group
///   die = 1         exits at once with this code
///
/// and may have: note = "…" for reports; within = 5, its limit in seconds; next =
/// true, for an `expect` that the very next line has to meet; and for what is sent,
/// repeat = 1000 (`n` in braces counts from 0), split = 7, in pieces of 7 bytes, and
/// pause = 0.01 between them. Before the steps, timeout = 5 is the limit of all
/// steps, and [variables] has values.
///
/// In a pattern, "{name}" binds a variable, or is compared with its value; in what
/// is sent it stands for the value. {cwd} is the working directory. "{any}",
/// "{string}", "{number}", "{object}", "{array}" and "{null}" match such values, "{text}"
/// a string that is not empty, "{empty}" an object without members, "{absent}" a
/// member that is not there, and "{more}", last in an array, further items. "{null}" is
/// sent as null.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment, after_long_help = EXAMPLE)]
pub(crate) struct Args {
    /// The script
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Play the agent on standard input and output
    #[arg(long, conflicts_with = "command")]
    as_agent: bool,
    /// Give a variable a value: JSON, or else text
    #[arg(long, value_name = "NAME=VALUE", value_parser = variable)]
    set: Vec<(String, Value)>,
    /// The agent's command; the bundled reference agent by default
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

const EXAMPLE: &str = r#"Example: a prompt that is cut in two, and an agent that is left alone

  [[step]]
  send = { id = 0, method = "initialize", params = { protocolVersion = 1 } }
  [[step]]
  expect = { id = 0, result = { protocolVersion = 1 } }
  [[step]]
  send = { id = 1, method = "session/new", params = { cwd = "{cwd}", mcpServers = [] } }
  [[step]]
  expect = { id = 1, result = { sessionId = "{session}" } }
  [[step]]
  split = 20
  [step.send]
  id = 2
  method = "session/prompt"
  params.sessionId = "{session}"
  params.prompt = [{ type = "text", text = "hello" }]
  [[step]]
  expect = { id = 2, result = { stopReason = "end_turn" } }
  [[step]]
  raw = '{"jsonrpc": "2.0", "id"'
  [[step]]
  close = true
  [[step]]
  note = "exits when its input ends, even within a line"
  exit = 0

Exit codes: 0 all steps done, 1 a step failed, 2 usage or failure; or that of `die`"#;

pub(crate) fn run(args: &Args) -> Result<ExitCode, Failure> {
    crate::orphan_reaper::protect();
    let text = std::fs::read_to_string(&args.file).map_err(Error::reading(&args.file))?;
    let name = args.file.display().to_string();
    let mut script = Script::parse(&name, &text)?;
    if let Ok(folder) = std::env::current_dir() {
        script.set("cwd", folder.display().to_string().into());
    }
    for (name, value) in &args.set {
        script.set(name, value.clone());
    }
    let mut wire = if args.as_agent {
        Wire::stdio().map_err(Error::starting("the script"))?
    } else {
        Wire::start(&command(args)?)?
    };
    match play(&script, &mut wire) {
        Ok(Played::Through) => {}
        Ok(Played::Die(code)) => return Ok(code.into()),
        Err(failure) => {
            // Nobody may be reading; the exit code says it too.
            let _ = writeln!(io::stderr(), "{failure}");
            return Ok(ExitCode::from(1));
        }
    }
    if !args.as_agent {
        let steps = script.steps().len();
        writeln!(io::stdout(), "{name}: {steps} steps done").map_err(Error::Output)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn command(args: &Args) -> Result<Vec<OsString>> {
    if !args.command.is_empty() {
        return Ok(args.command.clone());
    }
    let program = std::env::current_exe().map_err(Error::starting("the reference agent"))?;
    Ok(vec![program.into(), "reference-agent".into()])
}

fn variable(text: &str) -> std::result::Result<(String, Value), String> {
    let (name, value) = text
        .split_once('=')
        .ok_or_else(|| "must be NAME=VALUE".to_owned())?;
    let value = serde_json::from_str(value).unwrap_or_else(|_| Value::from(value));
    Ok((name.to_owned(), value))
}
