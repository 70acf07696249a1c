//! The command line.
//!
//! Results go to standard output or to a file, which is written completely or not at all.

mod diff;
mod export;
mod methods;
mod output;
mod vectors;

use std::path::{Path, PathBuf};

use acp_codegen::{Error, Options, generate, generate_extension};
use acp_schema::{Document, V1_UNSTABLE, V2_UNSTABLE};
use clap::{Args, Parser, ValueEnum};

use self::output::write;

/// Generates typed Rust from an Agent Client Protocol schema document.
#[derive(Debug, Parser)]
#[command(
    version,
    after_help = "Exit codes: 0 done, 1 the document or a file is at fault or a check failed, 2 usage."
)]
pub(crate) enum Command {
    /// Writes the Rust of a document: types, traits, typed callers, dispatch.
    ///
    /// The text is the content of one module and needs the crate `acp-sdk`. The same
    /// input always gives the same text.
    Generate {
        #[command(flatten)]
        source: Source,
        /// Implements `schemars::JsonSchema` for the types. The output then needs the
        /// feature `schemars` of `acp-sdk`.
        #[arg(long)]
        json_schemas: bool,
        /// Uses the Rust type at PATH, such as `::my_crate::Id`, for a definition in place
        /// of a generated one. May be given several times.
        #[arg(long, value_name = "DEFINITION=PATH", value_parser = external)]
        external: Vec<(String, String)>,
        /// Generates only what the overlays add, for use with the types in MODULE, such as
        /// `::acp_sdk::v1`.
        #[arg(long, value_name = "MODULE")]
        extends: Option<String>,
        /// The output file (default: standard output). Replaced atomically on success,
        /// unchanged on failure.
        #[arg(long, value_name = "FILE")]
        out: Option<PathBuf>,
    },
    /// Lists the methods of a document with side, params and result.
    Methods {
        #[command(flatten)]
        source: Source,
        /// Prints JSON instead of a table.
        #[arg(long)]
        json: bool,
    },
    /// Derives test values for every definition, with the expected result of reading each.
    ///
    /// Valid values; invalid values with the JSON Pointers of the invalid places; lenient
    /// values, which are invalid but accepted because of leniency keywords. The format is
    /// JSON, for implementations in any language.
    Vectors {
        #[command(flatten)]
        source: Source,
        /// A directory for one file per definition (default: standard output).
        #[arg(long, value_name = "DIR")]
        out: Option<PathBuf>,
    },
    /// Converts schemas derived from Rust types to an overlay.
    ///
    /// The input is what `schemars::schema_for!` gives, or a list of such. Methods are
    /// marked in the types, by `#[schemars(extend("x-method" = "_my/method", "x-side" =
    /// "agent"))]`. The overlay is checked against the bundled document.
    Export {
        /// The schemas (default: standard input).
        #[arg(value_name = "FILE")]
        file: Option<PathBuf>,
        /// The output file (default: standard output).
        #[arg(long, value_name = "FILE")]
        out: Option<PathBuf>,
    },
    /// Compares two documents: changes of the wire format, and whom they break.
    ///
    /// A change is breaking for a role, such as agent or client, when an implementation of the
    /// role for the old document may fail with a peer for the new one.
    Diff {
        /// The document that peers speak now.
        old: PathBuf,
        /// The document to compare with it.
        new: PathBuf,
        /// An overlay to add to the new document. May be given several times.
        #[arg(long = "overlay", value_name = "FILE")]
        overlays: Vec<PathBuf>,
        #[arg(long, value_enum, default_value_t)]
        format: diff::Format,
        /// Fails with exit code 1 when a change is breaking for this role (default: for any).
        /// Standard error lists these changes.
        #[arg(
            long,
            value_name = "ROLE",
            num_args = 0..=1,
            default_missing_value = diff::ANY
        )]
        deny_breaking: Option<String>,
    },
}

/// Which document.
#[derive(Debug, Args)]
pub(crate) struct Source {
    /// The schema document: JSON Schema 2020-12 with `$defs`, `x-method` and `x-side`
    /// (default: a bundled one). `-` reads standard input.
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
    /// The bundled document: version 1, or the draft of version 2.
    #[arg(
        long,
        value_enum,
        value_name = "VERSION",
        default_value_t,
        conflicts_with = "file"
    )]
    protocol: Version,
    /// Adds the proposals that the bundled document does not contain yet.
    #[arg(long, conflicts_with = "file")]
    unstable: bool,
    /// An overlay to add: definitions, methods, patches. May be given several times.
    #[arg(long = "overlay", value_name = "FILE")]
    overlays: Vec<PathBuf>,
}

/// A version of the protocol that has a bundled document.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Version {
    #[default]
    #[value(name = "1")]
    V1,
    #[value(name = "2")]
    V2,
}

impl Command {
    /// Runs the command. Returns `false` when a requested check failed.
    pub(crate) fn run(self) -> Result<bool, Error> {
        let mut passed = true;
        match self {
            Self::Generate {
                source,
                json_schemas,
                external,
                extends,
                out,
            } => {
                let mut options = source.options();
                options.json_schemas = json_schemas;
                options.external.extend(external);
                let base = source.base()?;
                let document = source.overlaid(base.clone())?;
                let output = match extends {
                    None => generate(&document, &options)?,
                    Some(module) => generate_extension(&base, &document, &module, &options)?,
                };
                write(out.as_deref(), &output.text)?;
            }
            Self::Methods { source, json } => {
                let document = source.document()?;
                let text = if json {
                    methods::json(&document)
                } else {
                    methods::table(&document)
                };
                write(None, &text?)?;
            }
            Self::Vectors { source, out } => vectors::write(&source.document()?, out.as_deref())?,
            Self::Export { file, out } => export::write(file.as_deref(), out.as_deref())?,
            Self::Diff {
                old,
                new,
                overlays,
                format,
                deny_breaking,
            } => {
                let source = |file, overlays| Source {
                    file: Some(file),
                    protocol: Version::default(),
                    unstable: false,
                    overlays,
                };
                let old = source(old, Vec::new()).document()?;
                let new = source(new, overlays).document()?;
                let found = acp_codegen::diff(&old, &new)?;
                write(None, &diff::render(&found, format))?;
                if let Some(denied) = deny_breaking {
                    let refusals = diff::refusals(&found, &denied)?;
                    refusals.iter().for_each(complain);
                    passed = refusals.is_empty();
                }
            }
        }
        Ok(passed)
    }
}

impl Source {
    fn document(&self) -> Result<Document, Error> {
        self.overlaid(self.base()?)
    }

    fn overlaid(&self, mut document: Document) -> Result<Document, Error> {
        for path in &self.overlays {
            let (name, text) = read(path)?;
            document = document.overlay(&name, &text)?;
        }
        Ok(document)
    }

    /// The document without overlays.
    fn base(&self) -> Result<Document, Error> {
        match &self.file {
            Some(path) => {
                let (name, text) = read(path)?;
                Ok(Document::parse(&name, &text)?)
            }
            None => self.bundled(),
        }
    }

    fn bundled(&self) -> Result<Document, Error> {
        let (document, name, proposals) = match self.protocol {
            Version::V1 => (Document::v1()?, "v1.unstable.json", V1_UNSTABLE),
            Version::V2 => (Document::v2()?, "v2.unstable.json", V2_UNSTABLE),
        };
        Ok(match self.unstable {
            true => document.overlay(name, proposals)?,
            false => document,
        })
    }

    fn options(&self) -> Options {
        match (&self.file, self.protocol) {
            (Some(_), _) => Options::other(),
            (None, Version::V1) => Options::v1(),
            (None, Version::V2) => Options::v2(),
        }
    }
}

/// Parses the value of `--external`.
fn external(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, path)) => Ok((name.into(), path.into())),
        None => Err("write DEFINITION=PATH".into()),
    }
}

/// Reads a file, or standard input for `-`.
fn read(path: &Path) -> Result<(String, String), Error> {
    if path == Path::new("-") {
        return Ok(("standard input".into(), acp_codegen::read_stdin()?));
    }
    Ok((path.display().to_string(), acp_codegen::read(path)?))
}

/// Writes a line to standard error, and ignores a closed one; `eprintln!` would panic.
pub(crate) fn complain(line: impl std::fmt::Display) {
    use std::io::Write as _;

    let _ = writeln!(std::io::stderr(), "{line}");
}
