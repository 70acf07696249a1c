//! What the suite says to an agent: prompts by purpose, from a file or built in.
//!
//! A profile is TOML: `auth-method`, `logout`, `delete`, and a table `prompts` from
//! a word to the text that is sent. Six words have a meaning for the checks:
//! `hello` is answered with text, `slow` runs until it is cancelled, `tool` makes a
//! tool call, `permission` one that asks for permission, `read` and `terminal` use
//! the client's files and terminals. Every other word is only said, for coverage.
//! `{folder}` in a text becomes the session's working directory.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;

use crate::{Error, Result};

/// Prompts, and what the suite may do besides.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Profile {
    /// The method with which the client authenticates before it opens sessions.
    #[serde(default)]
    pub auth_method: Option<String>,
    /// Whether the agent may be logged out; it may be the user's own login.
    #[serde(default)]
    pub logout: bool,
    /// The texts by word.
    #[serde(default)]
    pub prompts: BTreeMap<String, String>,
}

const REFERENCE: &str = include_str!("reference.toml");

impl Profile {
    /// For an agent of which nothing is known: three prompts that a model understands.
    #[must_use]
    pub fn unknown_agent() -> Self {
        let prompts = [
            ("hello", "Answer with one short sentence. Use no tools."),
            (
                "slow",
                "Count from 1 to 500 in words, one number a line, and leave none out. Use no tools.",
            ),
            (
                "tool",
                "Create the file {folder}/conformance.txt with the content: hello",
            ),
        ];
        let own = |(word, text): (&str, &str)| (word.to_owned(), text.to_owned());
        Self {
            prompts: prompts.into_iter().map(own).collect(),
            ..Self::default()
        }
    }

    /// For the bundled reference agent: each of its words.
    ///
    /// # Errors
    /// Never for the profile as shipped.
    pub fn reference() -> Result<Self> {
        Self::parse("of the reference agent", REFERENCE)
    }

    /// For the bundled reference agent of version 2, whose prompts are the words themselves.
    #[must_use]
    pub fn second_reference() -> Self {
        let own = |word: &str| (word.to_owned(), word.to_owned());
        Self {
            prompts: ["hello", "slow", "tool", "plan", "form", "url"]
                .map(own)
                .into_iter()
                .collect(),
            ..Self::default()
        }
    }

    /// Reads a profile. What it does not say is as for an unknown agent.
    ///
    /// # Errors
    /// When the file cannot be read or says what no profile says.
    pub fn read(path: &Path) -> Result<Self> {
        let text = std::fs::read_to_string(path).map_err(|source| Error::Read {
            path: path.to_owned(),
            source,
        })?;
        let read = Self::parse(path, &text)?;
        let mut profile = Self::unknown_agent();
        profile.auth_method = read.auth_method;
        profile.logout = read.logout;
        profile.prompts.extend(read.prompts);
        Ok(profile)
    }

    fn parse(path: impl AsRef<Path>, text: &str) -> Result<Self> {
        basic_toml::from_str(text).map_err(|error| Error::Profile {
            path: path.as_ref().to_owned(),
            reason: error.to_string(),
        })
    }

    /// The text of a word.
    #[must_use]
    pub fn prompt(&self, word: &str, folder: &Path) -> Option<String> {
        let text = self.prompts.get(word)?;
        Some(text.replace("{folder}", &folder.to_string_lossy()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_profile_names_prompts_by_word() {
        let profile = Profile::parse("p", "[prompts]\nread = \"look at {folder}/a\"").unwrap();
        let text = profile.prompt("read", Path::new("/w"));
        assert_eq!(text.as_deref(), Some("look at /w/a"));
        assert_eq!(profile.prompt("tool", Path::new("/w")), None);
    }

    #[test]
    fn a_misspelt_key_is_an_error() {
        let error = Profile::parse("p.toml", "promts = 1").unwrap_err();
        assert!(error.to_string().contains("promts"), "{error}");
    }

    #[test]
    fn the_reference_profile_is_valid() {
        let profile = Profile::reference().unwrap();
        assert!(profile.logout && profile.prompts.contains_key("hello"));
    }
}
