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
        let start = begun.rfind(char::is_whitespace).map_or(0, |at| at + 1);
        if let Some(path) = begun[start..].strip_prefix('@') {
            let files = files::matching(&self.1, path).into_iter();
            let suggested = |path: String| Suggestion {
                append_whitespace: !path.ends_with('/'),
                value: format!("@{path}"),
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
