//! Path patterns.

use std::path::{Path, PathBuf};

use globset::{GlobBuilder, GlobMatcher};

use super::RulesError;
use super::glob::{self, Name};
use super::matching::Match;
use super::path::{Base, CallPath, LONGEST};

/// A glob for paths. `*` and `?` match within a name, `**` across names.
#[derive(Debug, Clone)]
pub(super) struct PathPattern {
    text: String,
    /// The pattern itself.
    exact: GlobMatcher,
    /// For rules that deny: case-insensitive, and including everything below.
    wide: Vec<GlobMatcher>,
    /// The leading components without glob characters.
    prefix: PathBuf,
}

impl PathPattern {
    pub(super) fn new(text: &str) -> Result<Self, RulesError> {
        let invalid = |reason: String| RulesError::Pattern {
            pattern: text.to_owned(),
            reason,
        };
        if text.is_empty() || text.len() > LONGEST {
            return Err(invalid(format!("expected 1 to {LONGEST} bytes")));
        }
        let slashed = text.strip_prefix("./").unwrap_or(text);
        if slashed
            .split('/')
            .any(|name| matches!(name, "." | "..") || name.starts_with('~'))
        {
            return Err(invalid(
                "`.`, `..` and `~` are not resolved in patterns; write the resolved path"
                    .to_owned(),
            ));
        }
        let trimmed = match slashed.trim_end_matches('/') {
            "" => "/",
            trimmed => trimmed,
        };
        let compile = |text: &str, any_case: bool| {
            let glob = GlobBuilder::new(text)
                .literal_separator(true)
                .backslash_escape(!cfg!(windows))
                .case_insensitive(any_case)
                .build();
            glob.map(|glob| glob.compile_matcher())
                .map_err(|error| invalid(error.kind().to_string()))
        };
        let below = format!("{}/**", trimmed.trim_end_matches('/'));
        let is_plain = |name: &&str| !name.contains(['*', '?', '[', '{', '\\']);
        let rooted = trimmed.starts_with('/');
        let names = trimmed.split('/').take_while(is_plain);
        let mut prefix = PathBuf::from(if rooted { "/" } else { "" });
        prefix.extend(names.filter(|name| !name.is_empty()));
        Ok(Self {
            text: text.to_owned(),
            exact: compile(trimmed, false)?,
            wide: vec![compile(trimmed, true)?, compile(&below, true)?],
            prefix,
        })
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// Returns whether the pattern does not depend on the session's directory.
    pub(super) fn is_absolute(&self) -> bool {
        self.prefix.has_root() || Path::new(&self.text).is_absolute()
    }

    /// Returns whether the path matches in each interpretation.
    pub(super) fn contains(&self, path: &CallPath, base: Option<&Base>) -> bool {
        let readings = [Some(path.lexical()), path.real()];
        let bases = [base.map(Base::lexical), base.and_then(Base::real)];
        readings.iter().zip(bases).all(|(path, base)| {
            let Some(path) = path else { return true };
            match self.is_absolute() {
                true => self.exact.is_match(path),
                false => base
                    .and_then(|base| path.strip_prefix(base).ok())
                    .is_some_and(|inside| self.exact.is_match(inside)),
            }
        })
    }

    /// Returns whether the path, or one of its parents, may match in any interpretation.
    pub(super) fn touches(&self, path: &CallPath, base: Option<&Base>) -> bool {
        self.forms(path, base)
            .iter()
            .any(|form| self.wide.iter().any(|glob| glob.is_match(form)))
    }

    /// Returns whether the pattern may match a path that also matches a glob of the agent. `Unclear` if
    /// only a path below a match of the pattern does.
    pub(super) fn meets(&self, glob: &CallPath, base: Option<&Base>) -> Match {
        let bases = [base.map(Base::lexical), base.and_then(Base::real)];
        let text = self.text.strip_prefix("./").unwrap_or(&self.text);
        let mut patterns = Vec::new();
        if self.is_absolute() || self.prefix.as_os_str().is_empty() {
            patterns.push(glob::names(Path::new(text)));
        }
        if !self.is_absolute() {
            let bases = bases.into_iter().flatten();
            patterns.extend(bases.map(|base| {
                let mut names = glob::literal_names(base);
                names.extend(glob::names(Path::new(text)));
                names
            }));
        }
        let globs: Vec<_> = glob.glob_readings().map(glob::names).collect();
        let any = |patterns: &[Vec<Name>]| {
            let mut pairs = patterns.iter();
            pairs.any(|pattern| globs.iter().any(|glob| glob::intersect(pattern, glob)))
        };
        if any(&patterns) {
            return Match::Yes;
        }
        patterns.iter_mut().for_each(|names| names.push(Name::Any));
        Match::unclear_if(any(&patterns))
    }

    /// Returns whether the pattern may match something below the path.
    pub(super) fn may_be_below(&self, path: &CallPath, base: Option<&Base>) -> bool {
        self.forms(path, base).iter().any(|form| {
            let mut names = form.components().zip(self.prefix.components());
            names.all(|(a, b)| a.as_os_str().eq_ignore_ascii_case(b.as_os_str()))
        })
    }

    /// Returns the forms of a path that are matched: relative to the base, and absolute, because
    /// `**/x` denies `x` anywhere.
    fn forms<'a>(&self, path: &'a CallPath, base: Option<&'a Base>) -> Vec<&'a Path> {
        let mut forms: Vec<&Path> = Vec::new();
        for reading in path.readings() {
            if self.is_absolute() || self.prefix.as_os_str().is_empty() {
                forms.push(reading);
            }
            let bases = base.map(|base| [Some(base.lexical()), base.real()]);
            for base in bases.into_iter().flatten().flatten() {
                if !self.is_absolute()
                    && let Ok(inside) = reading.strip_prefix(base)
                {
                    forms.push(inside);
                }
            }
        }
        forms
    }
}

#[cfg(all(test, unix))]
mod tests;
