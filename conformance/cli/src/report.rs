//! `acp-conformance report`: other formats of a report.

use std::io::Write;
use std::path::PathBuf;

use acp_conformance::{Result, report};

use crate::Verdict;
use crate::outputs::Formats;

/// Make other formats of a report that `agent --json FILE` or `client --json FILE` has written
///
/// Nothing is run. The exit code is that of the run. A relative folder of transcripts is taken as
/// relative to the current directory.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The report
    #[arg(value_name = "REPORT")]
    report: PathBuf,
    #[command(flatten)]
    formats: Formats,
}

pub(crate) fn run(args: &Args, out: &mut dyn Write) -> Result<Verdict> {
    args.formats.write(&report::read(&args.report)?, out)
}
