//! Paths of tool calls, and path patterns.

use std::path::{Component, Path, PathBuf};

use globset::{GlobBuilder, GlobMatcher};

use super::RulesError;

/// The longest path that is matched, in bytes.
const LONGEST: usize = 4096;

/// A resolved path of a tool call: absolute, with `.` and `..` removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CallPath {
    /// The absolute path without further changes.
    written: PathBuf,
    /// The path with `.` and `..` removed lexically.
    lexical: PathBuf,
    /// The path with symbolic links resolved, as far as it exists on this machine.
    real: Option<PathBuf>,
    is_dir: bool,
}

/// The directory of a session.
#[derive(Debug, Clone)]
pub(super) struct Base {
    lexical: PathBuf,
    real: Option<PathBuf>,
}

impl Base {
    pub(super) fn new(dir: &Path) -> Option<Self> {
        let lexical = dir.is_absolute().then(|| fold(dir))?;
        let real = None;
        Some(Self { lexical, real })
    }

    /// Resolves symbolic links. Blocks for as long as the file system takes.
    pub(super) fn follow_links(&mut self) {
        self.real = real(&self.lexical);
    }
}

impl CallPath {
    /// Resolves a path of the agent; `None` if it is ambiguous.
    pub(super) fn resolve(text: &str, base: Option<&Base>) -> Option<Self> {
        // Characters that a shell, an agent or another system may interpret.
        let expands = |c: char| matches!(c, '$' | '`' | '%') || c.is_control();
        let foreign = !cfg!(windows) && text.contains('\\');
        let uri = text.contains("://") || text.starts_with("file:");
        if text.is_empty()
            || text.len() > LONGEST
            || text.starts_with('~')
            || text.trim() != text
            || text.contains(expands)
            || foreign
            || uri
        {
            return None;
        }
        let path = Path::new(text);
        let written = match path.is_absolute() {
            true => path.to_owned(),
            false => base?.lexical.join(path),
        };
        // On Windows, `C:x` and `\x` are relative to more than the session's directory.
        written.is_absolute().then(|| Self {
            lexical: fold(&written),
            written,
            real: None,
            is_dir: false,
        })
    }

    /// Resolves symbolic links. Blocks for as long as the file system takes.
    pub(super) fn follow_links(&mut self) {
        // `..` after a symbolic link is the parent of the link's target.
        self.real = real(&self.written);
        self.is_dir = self.lexical.is_dir();
    }

    pub(super) fn is_dir(&self) -> bool {
        self.is_dir
    }

    pub(super) fn is_inside(&self, base: &Base) -> bool {
        let real = match (&self.real, &base.real) {
            (Some(path), Some(base)) => path.starts_with(base),
            _ => true,
        };
        self.lexical.starts_with(&base.lexical) && real
    }

    /// Returns whether both are the same file, after [`follow_links`](Self::follow_links).
    pub(super) fn is_same_file(&self, other: &Self) -> bool {
        self.lexical == other.lexical && self.real == other.real
    }

    pub(super) fn lexical(&self) -> &Path {
        &self.lexical
    }
}

/// Removes `.` and `..` from an absolute path lexically.
fn fold(path: &Path) -> PathBuf {
    let mut folded = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            // The parent of the root is the root.
            Component::ParentDir => {
                folded.pop();
            }
            other => folded.push(other),
        }
    }
    folded
}

/// Resolves the symbolic links of the existing part of a path.
fn real(path: &Path) -> Option<PathBuf> {
    path.ancestors().find_map(|ancestor| {
        // A dangling link is not a plain name: writing to it creates its target.
        if ancestor.is_symlink() && !ancestor.exists() {
            return Some(PathBuf::from("/"));
        }
        let real = ancestor.canonicalize().ok()?;
        let rest = path.strip_prefix(ancestor).ok()?;
        Some(match rest.as_os_str().is_empty() {
            true => real,
            // The part that does not exist has no links.
            false => fold(&real.join(rest)),
        })
    })
}

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
        let glob = |text: &str, any_case: bool| {
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
            exact: glob(trimmed, false)?,
            wide: vec![glob(trimmed, true)?, glob(&below, true)?],
            prefix,
        })
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    fn is_absolute(&self) -> bool {
        self.prefix.has_root() || Path::new(&self.text).is_absolute()
    }

    /// Returns whether the path matches in each interpretation.
    pub(super) fn contains(&self, path: &CallPath, base: Option<&Base>) -> bool {
        let readings = [Some(&path.lexical), path.real.as_ref()];
        let bases = [
            base.map(|base| &base.lexical),
            base.and_then(|base| base.real.as_ref()),
        ];
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
        let readings = [Some(&path.lexical), path.real.as_ref()];
        let mut forms: Vec<&Path> = Vec::new();
        for reading in readings.into_iter().flatten() {
            if self.is_absolute() || self.prefix.as_os_str().is_empty() {
                forms.push(reading);
            }
            let bases = base.map(|base| [Some(&base.lexical), base.real.as_ref()]);
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
