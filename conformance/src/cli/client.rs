//! `acp-conformance client`: the suite against a client.

use std::ffi::OsString;
use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use super::Verdict;
use crate::clients::{self, ClientEnv};
use crate::progress::Progress;
use crate::report;
use crate::wire::Schema;
use crate::{Error, Result};

/// Run the suite against a client
///
/// The client is a command that launches an agent; the suite gives it one that acts
/// a scene each time: permission, files, terminals, strangeness from the future,
/// cancellation, death. In the command, `{agent}` stands for the agent to launch (as
/// several words when it stands alone), `{cwd}` for the working directory and
/// `{prompt}` for what to say. Without a command, the bundled `acp run` is tested.
///
/// Where a turn is to be cancelled, the client is interrupted as by Ctrl-C.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The client's command; the bundled client by default
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<OsString>,
    /// Run only this requirement; may be repeated
    #[arg(long, value_name = "ID")]
    only: Vec<String>,
    /// How long a scene may take, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 30.0, value_parser = super::agent::seconds)]
    timeout: f64,
    /// What the client is to say
    #[arg(long, value_name = "TEXT", default_value = "Hello, agent")]
    prompt: String,
    /// Let requirements of the tier `should` decide the verdict too
    #[arg(long)]
    strict: bool,
    /// Print the report as JSON
    #[arg(long)]
    json: bool,
}

/// Act a scene as the agent of a client under test
#[derive(Debug, clap::Args)]
pub(super) struct ActArgs {
    scene: String,
    record: PathBuf,
}

/// The bundled client, as a command.
const BUNDLED: [&str; 7] = [
    "run",
    "--approve-all",
    "--cwd",
    "{cwd}",
    "{prompt}",
    "--",
    "{agent}",
];

pub(super) fn run(args: &Args, out: &mut dyn Write) -> Result<Verdict> {
    for name in &args.only {
        if !clients::all().any(|row| row.id == name) {
            return Err(Error::NoRequirement(name.clone()));
        }
    }
    let program = std::env::current_exe().map_err(|source| Error::Start {
        command: "acp-conformance".into(),
        source,
    })?;
    let command = if args.command.is_empty() {
        let mut command = vec![program.clone().into_os_string(), "reference-client".into()];
        command.extend(BUNDLED.map(OsString::from));
        command
    } else {
        args.command.clone()
    };
    let env = ClientEnv {
        command,
        program,
        prompt: args.prompt.clone(),
        schema: Arc::new(Schema::v1()?),
        timeout: Duration::from_secs_f64(args.timeout),
    };
    let mut progress = Progress::checks();
    let wanted = |row: &clients::ClientRequirement| {
        args.only.is_empty() || args.only.iter().any(|name| name == row.id)
    };
    let rows = clients::run(&env, wanted, |done, all| progress.reach(done, all))?;
    drop(progress);
    let conformant = !rows
        .iter()
        .any(|(row, verdict)| verdict.as_str() == "fail" && row.tier.decides(args.strict));
    if args.json {
        super::write_json(out, &report::ClientDocument::of(&rows, conformant))?;
    } else {
        let again = super::agent::again(&args.command);
        let text = report::client_text(&rows, conformant, &again);
        out.write_all(text.as_bytes()).map_err(Error::Output)?;
    }
    Ok(Verdict::of(conformant))
}

pub(super) fn act(args: &ActArgs) -> Result<Verdict> {
    clients::act(&args.scene, &args.record)?;
    Ok(Verdict::Conformant)
}
