//! `acp-conformance compare`: reports side by side, or of one agent over time.

use std::io::Write;
use std::path::{Path, PathBuf};

use crate::Verdict;
use crate::outputs::{print, save};
use acp_conformance::Result;
use acp_conformance::report;
use acp_conformance::report::compare::{
    Comparison, html_comparison, markdown_comparison, text_comparison,
};

/// Compare reports: on several agents, on several clients, or on one over time
///
/// Reports are what `agent --json FILE` and `client --json FILE` have written. The results
/// are shown by area, then only the requirements with different verdicts: regressions, which
/// pass in the first report and fail in the last, then what was fixed, then other differences.
/// Requirements that are new or removed, and what of the protocol only some of them have
/// exercised, follow.
///
/// The exit code says whether they could be compared, and with --fail-on-regression also whether
/// there is a regression (1).
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The reports, two or more; the first is what the last is compared with
    #[arg(value_name = "REPORT", required = true, num_args = 2..)]
    reports: Vec<PathBuf>,
    /// Exit with 1 if a requirement passes in the first report and fails in the last, where it is not
    /// accepted
    #[arg(long)]
    fail_on_regression: bool,
    /// Write the comparison as JSON to a file, or instead of the text to `-`
    #[arg(long, value_name = "FILE|-")]
    json: Option<PathBuf>,
    /// Write the comparison as Markdown to a file, or instead of the text to `-`
    #[arg(long, value_name = "FILE|-")]
    markdown: Option<PathBuf>,
    /// Write the comparison as a page for a browser to a file too
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

pub(crate) fn run(args: &Args, out: &mut dyn Write) -> Result<Verdict> {
    let read = |path: &PathBuf| Ok((path.clone(), report::read(path)?));
    let reports = args.reports.iter().map(read).collect::<Result<Vec<_>>>()?;
    let comparison = Comparison::of(&reports)?;
    let json = match &args.json {
        Some(path) => Some((path, crate::json(&comparison)?)),
        None => None,
    };
    let markdown = match &args.markdown {
        Some(path) => Some((path, markdown_comparison(&comparison)?)),
        None => None,
    };
    let html = match &args.html {
        Some(path) => Some((path, html_comparison(&comparison)?)),
        None => None,
    };
    let made: Vec<_> = [json, markdown, html].into_iter().flatten().collect();
    let printed = |path: &Path| path == Path::new("-");
    for (_, text) in made.iter().filter(|(path, _)| printed(path)) {
        print(out, text)?;
    }
    if !made.iter().any(|(path, _)| printed(path)) {
        print(out, &text_comparison(&comparison)?)?;
    }
    for (path, text) in made.iter().filter(|(path, _)| !printed(path)) {
        save(path, text)?;
    }
    let has_regression = comparison.regressions().next().is_some();
    Ok(Verdict::of(!(args.fail_on_regression && has_regression)))
}
