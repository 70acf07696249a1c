//! What Tab completes.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use reedline::{Completer, Span, Suggestion};

use super::files;

/// The lines to complete, each with its description. Clones share them.
#[derive(Debug, Clone, Default)]
pub(super) struct Candidates(Arc<Mutex<Vec<(String, String)>>>);

impl Candidates {
    pub(super) fn set(&self, lines: Vec<(String, String)>) {
        *self.lock() = lines;
    }

    fn lock(&self) -> MutexGuard<'_, Vec<(String, String)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Completes the whole line, or a file after `@`.
pub(super) struct Completions(Candidates, PathBuf);

impl Completions {
    pub(super) fn new(candidates: Candidates, directory: PathBuf) -> Self {
        Self(candidates, directory)
    }
}

impl Completer for Completions {
    fn complete(&mut self, line: &str, pos: usize) -> Vec<Suggestion> {
        let begun = line.get(..pos).unwrap_or(line);
        if let Some((start, path)) = path_of(begun) {
            let files = files::matching(&self.1, path).into_iter();
            let suggested = |path: String| Suggestion {
                append_whitespace: !path.ends_with('/'),
                value: mention(&path),
                span: Span::new(start, pos),
                ..Suggestion::default()
            };
            return files.map(suggested).collect();
        }
        let words = begun.matches(' ').count();
        let candidates = self.0.lock();
        let fitting = candidates.iter().filter(|(line, _)| {
            begun.starts_with('/') && line.starts_with(begun) && line.matches(' ').count() == words
        });
        fitting
            .map(|(line, what)| Suggestion {
                value: line.clone(),
                description: Some(what.clone()).filter(|what| !what.is_empty()),
                span: Span::new(0, pos),
                append_whitespace: true,
                ..Suggestion::default()
            })
            .collect()
    }
}

/// Returns the path after the last `@`, as far as it is typed, and where the `@` stands. A path with blanks stands in
/// quotes.
fn path_of(begun: &str) -> Option<(usize, &str)> {
    let begins_word = |at: usize| {
        let before = begun[..at].chars().next_back();
        before.is_none_or(char::is_whitespace)
    };
    let quoted = begun.rfind("@\"").filter(|at| begins_word(*at));
    let quoted = quoted.map(|at| (at, &begun[at + 2..]));
    if let Some(open) = quoted.filter(|(_, path)| !path.contains('"')) {
        return Some(open);
    }
    let at = begun.rfind('@').filter(|at| begins_word(*at))?;
    let path = &begun[at + 1..];
    (!path.contains(char::is_whitespace)).then_some((at, path))
}

/// Returns the mention of a path. The quotes of a folder stay open for what is inside of it.
fn mention(path: &str) -> String {
    match path.contains(char::is_whitespace) {
        false => format!("@{path}"),
        true if path.ends_with('/') => format!("@\"{path}"),
        true => format!("@\"{path}\""),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_with_blanks_is_completed_in_quotes() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("my files")).unwrap();
        std::fs::write(dir.path().join("my files/a b"), "").unwrap();
        let mut completions = Completions::new(Candidates::default(), dir.path().to_owned());
        let mut complete = |line: &str| {
            let found = completions.complete(line, line.len()).into_iter();
            let found = found.map(|found| (found.span.start, found.value));
            found.collect::<Vec<_>>()
        };
        let (folder, file) = ("@\"my files/".to_owned(), "@\"my files/a b\"".to_owned());
        assert_eq!(complete("see @my"), [(4, folder), (4, file.clone())]);
        assert_eq!(complete("see @\"my files/a"), [(4, file.clone())]);
        assert!(complete("see @\"my files/a b\" and").is_empty());
        assert!(complete("see a@my").is_empty());
    }
}
