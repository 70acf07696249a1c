//! Rule files. `docs/permissions.md` describes their format.

use std::fs::{self, File, TryLockError};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use acp_sdk::v1::ToolKind;
use serde::{Deserialize, Serialize};

use super::command::CommandText;
use super::rule::{Effect, Rule};
use super::{Remember, RulesError};
use crate::text_file;

/// The largest file that is read, in bytes.
const LARGEST: u64 = 1 << 20;

/// Timeout for the lock while another process adds a rule.
const LOCK_WAIT: Duration = Duration::from_secs(5);

/// Interval of attempts to take the lock.
const LOCK_POLL: Duration = Duration::from_millis(10);

/// A rule file, as deserialized.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    remember: Option<Remember>,
    #[serde(default)]
    rule: Vec<Entry>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    effect: EntryEffect,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    kind: Option<OneOrMore<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    path: Option<OneOrMore<String>>,
    /// A shell line, or the words of one command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    command: Option<CommandText>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum EntryEffect {
    Allow,
    Deny,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(untagged)]
enum OneOrMore<T> {
    One(T),
    More(Vec<T>),
}

impl<T> OneOrMore<T> {
    fn into_vec(self) -> Vec<T> {
        match self {
            Self::One(one) => vec![one],
            Self::More(more) => more,
        }
    }
}

/// The contents of a rule file.
pub(super) struct Content {
    pub(super) rules: Vec<Rule>,
    pub(super) remember: Option<Remember>,
}

/// Reads a rule file. Blocks.
pub(super) fn read(path: &Path) -> Result<Content, RulesError> {
    parse(path, &text(path)?)
}

/// Appends a rule to a file, unless it contains the rule, and returns the new contents.
///
/// Replaces the file atomically. Blocks for up to 5 s while other processes add rules.
pub(super) fn add(path: &Path, rule: &Rule) -> Result<Content, RulesError> {
    let failed = |error: io::Error| RulesError::Write {
        path: path.to_owned(),
        reason: error.to_string(),
    };
    // Resolves a symbolic link, so that its target is replaced.
    let path = path.canonicalize().map_err(failed)?;
    let _lock = lock(&path).map_err(failed)?;
    let old = text(&path)?;
    let entry = Entry::of(rule);
    let added = Document {
        remember: None,
        rule: vec![entry],
    };
    let added = toml::to_string(&added).map_err(|error| failed(io::Error::other(error)))?;
    let parsed = parse(&path, &old)?;
    let stands_there = parsed.rules.iter().any(|known| {
        toml::to_string(&Entry::of(known)).ok() == toml::to_string(&Entry::of(rule)).ok()
    });
    if stands_there {
        return Ok(parsed);
    }
    let separator = if old.is_empty() || old.ends_with('\n') {
        "\n"
    } else {
        "\n\n"
    };
    let new = format!("{old}{separator}{added}");
    // Fails if the result is not valid, such as after `rule = [...]`.
    let content = parse(&path, &new)?;
    replace(&path, &new).map_err(failed)?;
    Ok(content)
}

fn text(path: &Path) -> Result<String, RulesError> {
    text_file::read(path, LARGEST).map_err(|reason| RulesError::Read {
        path: path.to_owned(),
        reason,
    })
}

fn parse(path: &Path, text: &str) -> Result<Content, RulesError> {
    let invalid = |reason: String| RulesError::Invalid {
        path: path.to_owned(),
        reason,
    };
    let document: Document = toml::from_str(text).map_err(|error| invalid(error.to_string()))?;
    let rules = document.rule.into_iter().enumerate().map(|(index, entry)| {
        let rule = entry.into_rule();
        rule.map_err(|error| invalid(format!("rule {}: {error}", index + 1)))
    });
    Ok(Content {
        rules: rules.collect::<Result<_, _>>()?,
        remember: document.remember,
    })
}

impl Entry {
    fn of(rule: &Rule) -> Self {
        let some = |list: Vec<String>| (!list.is_empty()).then_some(OneOrMore::More(list));
        Self {
            effect: match rule.effect() {
                Effect::Allow => EntryEffect::Allow,
                Effect::Deny => EntryEffect::Deny,
            },
            name: rule.shown_name().map(str::to_owned),
            kind: some(rule.kinds().iter().map(ToString::to_string).collect()),
            path: some(rule.paths().map(str::to_owned).collect()),
            command: rule.commands().next().cloned(),
        }
    }

    fn into_rule(self) -> Result<Rule, RulesError> {
        let mut rule = Rule::new(match self.effect {
            EntryEffect::Allow => Effect::Allow,
            EntryEffect::Deny => Effect::Deny,
        });
        if let Some(name) = self.name {
            rule = rule.name(name);
        }
        for name in non_empty("kind", self.kind)? {
            rule = match ToolKind::from(name.as_str()) {
                // A misspelt kind would match no call.
                ToolKind::Unknown(name) if !name.starts_with('_') => {
                    return Err(RulesError::Kind { kind: name });
                }
                kind => rule.kind(kind),
            };
        }
        for path in non_empty("path", self.path)? {
            rule = rule.path(&path)?;
        }
        if let Some(command) = self.command {
            rule = rule.command_text(command)?;
        }
        Ok(rule)
    }
}

/// Rejects an empty list, because that condition would match each call.
fn non_empty(
    member: &'static str,
    list: Option<OneOrMore<String>>,
) -> Result<Vec<String>, RulesError> {
    match list.map(OneOrMore::into_vec) {
        Some(list) if list.is_empty() => Err(RulesError::Empty { member }),
        list => Ok(list.unwrap_or_default()),
    }
}

/// Returns the file whose lock protects a rule file.
pub(super) fn lock_path(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".lock");
    path.with_file_name(name)
}

/// Takes the lock in a separate file, because the rule file itself is replaced.
fn lock(path: &Path) -> io::Result<File> {
    let file = File::options()
        .create(true)
        .truncate(false)
        .write(true)
        .open(lock_path(path))?;
    let deadline = Instant::now() + LOCK_WAIT;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::WouldBlock) if Instant::now() < deadline => thread::sleep(LOCK_POLL),
            Err(TryLockError::WouldBlock) => {
                let reason = "another process has locked it for 5 s";
                return Err(io::Error::new(io::ErrorKind::TimedOut, reason));
            }
            Err(TryLockError::Error(error)) => return Err(error),
        }
    }
}

fn replace(path: &Path, text: &str) -> io::Result<()> {
    let dir = path.parent().unwrap_or(Path::new("."));
    let mut file = tempfile::Builder::new().prefix(".rules").tempfile_in(dir)?;
    file.as_file()
        .set_permissions(fs::metadata(path)?.permissions())?;
    file.write_all(text.as_bytes())?;
    file.as_file().sync_all()?;
    file.persist(path).map(drop).map_err(|error| error.error)
}
