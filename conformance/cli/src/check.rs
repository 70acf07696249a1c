//! `acp-conformance check`: recorded traffic, message by message.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

use clap::ValueEnum;
use clap::builder::PossibleValuesParser;
use serde::Serialize;

use crate::progress::Progress;
use crate::{Verdict, write_json};
use acp_conformance::judge::{self, CheckOptions, Diagnostic, Level, Spoken, Summary, Tally};
use acp_conformance::transcript::{self, LINE_LIMIT};
use acp_conformance::wire::{Basis, Party, Schemas, Version};
use acp_conformance::{Error, Result};

/// Check recorded traffic, message by message
///
/// Reads transcripts ({"dir": "c2a"|"a2c", "msg": {…}} a line, "raw" for a line
/// that was no message, "lost" for messages not recorded) and plain NDJSON, whose directions are inferred:
/// from the method, else from the request that an answer belongs to; where both
/// sides have one with that id, from the schema, else from age.
///
/// Every finding is one line: file, line, level and requirement, who wrote the message,
/// its method, a JSON Pointer into it and what is wrong. The requirements are those of `agent`
/// and `client`, which `list` explains, and so are the verdicts: what breaks a MUST is an
/// error, what breaks a SHOULD or follows from the schema a warning, and what the protocol
/// leaves open a note. Known extensions and a request of the client that the agent
/// refused, a probe, are notes. Where the beginning of a connection or part of it is
/// missing, nothing is held against anybody that it may explain.
///
/// A recording is judged by the version of the protocol that its `initialize` agrees on,
/// and by version 1 where it has none, which is then said. In version 2 the entries of a
/// batch are judged one by one.
///
/// With --dialect, a recording of another system's protocol is judged by the document of that
/// protocol: requests, results by the method of their request, notifications and errors.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Files, and folders to search for *.jsonl and *.ndjson
    #[arg(required = true, value_name = "FILE|DIR")]
    paths: Vec<PathBuf>,
    /// Who wrote the messages that carry no direction; inferred otherwise
    #[arg(long, value_name = "PARTY")]
    from: Option<Target>,
    /// The version of the protocol to judge by, 1, or 2 for the draft, whatever `initialize` says
    #[arg(long, value_name = "N", value_parser = crate::version)]
    protocol: Option<Version>,
    /// Judge by the protocol of another system instead: by its document in schema/dialects alone, so that
    /// what breaks that is an error. See docs/dialects.md
    #[arg(long, value_name = "NAME", conflicts_with = "protocol",
        value_parser = PossibleValuesParser::new(Schemas::dialects()))]
    dialect: Option<String>,
    /// Whose errors decide the verdict; both parties' by default
    #[arg(long, value_name = "PARTY")]
    side: Option<Target>,
    /// Let warnings decide the verdict too
    #[arg(long)]
    strict: bool,
    /// Print notes too, and a line for each of several files, also for those without findings
    #[arg(long)]
    notes: bool,
    /// Print one JSON object a line: findings, files, and the total
    #[arg(long)]
    json: bool,
    /// The longest line, in bytes
    #[arg(long, value_name = "BYTES", default_value_t = LINE_LIMIT)]
    max_line: usize,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Target {
    Agent,
    Client,
}

impl From<Target> for Party {
    fn from(side: Target) -> Self {
        match side {
            Target::Agent => Self::Agent,
            Target::Client => Self::Client,
        }
    }
}

/// A line of `--json`.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub(crate) enum Entry<'a> {
    Finding {
        file: &'a str,
        #[serde(flatten)]
        finding: &'a Diagnostic,
    },
    File {
        file: &'a str,
        #[serde(flatten)]
        summary: Summary,
    },
    Total {
        files: usize,
        conformant: bool,
        #[serde(flatten)]
        summary: Summary,
    },
}

pub(crate) fn run(args: &Args, out: &mut dyn Write) -> Result<Verdict> {
    let files = transcript::files(&args.paths)?;
    let schemas = match &args.dialect {
        Some(name) => Schemas::dialect(name)?,
        None => Schemas::given(args.protocol)?,
    };
    let size = |path: &PathBuf| path.metadata().map_or(0, |metadata| metadata.len());
    let mut run = Run {
        args,
        progress: Progress::bytes(files.iter().map(size).sum()),
        total: Summary::default(),
        decisive: 0,
        lists_all: args.notes || files.len() == 1,
        silent: 0,
        out,
    };
    for path in &files {
        run.file(path, &schemas)?;
    }
    let conformant = run.decisive == 0;
    run.end(files.len(), conformant)?;
    Ok(Verdict::of(conformant))
}

struct Run<'a> {
    args: &'a Args,
    progress: Progress,
    total: Summary,
    decisive: u64,
    /// Whether files without findings have a line.
    lists_all: bool,
    /// How many files have none.
    silent: usize,
    out: &'a mut dyn Write,
}

impl Run<'_> {
    fn file(&mut self, path: &Path, schemas: &Schemas) -> Result<()> {
        let name = path.display().to_string();
        let failed = Error::reading(path);
        let options = CheckOptions {
            line_limit: self.args.max_line,
            from: self.args.from.map(Party::from),
        };
        let mut written = Ok(());
        let (args, progress) = (self.args, &mut self.progress);
        let (out, decisive) = (&mut *self.out, &mut self.decisive);
        let found = |finding: Diagnostic| {
            if decides(args, &finding) {
                *decisive += 1;
            }
            if written.is_ok() && (args.notes || finding.level > Level::Note) {
                written = print(args, out, &name, &finding);
            }
        };
        let reader = File::open(path).map_err(failed)?;
        let summary = judge::check(reader, schemas.clone(), &options, found, |bytes| {
            progress.advance(bytes);
        })
        .map_err(failed)?;
        written?;
        self.total.add(summary);
        if self.args.json {
            return self.entry(&Entry::File {
                file: &name,
                summary,
            });
        }
        if !self.lists_all && summary.errors == 0 && summary.warnings == 0 {
            self.silent += 1;
            return Ok(());
        }
        let Summary { agent, client, .. } = summary;
        self.text(&format!(
            "{name}: {}, agent {}, client {}{}: {}",
            messages(summary.messages()),
            agent.messages,
            client.messages,
            spoken(summary),
            findings(summary)
        ))
    }

    fn end(&mut self, files: usize, conformant: bool) -> Result<()> {
        let summary = self.total;
        if self.args.json {
            return self.entry(&Entry::Total {
                files,
                conformant,
                summary,
            });
        }
        let plural = if files == 1 { "file" } else { "files" };
        let silent = match self.silent {
            0 => String::new(),
            silent => format!(" ({silent} without errors and warnings; --notes lists all)"),
        };
        self.text(&format!(
            "\n{files} {plural}{silent}, {}, {}",
            messages(summary.messages()),
            findings(summary)
        ))?;
        for (party, tally) in [("agent", summary.agent), ("client", summary.client)] {
            self.text(&format!("  {party:<7} {}", counts(tally)))?;
        }
        if summary.unknown > 0 {
            let unknown = summary.unknown;
            self.text(&format!(
                "  unknown {unknown} messages, envelope checked only"
            ))?;
        }
        self.text(match (conformant, summary.messages()) {
            (false, _) => "not conformant",
            (true, 0) => "no message, nothing to object to",
            (true, _) => "conformant",
        })
    }

    fn text(&mut self, line: &str) -> Result<()> {
        writeln!(self.out, "{line}").map_err(Error::Output)
    }

    fn entry(&mut self, entry: &Entry<'_>) -> Result<()> {
        write_json(self.out, entry)
    }
}

fn decides(args: &Args, diagnostic: &Diagnostic) -> bool {
    let floor = if args.strict {
        Level::Warning
    } else {
        Level::Error
    };
    let (side, by) = (args.side.map(Party::from), diagnostic.finding.by);
    diagnostic.level >= floor && (side.is_none() || by.is_none() || by == side)
}

fn print(args: &Args, out: &mut dyn Write, file: &str, found: &Diagnostic) -> Result<()> {
    if args.json {
        let finding = found;
        return write_json(out, &Entry::Finding { file, finding });
    }
    writeln!(out, "{file}:{}: {found}", found.finding.place).map_err(Error::Output)
}

fn messages(count: u64) -> String {
    match count {
        1 => "1 message".to_owned(),
        many => format!("{many} messages"),
    }
}

fn counts(tally: Tally) -> String {
    let Tally {
        messages,
        valid,
        invalid,
        open,
        raw,
        lost,
    } = tally;
    let mut text = format!("{messages} messages: {valid} valid, {invalid} invalid");
    if open > 0 {
        text.push_str(&format!(", {open} outside the schema"));
    }
    if raw > 0 {
        text.push_str(&format!("; {raw} lines that are no messages"));
    }
    if lost > 0 {
        text.push_str(&format!("; {lost} not recorded"));
    }
    text
}

/// Whether messages were judged by a version that nobody named.
#[cfg(unix)]
pub(crate) fn is_assumed(summary: Summary) -> bool {
    let assumed = |spoken: Spoken| spoken.basis == Basis::Assumed;
    summary.messages() > 0 && summary.protocol.is_some_and(assumed)
}

/// The version that messages were judged by, unless there was nothing to judge.
pub(crate) fn spoken(summary: Summary) -> String {
    let Some(Spoken {
        version,
        dialect,
        basis,
    }) = summary.protocol
    else {
        return String::new();
    };
    if let Some(dialect) = dialect {
        return format!(", dialect {dialect}");
    }
    match (summary.messages(), basis) {
        (0, _) => String::new(),
        (_, Basis::Given | Basis::Agreed) => format!(", version {version}"),
        (_, Basis::Unsupported) => {
            format!(", version {version}, which has no schema here: only JSON-RPC was checked")
        }
        (_, Basis::Asked) => format!(", version {version} as asked for"),
        (_, Basis::Assumed) => format!(", version {version} assumed without `initialize`"),
    }
}

pub(crate) fn findings(summary: Summary) -> String {
    let parts: Vec<String> = [
        (summary.errors, "error"),
        (summary.warnings, "warning"),
        (summary.notes, "note"),
    ]
    .into_iter()
    .filter(|(count, _)| *count > 0)
    .map(|(count, name)| format!("{count} {name}{}", if count == 1 { "" } else { "s" }))
    .collect();
    if parts.is_empty() {
        "no findings".to_owned()
    } else {
        parts.join(", ")
    }
}
