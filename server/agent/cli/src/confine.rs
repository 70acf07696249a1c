//! `--sandbox`: the process starts itself again, confined.

use std::ffi::OsString;
use std::io;

use acp_sandbox::args::SandboxArgs;

/// Set in the confined process.
const CONFINED: &str = "ACP_AGENT_CONFINED";

/// Confines this process and what it starts, if that is asked for: they write in the working directory, the
/// agent's own state and a temporary directory only.
///
/// # Errors
///
/// If the system does not enforce that.
pub(crate) fn confine(args: &SandboxArgs) -> Result<(), String> {
    if args.sandbox.is_none() || std::env::var_os(CONFINED).is_some() {
        return Ok(());
    }
    let here = std::env::current_dir().map_err(|error| error.to_string())?;
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let words: Vec<OsString> = std::env::args_os().skip(1).collect();
    let command = std::iter::once(program.as_os_str()).chain(words.iter().map(OsString::as_os_str));
    let sandbox = args.prepare(command, |name| std::env::var_os(name), &here);
    let Some(sandbox) = sandbox.map_err(|error| error.to_string())? else {
        return Ok(());
    };
    let (program, before) = sandbox.program(program.as_os_str());
    let mut command = std::process::Command::new(program);
    command.args(before).args(&words).env(CONFINED, "1");
    command.envs(sandbox.variables());
    let started = sandbox.spawn(|| replace(&mut command));
    started.map_err(|error| error.to_string())
}

/// Replaces this process. The confinement of the thread that does it is that of the new one.
#[cfg(unix)]
fn replace(command: &mut std::process::Command) -> io::Result<()> {
    Err(std::os::unix::process::CommandExt::exec(command))
}

#[cfg(not(unix))]
fn replace(_: &mut std::process::Command) -> io::Result<()> {
    Err(io::Error::new(
        io::ErrorKind::Unsupported,
        "only Linux confines it",
    ))
}
