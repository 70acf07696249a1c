//! The members of a table, taken one by one, so that each error names its member.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::time::Duration;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use toml::{Table, Value};

/// A member, if the error is about one, and the reason.
type Failed = (Option<String>, String);

/// A table whose members are taken.
pub(super) struct Members {
    table: Table,
    /// The member that the table is of, with a dot; empty for an agent.
    of: String,
}

/// A command line: a text that is split as by a shell, or a list.
#[derive(Debug, Deserialize)]
#[serde(untagged, expecting = "expected a text or a list of texts")]
pub(super) enum Words {
    Text(String),
    List(Vec<String>),
}

impl Words {
    pub(super) fn split(self) -> Result<Vec<OsString>, String> {
        let words = match self {
            Self::Text(text) => shell_words::split(&text)
                .map_err(|error| format!("it cannot be split into words: {error}"))?,
            Self::List(words) => words,
        };
        match words.first() {
            Some(program) if !program.is_empty() => {
                Ok(words.into_iter().map(OsString::from).collect())
            }
            _ => Err("it is empty".to_owned()),
        }
    }
}

impl Members {
    /// # Errors
    ///
    /// When the table of `of` has a member that is not known.
    pub(super) fn new(table: Table, of: String, known: &[&str]) -> Result<Self, Failed> {
        let members = Self { table, of };
        let mut names = members.table.keys();
        match names.find(|name| !known.contains(&&***name)) {
            None => Ok(members),
            Some(unknown) => Err((
                members.path(unknown),
                format!("it is unknown; known are {}", quoted(known, ", ")),
            )),
        }
    }

    fn path(&self, member: &str) -> Option<String> {
        Some(format!("{}{member}", self.of))
    }

    /// Takes a member.
    pub(super) fn take<T: DeserializeOwned>(
        &mut self,
        member: &'static str,
    ) -> Result<Option<T>, Failed> {
        let Some(value) = self.table.remove(member) else {
            return Ok(None);
        };
        let taken = value.try_into().map(Some);
        taken.map_err(|error| (self.path(member), error.to_string().trim_end().to_owned()))
    }

    pub(super) fn required<T: DeserializeOwned>(
        &mut self,
        member: &'static str,
    ) -> Result<T, Failed> {
        let missing = || (None, format!("it has no `{member}`"));
        self.take(member)?.ok_or_else(missing)
    }

    /// Takes a member if it is a text.
    pub(super) fn text_of(&mut self, member: &'static str) -> Option<String> {
        match self.table.get(member) {
            Some(Value::String(_)) => self.take(member).ok().flatten(),
            _ => None,
        }
    }

    /// Takes a text that must be one of a few.
    pub(super) fn one_of(
        &mut self,
        member: &'static str,
        accepted: &[&str],
    ) -> Result<Option<String>, Failed> {
        let Some(text) = self.take::<String>(member)? else {
            return Ok(None);
        };
        match accepted.contains(&&*text) {
            true => Ok(Some(text)),
            false => Err((
                self.path(member),
                format!("expected {}, got `{text}`", quoted(accepted, " or ")),
            )),
        }
    }

    /// Takes a number from 1 on.
    pub(super) fn count(&mut self, member: &'static str) -> Result<Option<usize>, Failed> {
        match self.take(member)? {
            Some(0) => Err((self.path(member), "expected a number from 1 on".to_owned())),
            count => Ok(count),
        }
    }

    /// Takes environment variables.
    pub(super) fn variables(
        &mut self,
        member: &'static str,
    ) -> Result<BTreeMap<String, String>, Failed> {
        let variables: BTreeMap<String, String> = self.take(member)?.unwrap_or_default();
        let wrong = |(name, value): &(&String, &String)| {
            name.is_empty() || name.contains(['=', '\0']) || value.contains('\0')
        };
        match variables.iter().find(wrong) {
            // Its value may be a secret.
            Some((name, _)) => Err((
                self.path(member),
                format!("{name:?} is no variable: a name has no `=`, and neither has a zero byte"),
            )),
            None => Ok(variables),
        }
    }

    /// Takes a member that is a table with these members.
    pub(super) fn table(
        &mut self,
        member: &'static str,
        known: &[&str],
    ) -> Result<Option<Self>, Failed> {
        let Some(table) = self.take(member)? else {
            return Ok(None);
        };
        Self::new(table, format!("{}{member}.", self.of), known).map(Some)
    }
}

/// Takes a number of seconds.
pub(super) fn duration(
    members: &mut Members,
    member: &'static str,
) -> Result<Option<Duration>, Failed> {
    let seconds = match members.table.remove(member) {
        None => return Ok(None),
        Some(Value::Integer(seconds)) => seconds as f64,
        Some(Value::Float(seconds)) => seconds,
        Some(_) => f64::NAN,
    };
    match Duration::try_from_secs_f64(seconds) {
        Ok(duration) if !duration.is_zero() => Ok(Some(duration)),
        _ => Err((
            members.path(member),
            "expected a number of seconds above 0".to_owned(),
        )),
    }
}

fn quoted(names: &[&str], separator: &str) -> String {
    let names: Vec<_> = names.iter().map(|name| format!("`{name}`")).collect();
    names.join(separator)
}
