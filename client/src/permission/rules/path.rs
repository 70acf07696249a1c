//! Paths of tool calls.

use std::path::{Component, Path, PathBuf};

/// The longest path that is matched, in bytes.
pub(super) const LONGEST: usize = 4096;

/// A resolved path of a tool call: absolute, with `.` and `..` removed.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct CallPath {
    /// The absolute path without further changes.
    written: PathBuf,
    /// The path with `.` and `..` removed lexically.
    lexical: PathBuf,
    /// The path with symbolic links resolved, as far as it exists on this machine.
    real: Option<PathBuf>,
    is_dir: bool,
    is_file: bool,
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

    pub(super) fn lexical(&self) -> &Path {
        &self.lexical
    }

    pub(super) fn real(&self) -> Option<&Path> {
        self.real.as_deref()
    }
}

impl CallPath {
    /// Resolves a path of the agent, relative to `base`; `None` if it is ambiguous.
    pub(super) fn resolve(text: &str, base: Option<&Path>) -> Option<Self> {
        // Characters that a shell, an agent or another system may interpret.
        let expands = |c: char| matches!(c, '$' | '`' | '%') || c.is_control();
        let foreign = !cfg!(windows) && text.contains('\\');
        let scheme = text.split_once(':').map(|(scheme, _)| scheme);
        let uri = text.contains("://")
            || scheme.is_some_and(|scheme| scheme.eq_ignore_ascii_case("file"));
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
            false => base?.join(path),
        };
        // On Windows, `C:x` and `\x` are relative to more than the session's directory.
        written.is_absolute().then(|| Self {
            lexical: fold(&written),
            written,
            real: None,
            is_dir: false,
            is_file: false,
        })
    }

    /// Resolves symbolic links. Blocks for as long as the file system takes.
    pub(super) fn follow_links(&mut self) {
        // `..` after a symbolic link is the parent of the link's target.
        self.real = real(&self.written);
        let metadata = self.written.metadata();
        self.is_dir = metadata.as_ref().is_ok_and(std::fs::Metadata::is_dir);
        self.is_file = metadata.is_ok_and(|metadata| metadata.is_file());
    }

    pub(super) fn is_dir(&self) -> bool {
        self.is_dir
    }

    pub(super) fn is_file(&self) -> bool {
        self.is_file
    }

    pub(super) fn is_inside(&self, base: &Base) -> bool {
        let real = match (&self.real, &base.real) {
            (Some(path), Some(base)) => path.starts_with(base),
            _ => true,
        };
        self.lexical.starts_with(&base.lexical) && real
    }

    /// Returns the path in each interpretation: as written, and with symbolic links resolved.
    pub(super) fn readings(&self) -> impl Iterator<Item = &Path> {
        [Some(self.lexical()), self.real()].into_iter().flatten()
    }

    /// The same for a path that is a glob: what is before `..` may be a wildcard.
    pub(super) fn glob_readings(&self) -> impl Iterator<Item = &Path> {
        [Some(self.written()), self.real()].into_iter().flatten()
    }

    /// Returns whether both are the same file, after [`follow_links`](Self::follow_links).
    pub(super) fn is_same_file(&self, other: &Self) -> bool {
        self.lexical == other.lexical && self.real == other.real
    }

    /// Returns whether the path is absolute as the agent wrote it.
    pub(super) fn is_written_as(&self, text: &str) -> bool {
        self.written.as_os_str() == text
    }

    pub(super) fn written(&self) -> &Path {
        &self.written
    }

    pub(super) fn lexical(&self) -> &Path {
        &self.lexical
    }

    pub(super) fn real(&self) -> Option<&Path> {
        self.real.as_deref()
    }
}

/// Removes `.` and `..` from an absolute path lexically.
pub(super) fn fold(path: &Path) -> PathBuf {
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

/// Returns whether a path may be a glob.
pub(super) fn is_glob(text: &str) -> bool {
    text.contains(['*', '?', '[', '{'])
}

/// Schemes of URIs that are no paths on this machine.
const NETWORK: &[&str] = &["http", "https", "ws", "wss", "ftp", "git", "ssh"];

/// Returns whether a text that is [ambiguous](CallPath::resolve) may be a path at all, and not prose.
///
/// It is one line with an expansion, a home directory or a URI. If it has several words, its first
/// word is the beginning of a path.
pub(super) fn may_be_path(text: &str) -> bool {
    if text.len() > LONGEST || text.contains(char::is_control) {
        return false;
    }
    let first = text.split_whitespace().next().unwrap_or_default();
    if let Some((scheme, rest)) = first.split_once(':')
        && (rest.starts_with("//") || scheme.eq_ignore_ascii_case("file"))
    {
        return !NETWORK.iter().any(|name| scheme.eq_ignore_ascii_case(name));
    }
    if let Some(rest) = first.strip_prefix('~') {
        let user = |c: char| c == '/' || c.is_alphabetic();
        return text == "~" || rest.starts_with(user);
    }
    let is_one_word = first.len() == text.len();
    let begins = first.contains(['/', '\\']) && first.contains(char::is_alphanumeric);
    (is_one_word || begins) && has_expansion(text)
}

/// Returns whether a shell or an agent may replace a part of the text: `$X`, `${X}`, `$(x)`, `%X%`,
/// `%2E` or backquotes.
fn has_expansion(text: &str) -> bool {
    let hex = |text: &str| text.len() >= 2 && text.chars().take(2).all(|c| c.is_ascii_hexdigit());
    let named = |c: char| c.is_alphabetic() || matches!(c, '_' | '{' | '(');
    let after_percent: Vec<&str> = text.split('%').skip(1).collect();
    let closed = after_percent
        .split_last()
        .map_or(&[][..], |(_, closed)| closed);
    let is_name = |text: &&str| {
        text.starts_with(char::is_alphabetic)
            && text.chars().all(|c| c.is_alphanumeric() || c == '_')
    };
    text.contains('`')
        || text.split('$').skip(1).any(|rest| rest.starts_with(named))
        || closed.iter().any(is_name)
        || after_percent.iter().any(|rest| hex(rest))
}
