//! The sandbox of an agent, and what this machine can enforce.

use std::io;
use std::path::Path;

use acp_sandbox::args::SandboxArgs;
use acp_sandbox::{Mechanism, Sandbox, SandboxSettings};

use super::args::AgentArgs;
use super::exit::Code;
use super::task::{Failure, Results};

/// Prepares the sandbox of an agent whose sessions are in a directory; `None` without `--sandbox`.
///
/// # Errors
///
/// Fails with the reason and the remedy if this machine does not enforce it, or a path is wrong.
pub(super) fn prepare(
    args: &SandboxArgs,
    agent: &AgentArgs,
    directory: &Path,
) -> Result<Option<Sandbox>, String> {
    if agent.remote.url.is_some() {
        if args.sandbox.is_none() {
            return Ok(None);
        }
        let reason = "--sandbox cannot confine an agent at a URL: it runs on another machine, or was \
                      started before";
        return Err(reason.to_owned());
    }
    if args.sandbox.is_none() && agent.found.is_none() {
        return Ok(None);
    }
    agent
        .launch()?
        .sandbox(args, agent.name.as_deref(), directory)
}

/// `acp doctor`: tries each sandbox.
///
/// # Errors
///
/// Fails if none works.
pub(super) async fn doctor(results: &mut Results) -> Result<Code, Failure> {
    let mut works = false;
    for mechanism in Mechanism::ALL {
        let line = match tried(mechanism) {
            Ok(network) => {
                works = true;
                format!("{mechanism}: works; {network}")
            }
            Err(reason) => format!("{mechanism}: does not work: {reason}"),
        };
        results.line(&line).await?;
    }
    match works {
        true => Ok(Code::EndTurn),
        false => {
            let message = "no sandbox works here: --sandbox is refused. Run the agent in a container \
                           or a virtual machine";
            Err(Failure::Message(Code::Failed, message.to_owned()))
        }
    }
}

/// Has a confined program write where it may and where it may not; says what is enforced besides.
fn tried(mechanism: Mechanism) -> Result<&'static str, String> {
    let folder = |what: &str| {
        let folder = tempfile::Builder::new().prefix("acp-doctor-").tempdir();
        folder.map_err(|error| format!("cannot create {what} to try it: {error}"))
    };
    let (inside, outside) = (folder("a directory")?, folder("a second directory")?);
    let settings = SandboxSettings::new(mechanism).writable(inside.path());
    let sandbox = settings.prepare().map_err(|error| error.to_string())?;
    let writes = |path: &Path| {
        let written = path.join("written");
        let (program, before) = sandbox.program("touch".as_ref());
        let mut command = std::process::Command::new(program);
        command.args(before).arg(&written);
        command.stdin(std::process::Stdio::null());
        let run = || -> io::Result<_> { command.output() };
        let output = sandbox.spawn(run).map_err(|error| error.to_string())?;
        Ok::<_, String>(output.status.success() || written.exists())
    };
    match (writes(inside.path())?, writes(outside.path())?) {
        (true, false) => {}
        (false, _) => return Err("a confined program could not write inside".to_owned()),
        (true, true) => return Err("a confined program could write outside".to_owned()),
    }
    Ok(match settings.without_network().prepare() {
        Ok(_) => "--sandbox-no-network works",
        Err(_) => "--sandbox-no-network does not",
    })
}
