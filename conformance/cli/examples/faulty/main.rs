//! Agents and clients with one defect each, to test the conformance suite from outside.
//!
//! ```sh
//! cargo build -p acp-conformance-cli --example faulty
//! target/debug/examples/faulty list
//! acp-conformance agent --profile conformance/cli/examples/faulty/profile.toml \
//!     -- target/debug/examples/faulty agent cancel-is-error
//! acp-conformance client -- target/debug/examples/faulty client read-window {cwd} {prompt} -- {agent}
//! ```
//!
//! The names `base` and `v2-base` have no defect. The defects were written from the pages of the
//! specification, not from the requirements of the suite; `docs/faulty-agents.md` says which
//! requirements catch them. Only `serde_json` reads and writes messages here, so that an error in
//! the SDK cannot hide in the suite and in these peers alike.
#![allow(
    clippy::print_stdout,
    reason = "the list and the agent's text are the result"
)]
#![allow(clippy::print_stderr, reason = "errors of a command")]

mod agent;
mod client;
mod client_faults;
mod connection;
mod hooks;
mod terminals;
mod v1_faults;
mod v2_faults;

use std::process::ExitCode;

use crate::client_faults::CLIENTS;
use crate::connection::Fault;
use crate::v1_faults::AGENTS;
use crate::v2_faults::AGENTS_V2;

const USAGE: &str =
    "usage: faulty list | faulty agent NAME | faulty client NAME CWD PROMPT -- AGENT...";

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words[..] {
        ["list"] => list(),
        ["agent", name] => match (find(&AGENTS, name), find(&[AGENTS_V2], name)) {
            (Some(fault), _) => agent::run(1, fault),
            (_, Some(fault)) => agent::run(2, fault),
            _ => return unknown(name),
        },
        ["client", name, cwd, prompt, "--", ref command @ ..] if !command.is_empty() => {
            match find(&[CLIENTS], name) {
                Some(fault) => return client::run(fault, cwd, prompt, command),
                None => return unknown(name),
            }
        }
        _ => {
            eprintln!("{USAGE}");
            return ExitCode::from(2);
        }
    }
    ExitCode::SUCCESS
}

fn find(tables: &[&'static [Fault]], name: &str) -> Option<&'static Fault> {
    let mut faults = tables.iter().flat_map(|table| table.iter());
    faults.find(|fault| fault.name == name)
}

fn unknown(name: &str) -> ExitCode {
    eprintln!("no fault is called {name:?}; `faulty list` lists them");
    ExitCode::from(2)
}

/// Prints a line for each fault: its side, its name, its defect.
fn list() {
    let agents = AGENTS
        .iter()
        .chain([&AGENTS_V2])
        .map(|table| ("agent", *table));
    for (side, table) in agents.chain([("client", CLIENTS)]) {
        for fault in table {
            println!("{side}\t{}\t{}", fault.name, fault.defect);
        }
    }
}
