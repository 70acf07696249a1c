//! Where the report on an agent or a client goes, and which requirements are run.

use std::ffi::OsString;
use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use crate::Verdict;
use acp_conformance::harness::Transcripts;
use acp_conformance::report::{self, Document, KnownFinding, RowPages};
use acp_conformance::requirements::Choice;
use acp_conformance::target::Target;
use acp_conformance::{Error, Result};

/// Options that choose requirements.
#[derive(Debug, clap::Args)]
pub(crate) struct Chosen {
    /// Run only this requirement, area or tier; may be repeated
    #[arg(long, value_name = "NAME")]
    only: Vec<String>,
    /// Leave this requirement, area or tier out; may be repeated
    #[arg(long, value_name = "NAME")]
    skip: Vec<String>,
    /// Let requirements of the tiers `derived` and `should` decide the verdict too
    #[arg(long)]
    pub(crate) strict: bool,
    /// Accept the findings in this TOML file, each an `id` and a `reason` under `[[known]]`: they stay
    /// in the report and do not decide; entries that pass now are reported as stale
    #[arg(long, value_name = "FILE")]
    known: Option<PathBuf>,
}

/// Options that say where the report goes, and where the traffic.
#[derive(Debug, clap::Args)]
pub(crate) struct Outputs {
    #[command(flatten)]
    formats: Formats,
    /// Write the traffic of each check to files in a new or empty folder, a file for each connection, in
    /// the format that `acp-conformance check` reads. Secrets are redacted; prompts and files are not
    #[arg(long, value_name = "DIR")]
    transcripts: Option<PathBuf>,
}

/// Options that say where the report goes.
#[derive(Debug, clap::Args)]
pub(crate) struct Formats {
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
    /// Write a badge with the verdict to a file too: FILE.svg is a picture, FILE.json an endpoint badge
    /// of shields.io; may be repeated
    #[arg(long, value_name = "FILE", value_parser = badge)]
    badge: Vec<PathBuf>,
}

/// A file whose name says which format of badge it is to have.
fn badge(name: &str) -> Result<PathBuf, String> {
    let path = PathBuf::from(name);
    match report::is_badge(&path) {
        true => Ok(path),
        false => Err("expected a name that ends in .svg or .json".to_owned()),
    }
}

impl Chosen {
    /// The requirements to run.
    pub(crate) fn choice(&self) -> Choice {
        Choice {
            only: self.only.clone(),
            skip: self.skip.clone(),
        }
    }

    /// The findings that are accepted.
    pub(crate) fn known(&self) -> Result<Vec<KnownFinding>> {
        match &self.known {
            Some(path) => KnownFinding::read(path),
            None => Ok(Vec::new()),
        }
    }

    /// The options `--strict` and `--known`, as far as they were given.
    pub(crate) fn verdict_options(&self) -> Vec<OsString> {
        let strict = self.strict.then(|| "--strict".into());
        let known = self.known.iter();
        let known = known.flat_map(|path| ["--known".into(), path.clone().into_os_string()]);
        strict.into_iter().chain(known).collect()
    }
}

impl Outputs {
    /// Makes sure that the files can be written, while there is no report to lose.
    pub(crate) fn probe(&self) -> Result<()> {
        let paths = self.formats.printable().map(|(path, _)| path);
        let others = self.formats.html.iter().chain(&self.formats.badge);
        let paths = paths.chain(others.map(PathBuf::as_path));
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
            opened.map_err(Error::writing(path))?;
            if found.is_none() {
                // Should the run fail, no empty report is left behind.
                let _ = std::fs::remove_file(path);
            }
        }
        Ok(())
    }

    /// Creates the folder for transcripts, if there is to be one.
    pub(crate) fn transcripts(&self) -> Result<Option<Arc<Transcripts>>> {
        let transcripts = self.transcripts.as_deref().map(Transcripts::create);
        Ok(transcripts.transpose()?.map(Arc::new))
    }

    /// Writes the report wherever it is wanted.
    pub(crate) fn write(
        &self,
        mut report: Document,
        transcripts: Option<&Transcripts>,
        out: &mut dyn Write,
    ) -> Result<Verdict> {
        let folder = transcripts.map(Transcripts::folder);
        report.transcripts = folder.map(|folder| folder.to_string_lossy().into_owned());
        let verdict = self.formats.write(&report, out)?;
        if let Some(transcripts) = transcripts {
            transcripts.finish()?;
        }
        Ok(verdict)
    }
}

impl Formats {
    /// Writes the report wherever it is wanted.
    pub(crate) fn write(&self, report: &Document, out: &mut dyn Write) -> Result<Verdict> {
        let mut printed = false;
        // What is printed comes first: a file that cannot be written does not lose it.
        for (path, format) in self.printable() {
            if path == Path::new("-") {
                print(out, &format(report, path)?)?;
                printed = true;
            }
        }
        if !printed {
            print(out, &report::text(report)?)?;
        }
        for (path, format) in self.printable() {
            if path != Path::new("-") {
                save(path, &format(report, path)?)?;
            }
        }
        if let Some(path) = &self.html {
            let mut report = report.clone();
            let folder = report.transcripts.as_deref();
            report.transcripts = folder.map(|folder| link(path, Path::new(folder)));
            save(
                path,
                &report::html_report(&report, &RowPages::beside(path))?,
            )?;
        }
        for path in &self.badge {
            save(path, &report::badge_for(path, report)?)?;
        }
        Ok(report.verdict.into())
    }

    /// The formats that can be printed, too.
    fn printable(&self) -> impl Iterator<Item = (&Path, Format)> {
        let formats: [(&Option<PathBuf>, Format); 3] = [
            (&self.json, |report, _| crate::json(report)),
            (&self.markdown, markdown),
            (&self.junit, |report, _| report::junit(report)),
        ];
        formats
            .into_iter()
            .filter_map(|(path, format)| Some((path.as_deref()?, format)))
    }
}

/// Returns the path of a folder as a page at `page` links to it: relative, where both are below one
/// root.
fn link(page: &Path, folder: &Path) -> String {
    let absolute = |path: &Path| std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let (page, folder) = (absolute(page), absolute(folder));
    let base: Vec<_> = page.parent().unwrap_or(&page).components().collect();
    let names: Vec<_> = folder.components().collect();
    let pairs = base.iter().zip(&names);
    let shared = pairs.take_while(|(one, other)| one == other).count();
    if shared == 0 {
        return folder.to_string_lossy().into_owned();
    }
    let up = base.iter().skip(shared).map(|_| Component::ParentDir);
    let down = names.iter().skip(shared).copied();
    let words = up
        .chain(down)
        .map(|part| part.as_os_str().to_string_lossy());
    words.collect::<Vec<_>>().join("/")
}

/// What follows to run one requirement against the same command: these options, and
/// the command.
pub(crate) fn again(mut options: Vec<OsString>, command: &[OsString]) -> String {
    if !command.is_empty() {
        options.push("--".into());
        options.extend(command.iter().cloned());
    }
    match options.as_slice() {
        [] => String::new(),
        words => format!(" {}", Target::command(words.to_vec()).command_line()),
    }
}

/// Makes a report's text for a file.
type Format = fn(&Document, &Path) -> Result<String>;

/// The report as Markdown; what is printed is read elsewhere, where a relative link would lead nowhere.
fn markdown(report: &Document, path: &Path) -> Result<String> {
    let pages = match path == Path::new("-") {
        true => RowPages::default(),
        false => RowPages::beside(path),
    };
    report::markdown_report(report, &pages)
}

pub(crate) fn print(out: &mut dyn Write, text: &str) -> Result<()> {
    out.write_all(text.as_bytes()).map_err(Error::Output)
}

pub(crate) fn save(path: &Path, text: &str) -> Result<()> {
    std::fs::write(path, text).map_err(Error::writing(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_links_to_the_folder_of_transcripts_from_where_it_is() {
        for (page, folder, expected) in [
            ("report.html", "traffic", "traffic"),
            ("out/report.html", "out/traffic", "traffic"),
            ("out/a/report.html", "out/b/traffic", "../../out/b/traffic"),
            ("/x/report.html", "/x", ""),
        ] {
            let found = link(Path::new(page), Path::new(folder));
            let expected = expected.replace("../../out/b", "../b");
            assert_eq!(found, expected, "{page}");
        }
    }
}
