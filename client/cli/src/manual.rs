//! `acp completions` and `acp man`: generated from the definition of the arguments.

use std::io;
use std::path::Path;

use clap::CommandFactory as _;
use clap_complete::Shell;

use super::args::Args;
use super::exit::Code;
use super::task::{Failure, Results};

/// Prints the completions of a shell.
pub(super) async fn completions(shell: Shell, results: &mut Results) -> Result<Code, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Args::command(), "acp", &mut script);
    results.text(&String::from_utf8_lossy(&script)).await?;
    Ok(Code::EndTurn)
}

/// Prints the manual page, or writes a page for each command to a folder.
pub(super) async fn man(folder: Option<&Path>, results: &mut Results) -> Result<Code, Failure> {
    let Some(folder) = folder else {
        let mut page = Vec::new();
        let rendered = clap_mangen::Man::new(Args::command()).render(&mut page);
        rendered.map_err(Failure::Output)?;
        results.text(&String::from_utf8_lossy(&page)).await?;
        return Ok(Code::EndTurn);
    };
    let written = std::fs::create_dir_all(folder)
        .and_then(|()| clap_mangen::generate_to(Args::command(), folder));
    written.map_err(|error: io::Error| {
        Failure::failed(format!("cannot write to {}: {error}", folder.display()))
    })?;
    Ok(Code::EndTurn)
}
