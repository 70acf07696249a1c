//! `acp-conformance list`: the table of requirements.

use std::io::Write;
use std::path::PathBuf;

use crate::Verdict;
use crate::outputs::save;
use acp_conformance::report;
use acp_conformance::wire::Version;
use acp_conformance::{Error, Result};

/// List the requirements
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Show only this requirement, with the steps of its check
    #[arg(value_name = "ID", conflicts_with_all = ["json", "pages"])]
    id: Option<String>,
    /// As JSON
    #[arg(long)]
    json: bool,
    /// Write a page of Markdown for each area to this folder, with the requirements of both versions: what
    /// each is founded on, and how it is checked
    #[arg(long, value_name = "DIR", conflicts_with_all = ["json", "protocol"])]
    pages: Option<PathBuf>,
    /// The version of the protocol: 1, or 2 for the draft
    #[arg(long, value_name = "N", default_value = "1", value_parser = crate::version)]
    protocol: Version,
}

pub(crate) fn run(args: &Args, out: &mut dyn Write) -> Result<Verdict> {
    if let Some(folder) = &args.pages {
        std::fs::create_dir_all(folder).map_err(Error::writing(folder))?;
        for page in report::area_pages()? {
            save(&folder.join(&page.file), &page.text)?;
        }
    } else if let Some(id) = &args.id {
        let text = report::Listed::show(args.protocol, id)?;
        out.write_all(text.as_bytes()).map_err(Error::Output)?;
    } else if args.json {
        crate::write_json(out, &report::Listed::of(args.protocol))?;
    } else {
        let text = report::list(args.protocol);
        out.write_all(text.as_bytes()).map_err(Error::Output)?;
    }
    Ok(Verdict::Conformant)
}
