//! Where the report on an agent or a client goes, and which requirements are run.

use std::ffi::OsString;
use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};

use super::Verdict;
use crate::report::{self, Document};
use crate::requirements::Choice;
use crate::subject::Subject;
use crate::{Error, Result};

/// Options that choose requirements.
#[derive(Debug, clap::Args)]
pub(super) struct Chosen {
    /// Run only this requirement, area or tier; may be repeated
    #[arg(long, value_name = "NAME")]
    only: Vec<String>,
    /// Leave this requirement, area or tier out; may be repeated
    #[arg(long, value_name = "NAME")]
    skip: Vec<String>,
    /// Let requirements of the tier `should` decide the verdict too
    #[arg(long)]
    pub(super) strict: bool,
}

/// Options that say where the report goes.
#[derive(Debug, clap::Args)]
pub(super) struct Outputs {
    /// Write the report as JSON to a file, or print it instead of the text
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = "-")]
    json: Option<PathBuf>,
    /// Write the report as Markdown, for a README or a build's summary, to a file, or
    /// print it instead of the text
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = "-")]
    markdown: Option<PathBuf>,
    /// Write the report as JUnit XML to a file too
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
    /// Write the report as a page for a browser to a file too
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

impl Chosen {
    /// The requirements to run.
    pub(super) fn choice(&self) -> Choice {
        Choice {
            only: self.only.clone(),
            skip: self.skip.clone(),
        }
    }

    /// The option `--strict`, if it was given.
    pub(super) fn strict_option(&self) -> Option<OsString> {
        self.strict.then(|| "--strict".into())
    }
}

impl Outputs {
    /// Makes sure that the files can be written, while there is no report to lose.
    pub(super) fn probe(&self) -> Result<()> {
        let paths = self.formats().map(|(path, _)| path);
        for path in paths.filter(|path| *path != Path::new("-")) {
            let found = std::fs::metadata(path).ok();
            // Whoever reads a pipe would take this for its end.
            if found
                .as_ref()
                .is_some_and(|it| !it.is_file() && !it.is_dir())
            {
                continue;
            }
            let opened = OpenOptions::new().append(true).create(true).open(path);
            opened.map_err(|source| Error::Write {
                path: path.to_owned(),
                source,
            })?;
            if found.is_none() {
                // Should the run fail, no empty report is left behind.
                let _ = std::fs::remove_file(path);
            }
        }
        Ok(())
    }

    /// Writes the report wherever it is wanted.
    pub(super) fn write(&self, report: &Document, out: &mut dyn Write) -> Result<Verdict> {
        let mut printed = false;
        // What is printed comes first: a file that cannot be written does not lose it.
        for (path, format) in self.formats() {
            if path == Path::new("-") {
                print(out, &format(report)?)?;
                printed = true;
            }
        }
        if !printed {
            print(out, &report::text(report))?;
        }
        for (path, format) in self.formats() {
            if path != Path::new("-") {
                save(path, &format(report)?)?;
            }
        }
        Ok(Verdict::of(report.conformant))
    }

    fn formats(&self) -> impl Iterator<Item = (&Path, Format)> {
        let formats: [(&Option<PathBuf>, Format); 4] = [
            (&self.json, super::json),
            (&self.markdown, |report| Ok(report::markdown_report(report))),
            (&self.junit, |report| Ok(report::junit(report))),
            (&self.html, |report| Ok(report::html_report(report))),
        ];
        formats
            .into_iter()
            .filter_map(|(path, format)| Some((path.as_deref()?, format)))
    }
}

/// What follows to run one requirement against the same command: these options, and
/// the command.
pub(super) fn again(mut options: Vec<OsString>, command: &[OsString]) -> String {
    if !command.is_empty() {
        options.push("--".into());
        options.extend(command.iter().cloned());
    }
    match options.as_slice() {
        [] => String::new(),
        words => format!(" {}", Subject::command(words.to_vec()).command_line()),
    }
}

/// Makes a report's text.
type Format = fn(&Document) -> Result<String>;

pub(super) fn print(out: &mut dyn Write, text: &str) -> Result<()> {
    out.write_all(text.as_bytes()).map_err(Error::Output)
}

pub(super) fn save(path: &Path, text: &str) -> Result<()> {
    std::fs::write(path, text).map_err(|source| Error::Write {
        path: path.to_owned(),
        source,
    })
}
