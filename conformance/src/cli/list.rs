//! `acp-conformance list`: the table of requirements.

use std::io::Write;

use super::Verdict;
use crate::report;
use crate::{Error, Result};

/// List the requirements
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// As JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &Args, out: &mut dyn Write) -> Result<Verdict> {
    if args.json {
        super::write_json(out, &report::Listed::all())?;
    } else {
        let text = report::list();
        out.write_all(text.as_bytes()).map_err(Error::Output)?;
    }
    Ok(Verdict::Conformant)
}
