//! Why normative sentences have no requirement that quotes them: the file `requirements/uncovered.toml`.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;

use crate::embedded;
use crate::wire::{Party, Version};

/// The file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    entry: Vec<Entry>,
}

/// A reason and the sentences that have it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Entry {
    pub(super) because: String,
    /// The requirements that judge the sentences, each with its version: `client.version@v1`.
    #[serde(default)]
    judged_by: Vec<String>,
    /// Who must obey the sentences; present beside `judged_by`.
    #[serde(default)]
    pub(super) parties: Vec<Party>,
    /// By the hash of a sentence: words by which a reader recognizes it.
    pub(super) sentences: BTreeMap<String, String>,
}

impl Entry {
    /// Returns the requirements that judge the sentences.
    ///
    /// # Errors
    /// One that names no version.
    pub(super) fn judges(&self) -> impl Iterator<Item = Result<(&str, Version), &str>> {
        self.judged_by.iter().map(|judge| {
            let (id, version) = judge.split_once('@').ok_or(judge.as_str())?;
            match version {
                "v1" => Ok((id, Version::V1)),
                "v2" => Ok((id, Version::V2)),
                _ => Err(judge.as_str()),
            }
        })
    }

    /// Returns the reason, and the requirements that judge the sentences.
    pub(super) fn text(&self) -> String {
        match self.judged_by.as_slice() {
            [] => self.because.clone(),
            judges => format!("{} Judged by {}.", self.because, judges.join(", ")),
        }
    }
}

/// Returns all entries.
pub(super) fn all() -> &'static [Entry] {
    static FILE: LazyLock<File> = LazyLock::new(|| {
        let text = include_str!("../../requirements/uncovered.toml");
        embedded::read("uncovered.toml", text)
    });
    &FILE.entry
}
