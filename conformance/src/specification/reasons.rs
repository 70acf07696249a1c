//! Why normative sentences have no requirement of their own.

use std::sync::LazyLock;

use serde::Deserialize;

use crate::embedded;

/// The file `requirements/uncovered.toml`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(rename = "reason")]
    reasons: Vec<Reason>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Reason {
    because: String,
    words: Vec<String>,
}

static REASONS: LazyLock<File> = LazyLock::new(|| {
    let text = include_str!("../../requirements/uncovered.toml");
    embedded::read("uncovered.toml", text)
});

/// Returns why a normative sentence has no requirement of its own; `None` if nobody has said so.
pub(crate) fn reason(sentence: &str) -> Option<&'static str> {
    let has_words = |reason: &&Reason| reason.words.iter().any(|words| sentence.contains(words));
    let reason = REASONS.reasons.iter().find(has_words)?;
    Some(&reason.because)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sentence_has_the_first_reason_that_fits() {
        let found = reason("Clients MUST NOT prefetch the URL or open it.");
        assert!(found.is_some_and(|found| found.starts_with("About the user interface")));
        assert_eq!(reason("Agents MUST be kind."), None);
    }

    #[cfg(all(unix, feature = "remote"))]
    #[test]
    fn a_reason_that_names_a_requirement_names_one_that_exists() {
        let known: Vec<_> = super::super::every_quote().map(|quote| quote.id).collect();
        for reason in &REASONS.reasons {
            let words = reason.because.trim_end_matches('.').split([' ', ',']);
            for id in words.filter(|word| word.contains('.')) {
                assert!(known.contains(&id), "{id}");
            }
        }
    }
}
