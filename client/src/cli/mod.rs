//! The command `acp`: drives an agent from a shell.
//!
//! Standard output carries the result and nothing else; everything about it goes to
//! standard error. What an agent writes is bounded and never trusted to be harmless on a
//! terminal.

mod args;
mod exit;
mod json;
#[cfg(feature = "mcp")]
mod mcp;
mod notes;
mod output;
#[cfg(feature = "remote")]
mod remote;
mod run;
mod stop;
mod text;

use std::ffi::OsString;
use std::fmt::Display;
use std::io::Write as _;
use std::process::ExitCode;

use clap::Parser as _;

use self::args::{Args, Command};

/// Runs the command with its arguments, the program's name first.
///
/// ```no_run
/// fn main() -> std::process::ExitCode {
///     acp_client::cli::main(std::env::args_os())
/// }
/// ```
pub fn main(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let args = match Args::try_parse_from(args) {
        Ok(args) => args,
        Err(error) => {
            // Nobody is left to tell when this fails.
            let _ = error.print();
            return if error.use_stderr() {
                exit::Code::Usage.into()
            } else {
                exit::Code::EndTurn.into()
            };
        }
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(error) => {
            complain(format_args!("acp: cannot start: {error}"));
            return exit::Code::Failed.into();
        }
    };
    let code = match args.command {
        Command::Run(args) => runtime.block_on(run::run(args)),
        #[cfg(feature = "mcp")]
        Command::Mcp(args) => runtime.block_on(mcp::mcp(args)),
    };
    // A write to a stream that nobody reads must not keep the process from ending.
    runtime.shutdown_background();
    code.into()
}

/// Writes a line to standard error at once. If that is closed nobody wants to know, and
/// `eprintln!` would panic, in the middle of whatever it is that there is a word to say about.
fn complain(line: impl Display) {
    let _ = writeln!(std::io::stderr(), "{line}");
}
