//! `acp-conformance specification`: the pages and schemas that the requirements quote.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::Verdict;
use acp_conformance::specification::{self, Coverage, Facts, PINNED, Page, Quote, Release};
use acp_conformance::{Error, Result};

/// Compare the requirements with the pages and the schemas of the specification
///
/// DIR is a checkout of github.com/agentclientprotocol/agent-client-protocol. SCHEMA is a folder with the
/// official schemas, as the folder `schema` of the npm package @agentclientprotocol/sdk has them. Every
/// report names the revision and the schemas that the requirements were verified against.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Action,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// Show what differs from the pinned revision: lost quotes, new and removed normative sentences
    Changes {
        /// A checkout of the specification's repository
        dir: PathBuf,
        /// A folder with `v1/schema.json` and `v2/schema.json`
        #[arg(long)]
        schema: PathBuf,
    },
    /// List the normative sentences that no requirement quotes, by the reason why, and count all by how
    /// far they are judged; exit code 1 if one has no reason, or a reason no sentence
    Uncovered {
        /// A checkout of the specification's repository
        dir: PathBuf,
        /// A folder with `v1/schema.json` and `v2/schema.json`
        #[arg(long)]
        schema: PathBuf,
    },
    /// Print the facts about a revision and a release of the schemas, for the file specification.toml
    Facts {
        /// A checkout of the specification's repository
        dir: PathBuf,
        /// A folder with `v1/schema.json` and `v2/schema.json`
        #[arg(long)]
        schema: PathBuf,
        /// The date of the schemas' release, such as 2026-11-02
        #[arg(long, value_name = "DATE")]
        schema_date: String,
    },
}

pub(crate) fn run(args: &Args, out: &mut dyn Write) -> Result<Verdict> {
    let quotes: Vec<Quote> = specification::quotes().collect();
    let (text, is_same) = match &args.command {
        Action::Changes { dir, schema } => {
            let (schemas, _) = schemas(schema)?;
            changes(&[pages(dir)?, schemas].concat(), &quotes)
        }
        Action::Uncovered { dir, schema } => {
            let (schemas, _) = schemas(schema)?;
            uncovered(&[pages(dir)?, schemas].concat(), &quotes)
        }
        Action::Facts {
            dir,
            schema,
            schema_date,
        } => {
            let (revision, date) = revision(dir)?;
            let (schemas, sha256) = schemas(schema)?;
            let release = Release {
                date: schema_date.clone(),
                sha256,
            };
            let pages = [pages(dir)?, schemas].concat();
            let facts = Facts::of(&pages, &revision, &date, release, &quotes);
            (facts.text(), true)
        }
    };
    out.write_all(text.as_bytes()).map_err(Error::Output)?;
    Ok(Verdict::of(is_same))
}

fn pages(dir: &Path) -> Result<Vec<Page>> {
    Page::all(dir).map_err(|source| Error::Specification {
        path: dir.to_owned(),
        reason: source.to_string(),
    })
}

/// Reads the descriptions of the schemas in a folder, and their hash.
fn schemas(dir: &Path) -> Result<(Vec<Page>, String)> {
    specification::schemas(dir).map_err(|source| Error::Specification {
        path: dir.to_owned(),
        reason: source.to_string(),
    })
}

fn changes(pages: &[Page], quotes: &[Quote]) -> (String, bool) {
    let changes = PINNED.changes(pages, quotes);
    let mut text = format!("compared with revision {}\n", PINNED.name());
    for quote in &changes.lost {
        text += &format!(
            "lost quote: {} in {}: {}\n",
            quote.id, quote.page, quote.words
        );
    }
    for (page, sentence) in &changes.added {
        text += &format!("new: {page}, {}: {}\n", sentence.heading, sentence.text);
    }
    for (page, count) in &changes.removed {
        text += &format!("removed: {page}: {count} normative sentences\n");
    }
    text += &format!(
        "{} quotes lost, {} normative sentences new, {} removed\n",
        changes.lost.len(),
        changes.added.len(),
        changes.removed.values().sum::<usize>()
    );
    (text, changes.lost.is_empty())
}

fn uncovered(pages: &[Page], quotes: &[Quote]) -> (String, bool) {
    let facts = Facts::of(pages, "", "", Release::default(), quotes);
    let coverage = Coverage::of(&facts);
    let mut groups: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for page in pages {
        for sentence in &page.sentences {
            let hash = sentence.hash();
            if sentence.strength().is_some()
                && let Some(reason) = coverage.reason(&page.name, &hash)
            {
                let (page, heading, text) = (&page.name, &sentence.heading, &sentence.text);
                let line = format!("  {hash} {page}, {heading}: {text}\n");
                groups.entry(reason).or_default().push(line);
            }
        }
    }
    let mut text = String::new();
    for (reason, lines) in groups {
        text += &format!("{reason}\n{}\n", lines.concat());
    }
    let problems = coverage.problems();
    for problem in &problems {
        text += &format!("{problem}\n");
    }
    text += &coverage.table();
    (text, problems.is_empty())
}

/// Returns the commit of a checkout and its date.
fn revision(dir: &Path) -> Result<(String, String)> {
    let failed = |reason: String| Error::Specification {
        path: dir.to_owned(),
        reason,
    };
    let mut git = Command::new("git");
    git.arg("-C")
        .arg(dir)
        .args(["log", "-1", "--format=%H %cs"]);
    let output = git
        .output()
        .map_err(|error| failed(format!("git: {error}")))?;
    let said = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    match said.split_once(' ') {
        Some((revision, date)) if output.status.success() => Ok((revision.into(), date.into())),
        _ => Err(failed("it is no checkout of git".to_owned())),
    }
}
