//! Generates from the JSON Schemas of other projects, to find what the generator cannot do.
//!
//! ```text
//! hunt FOLDER CRATE
//! ```
//!
//! Each document in FOLDER becomes a module of a crate that is written to CRATE. A schema that is
//! refused is counted by its reason and replaced by `true`, so that the rest of its document is
//! generated. Each document has a process of its own: a crash ends that process only.
//! `codegen/scripts/hunt.sh` compiles the crate.

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "the results of a command"
)]

mod import;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use acp_codegen::{Document, Error, Options, generate};
use serde_json::{Value, json};

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

/// The most schemas of a document that are replaced.
const REFUSALS: usize = 5000;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let result = match arguments.as_slice() {
        ["--one", file, out] => one(Path::new(file), Path::new(out)),
        [folder, out] => all(Path::new(folder), Path::new(out)),
        _ => Err("usage: hunt FOLDER CRATE".into()),
    };
    match result {
        Ok(text) => {
            print!("{text}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// Generates from one document. Returns its definitions and refusals as JSON.
fn one(file: &Path, out: &Path) -> Outcome<String> {
    let mut document = import::import(&serde_json::from_str(&std::fs::read_to_string(file)?)?);
    let mut refused: Vec<String> = Vec::new();
    let text = loop {
        let parsed = Document::parse("document", &document.to_string()).map_err(Error::from);
        let error = match parsed.and_then(|document| generate(&document, &Options::other())) {
            Ok(output) => break output.text,
            Err(error) => error.to_string(),
        };
        let replaced = refused.len() < REFUSALS && replace(&mut document, &error);
        refused.push(error);
        if !replaced {
            return Ok(json!({ "refused": refused }).to_string());
        }
    };
    std::fs::write(out, text)?;
    let definitions = document["$defs"].as_object().map_or(0, |all| all.len());
    Ok(json!({ "definitions": definitions, "refused": refused }).to_string())
}

/// Replaces the schema that an error names by one that accepts any value.
fn replace(document: &mut Value, error: &str) -> bool {
    let Some(rest) = error.strip_prefix("document: ") else {
        return false;
    };
    let mut at = rest.split(": ").next().unwrap_or_default().to_owned();
    // A keyword is replaced with its schema; a default or a list of names is left out.
    loop {
        let Some((parent, last)) = at.rsplit_once('/') else {
            return false;
        };
        let (parent, last) = (parent.to_owned(), last.to_owned());
        let whole = parent.is_empty();
        if matches!(last.as_str(), "default" | "required")
            && let Some(Value::Object(keywords)) = document.pointer_mut(&parent)
            && keywords
                .get(&last)
                .is_some_and(|value| last == "default" || value.is_array())
        {
            keywords.shift_remove(&last);
            return true;
        }
        match document.pointer_mut(&at) {
            _ if whole => return false,
            Some(schema @ (Value::Object(_) | Value::Bool(false))) => {
                *schema = Value::Bool(true);
                return true;
            }
            _ => at = parent,
        }
    }
}

/// Generates from all documents of a folder, and writes the crate and the counts.
fn all(folder: &Path, out: &Path) -> Outcome<String> {
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder)?
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<Result<_, _>>()?;
    files.retain(|file| file.extension().is_some_and(|ending| ending == "json"));
    files.sort();
    let source = out.join("src");
    std::fs::create_dir_all(&source)?;
    let sdk = Path::new(env!("CARGO_MANIFEST_DIR")).join("../sdk");
    let manifest = format!(
        "[package]\nname = \"hunt\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\n\
         [dependencies]\nacp-sdk = {{ path = {sdk:?}, default-features = false }}\n\n[workspace]\n"
    );
    std::fs::write(out.join("Cargo.toml"), manifest)?;
    let mut counts = Counts::default();
    let mut modules = String::from("#![allow(warnings)]\n");
    for (index, file) in files.iter().enumerate() {
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        let module = source.join(format!("d{index}.rs"));
        let run = Command::new(std::env::current_exe()?)
            .arg("--one")
            .args([file, &module])
            .output()?;
        counts.documents += 1;
        if !run.status.success() {
            counts.crashed += 1;
            let error = String::from_utf8_lossy(&run.stderr);
            writeln!(counts.lines, "{name}: CRASHED: {}", error.trim())?;
            continue;
        }
        let result: Value = serde_json::from_slice(&run.stdout)?;
        let refused: Vec<&str> = result["refused"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        for error in &refused {
            *counts.reasons.entry(reason(error)).or_default() += 1;
            writeln!(counts.lines, "{name}: refused: {error}")?;
        }
        match result.get("definitions").and_then(Value::as_u64) {
            None => counts.refused += 1,
            Some(definitions) => {
                counts.whole += usize::from(refused.is_empty());
                counts.definitions += definitions;
                writeln!(modules, "/// {name}\npub mod d{index};")?;
                writeln!(counts.lines, "{name}: d{index}, {definitions} definitions")?;
            }
        }
    }
    std::fs::write(source.join("lib.rs"), modules)?;
    Ok(counts.to_string())
}

#[derive(Default)]
struct Counts {
    documents: usize,
    whole: usize,
    refused: usize,
    crashed: usize,
    definitions: u64,
    /// Refused schemas by reason.
    reasons: BTreeMap<String, usize>,
    lines: String,
}

impl std::fmt::Display for Counts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.lines)?;
        let refused = self.reasons.values().sum::<usize>();
        writeln!(
            f,
            "\n{} documents: {} generated whole, {} without the schemas that are refused, \
             {} refused, {} crashed\n{} definitions, {refused} schemas refused:",
            self.documents,
            self.whole,
            self.documents - self.whole - self.refused - self.crashed,
            self.refused,
            self.crashed,
            self.definitions,
        )?;
        let mut reasons: Vec<_> = self.reasons.iter().collect();
        reasons.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
        reasons
            .into_iter()
            .try_for_each(|(reason, count)| writeln!(f, "{count:6}  {reason}"))
    }
}

/// The reason of an error without its place, remedy and names.
fn reason(error: &str) -> String {
    let rest = error.strip_prefix("document: ").unwrap_or(error);
    let reason = rest.split_once(": ").map_or(rest, |(_, reason)| reason);
    let reason = reason.split("; ").next().unwrap_or(reason);
    // Every second part stands in backticks.
    let parts = reason.split('`').enumerate();
    let parts = parts.map(|(index, part)| if index % 2 == 1 { "…" } else { part });
    parts.collect()
}
