//! Why a question was answered the way it was.

use std::fmt;
use std::path::PathBuf;

/// Which rule decided a question, or why none did.
///
/// `Display` writes a phrase such as `rule 2 of /project/rules.toml`.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reason {
    /// This rule matched.
    Rule(RuleId),
    /// No rule decided. This rule denies, and the agent says too little to tell whether it
    /// matches; later rules that allow were left out.
    Unclear(RuleId),
    /// Somebody picked an option that means "always", and a rule was added: to this file, or to
    /// the session if there is none.
    Remembered(Option<PathBuf>),
    /// Somebody picked an option that means "always", but no rule could be added.
    NotRemembered(String),
}

/// A rule, for people.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RuleId {
    /// Where the rule stands.
    pub source: RuleSource,
    /// Its number there, from 1 on.
    pub number: usize,
    /// Its name, if it has one.
    pub name: Option<String>,
}

/// Where a rule stands.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum RuleSource {
    /// In the program.
    Program,
    /// In a file.
    File(PathBuf),
    /// Among those that were remembered in the session.
    Session,
}

impl fmt::Display for RuleId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rule {}", self.number)?;
        if let Some(name) = &self.name {
            write!(f, " ({name})")?;
        }
        match &self.source {
            RuleSource::Program => f.write_str(" of the program"),
            RuleSource::File(path) => write!(f, " of {}", path.display()),
            RuleSource::Session => f.write_str(" of this session"),
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rule(rule) => rule.fmt(f),
            Self::Unclear(rule) => write!(f, "the agent says too little to apply {rule}"),
            Self::Remembered(Some(path)) => write!(f, "remembered in {}", path.display()),
            Self::Remembered(None) => f.write_str("remembered for this session"),
            Self::NotRemembered(why) => write!(f, "not remembered: {why}"),
        }
    }
}
