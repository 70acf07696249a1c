//! What the suite says to an agent: prompts by purpose, from a file or built in.
//!
//! A profile is TOML: `auth-method`, `asking-mode`, `logout`, `delete`, and a table `prompts` from
//! a word to the text that is sent. Six words have a meaning for the checks:
//! `hello` is answered with text, `slow` runs until it is cancelled, `tool` makes a
//! tool call, `permission` one that asks for permission, `read` and `terminal` use
//! the client's files and terminals. Every other word is only said, for coverage.
//! `{folder}` in a text becomes the session's working directory.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde::Deserialize;
use serde_json::Value;

use crate::{Error, Result};

/// Prompts, and what the suite may do besides.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Profile {
    /// The method with which the client authenticates before it opens sessions.
    #[serde(default)]
    pub auth_method: Option<String>,
    /// The id of a mode in which the agent asks for permission, if it starts in another one.
    #[serde(default)]
    pub asking_mode: Option<String>,
    /// Whether the agent may be logged out; it may be the user's own login.
    #[serde(default)]
    pub logout: bool,
    /// Whether modes that bypass permissions, and other models, may be selected.
    #[serde(default)]
    pub allow_privileged: bool,
    /// The texts by word.
    #[serde(default)]
    pub prompts: BTreeMap<String, String>,
    /// Words whose text the user has set; an agent does not name them anew.
    #[serde(skip)]
    fixed: BTreeSet<String>,
}

/// How many words an agent may name, and how long the text of each may be, in bytes.
const MAX_WORDS: usize = 64;
const MAX_TEXT: usize = 4096;

const REFERENCE: &str = include_str!("reference.toml");
const STANDARD: &str = include_str!("standard.toml");

impl Profile {
    /// For an agent of which nothing is known: prompts that a model understands.
    #[must_use]
    pub fn unknown_agent() -> Self {
        // Part of the program; a test reads it.
        Self::parse("of every agent", STANDARD).unwrap_or_default()
    }

    /// For the bundled reference agent: each of its words.
    ///
    /// # Errors
    /// Never for the profile as shipped.
    pub fn reference() -> Result<Self> {
        Self::parse("of the reference agent", REFERENCE)
    }

    /// Returns the words whose text is not that of an unknown agent.
    pub(crate) fn own_words(&self) -> Vec<String> {
        let standard = Self::unknown_agent().prompts;
        let own = self.prompts.iter();
        let own = own.filter(|(word, text)| standard.get(*word) != Some(text));
        own.map(|(word, _)| word.clone()).collect()
    }

    /// Sets the text of a word, whatever the agent names.
    pub fn set_prompt(&mut self, word: impl Into<String>, text: impl Into<String>) {
        let word = word.into();
        self.fixed.insert(word.clone());
        self.prompts.insert(word, text.into());
    }

    /// Takes the words that an agent names in its answer to `initialize`:
    /// `"_meta": {"acp-conformance": {"prompts": {"hello": "…"}}}`, or `acp-sdk` instead, as earlier agents
    /// have it. Other members, and texts that are no texts, are ignored: what an agent says permits
    /// nothing.
    #[must_use]
    pub fn with_words_of(mut self, agent: Option<&Value>) -> Self {
        let meta = agent.and_then(|agent| agent.get("_meta"));
        let named = ["acp-conformance", "acp-sdk"].map(|key| meta?.get(key)?.get("prompts"));
        let named = named.into_iter().flatten().find_map(Value::as_object);
        let named = named.into_iter().flatten();
        for (word, text) in named.take(MAX_WORDS) {
            let text = text.as_str().filter(|text| text.len() <= MAX_TEXT);
            if let Some(text) = text.filter(|_| !self.fixed.contains(word)) {
                self.prompts.insert(word.clone(), text.to_owned());
            }
        }
        self
    }

    /// Reads a profile. What it does not say is as for an unknown agent.
    ///
    /// # Errors
    /// When the file cannot be read or says what no profile says.
    pub fn read(path: &Path) -> Result<Self> {
        let text = std::fs::read_to_string(path).map_err(Error::reading(path))?;
        let read = Self::parse(path, &text)?;
        let mut profile = Self::unknown_agent();
        profile.auth_method = read.auth_method;
        profile.asking_mode = read.asking_mode;
        profile.logout = read.logout;
        profile.allow_privileged = read.allow_privileged;
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
    use std::path::PathBuf;
    use std::sync::Arc;
    use std::time::Duration;

    use serde_json::json;

    use super::*;

    #[test]
    fn every_agent_is_sent_the_standard_prompts() {
        let prompts = Profile::unknown_agent().prompts;
        for word in [
            "hello",
            "slow",
            "tool",
            "permission",
            "read",
            "write",
            "relative",
        ] {
            assert!(prompts.contains_key(word), "{word}");
        }
        assert_eq!(Profile::unknown_agent().own_words(), [""; 0]);
    }

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

    #[cfg(unix)]
    #[test]
    fn the_reference_agent_names_the_words_of_its_profile() {
        use crate::harness::{Caps, Conditions, Conn, Env, Unresponsive};
        let env = Env {
            target: crate::target::Target::local(),
            profile: Profile::default(),
            schema: crate::wire::Schema::v1().unwrap(),
            folder: PathBuf::new(),
            timeout: Duration::from_secs(20),
            turn_timeout: Duration::from_secs(20),
            quiet: Duration::from_millis(20),
            unresponsive: Unresponsive::default(),
            conditions: Conditions::default(),
        };
        let mut conn = Conn::start(Arc::new(env)).unwrap();
        let agent = conn.initialize(&Caps::Full).unwrap();
        let named = Profile::default().with_words_of(Some(&agent));
        assert_eq!(named.prompts, Profile::reference().unwrap().prompts);
        assert!(!named.logout && !named.allow_privileged);
    }

    #[test]
    fn an_agent_names_words_and_nothing_else() {
        let long = "x".repeat(MAX_TEXT + 1);
        let prompts = json!({"hello": "hi", "slow": 7, "tool": long});
        let ours = json!({"prompts": prompts, "allow-privileged": true});
        let earlier = json!({"_meta": {"acp-sdk": ours}});
        let agent =
            json!({"_meta": {"acp-conformance": ours, "acp-sdk": {"prompts": {"hello": "no"}}}});
        let profile = Profile::unknown_agent().with_words_of(Some(&agent));
        assert_eq!(
            profile,
            Profile::unknown_agent().with_words_of(Some(&earlier))
        );
        assert_eq!(profile.prompts["hello"], "hi");
        let usual = Profile::unknown_agent();
        assert_eq!(profile.prompts["slow"], usual.prompts["slow"]);
        assert_eq!(profile.prompts["tool"], usual.prompts["tool"]);
        assert!(!profile.allow_privileged);
        assert_eq!(Profile::unknown_agent().with_words_of(None), usual);
        let mut mine = Profile::unknown_agent();
        mine.set_prompt("hello", "my words");
        assert_eq!(
            mine.with_words_of(Some(&agent)).prompts["hello"],
            "my words"
        );
    }
}
