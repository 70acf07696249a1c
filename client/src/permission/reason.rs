//! The reason for the answer to a permission request.

use std::borrow::Cow;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

/// What decided a permission request without a person, or why no rule did.
///
/// `Display` writes a phrase such as `rule 2 of /project/rules.toml`.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reason {
    /// This rule matched.
    Rule(RuleId),
    /// This rule denies, but the request has too little information to match it.
    ///
    /// No rule decided; later rules that allow were skipped.
    Unclear(RuleId),
    /// The call names this file of rules, or may change it.
    RulesFile(PathBuf),
    /// The user selected an "always" option, and a rule was added: to this file, or to the session
    /// if `None`.
    Remembered(Option<PathBuf>),
    /// The user selected an "always" option, and a rule was added to the session only: the file could not
    /// be changed, for this reason.
    NotInFile(String),
    /// The user selected an "always" option, but no rule could be added.
    NotRemembered(String),
    /// Rejected without a decision: nobody answered within this time, and the request belongs to no
    /// session that is open.
    NotAnswered(Duration),
    /// Rejected without a decision: a reader of the session took none of the earlier events for this
    /// time, the [`reader_timeout`](crate::ClientBuilder::reader_timeout).
    NotRead(Duration),
    /// A policy or the program decided, without a person or a rule. The text names what decided, and the
    /// remedy if there is one.
    Program(Cow<'static, str>),
}

impl Reason {
    /// Returns whether a person decided, if one `is_asked` for what no rule decides.
    pub(crate) fn is_person(reason: Option<&Self>, is_asked: bool) -> bool {
        match reason {
            None | Some(Self::Unclear(_)) => is_asked,
            Some(Self::Remembered(_) | Self::NotInFile(_) | Self::NotRemembered(_)) => true,
            Some(_) => false,
        }
    }
}

/// Identifies a rule for display.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RuleId {
    /// The source of the rule.
    pub source: RuleSource,
    /// The number of the rule in its source, from 1.
    pub number: usize,
    /// The name of the rule, if any.
    pub name: Option<String>,
}

/// The source of a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum RuleSource {
    /// The program.
    Program,
    /// A file.
    File(PathBuf),
    /// The rules remembered in the session.
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
            Self::Unclear(rule) => write!(f, "the request has too little information for {rule}"),
            Self::RulesFile(path) => {
                write!(f, "the call may change the rules in {}", path.display())
            }
            Self::Remembered(Some(path)) => write!(f, "remembered in {}", path.display()),
            Self::Remembered(None) => f.write_str("remembered for this session"),
            Self::NotInFile(why) => write!(f, "remembered for this session only: {why}"),
            Self::NotRemembered(why) => write!(f, "not remembered: {why}"),
            Self::NotAnswered(limit) => write!(
                f,
                "its session is not open here, and nobody answered within {limit:?}"
            ),
            Self::NotRead(limit) => write!(
                f,
                "the events before the request were not read for {limit:?}, so nobody was asked"
            ),
            Self::Program(why) => f.write_str(why),
        }
    }
}
