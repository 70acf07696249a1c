//! `acp-conformance list`: the table of requirements.

use std::io::Write;

use super::Verdict;
use crate::report;
use crate::wire::Version;
use crate::{Error, Result};

/// List the requirements
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// As JSON
    #[arg(long)]
    json: bool,
    /// The version of the protocol: 1, or 2 for the draft
    #[arg(long, value_name = "N", default_value = "1", value_parser = super::version)]
    protocol: Version,
}

pub(super) fn run(args: &Args, out: &mut dyn Write) -> Result<Verdict> {
    if args.json {
        super::write_json(out, &report::Listed::of(args.protocol))?;
    } else {
        let text = report::list(args.protocol);
        out.write_all(text.as_bytes()).map_err(Error::Output)?;
    }
    Ok(Verdict::Conformant)
}
