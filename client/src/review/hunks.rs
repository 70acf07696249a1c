//! The parts of a text's change.

use std::ops::Range;

use similar::{DiffOp, TextDiff};

/// A part of a change: consecutive lines that were removed, added or replaced.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Hunk {
    /// The lines of the old text, from 0.
    pub old_lines: Range<usize>,
    /// The lines of the new text, from 0.
    pub new_lines: Range<usize>,
    /// The removed lines, with their line ends.
    pub removed: String,
    /// The added lines, with their line ends.
    pub added: String,
}

/// Returns the parts of a change, in order.
///
/// ```
/// let hunks = acp_client::review::hunks("a\nb\nc\n", "a\nB\nc\nd\n");
/// assert_eq!((&*hunks[0].removed, &*hunks[0].added), ("b\n", "B\n"));
/// assert_eq!(hunks[1].added, "d\n");
/// ```
#[must_use]
pub fn hunks(old: &str, new: &str) -> Vec<Hunk> {
    let (old, new) = (lines(old), lines(new));
    let diff = TextDiff::from_slices(&old, &new);
    let changed = diff.ops().iter().filter(|op| !is_equal(op));
    let hunk = |op: &DiffOp| Hunk {
        old_lines: op.old_range(),
        new_lines: op.new_range(),
        removed: old[op.old_range()].concat(),
        added: new[op.new_range()].concat(),
    };
    changed.map(hunk).collect()
}

/// Returns the new text without those of its [`hunks`] for which `rejects` returns `true`.
///
/// ```
/// use acp_client::review::rejected;
///
/// let text = rejected("a\nb\n", "A\nb\nc\n", |hunk| hunk.removed == "a\n");
/// assert_eq!(text, "a\nb\nc\n");
/// ```
#[must_use]
pub fn rejected(old: &str, new: &str, mut rejects: impl FnMut(&Hunk) -> bool) -> String {
    let kept = lines(new);
    let mut text = String::with_capacity(new.len().max(old.len()));
    let mut position = 0;
    for hunk in hunks(old, new) {
        text.extend(kept[position..hunk.new_lines.start].iter().copied());
        position = hunk.new_lines.end;
        text += match rejects(&hunk) {
            true => &hunk.removed,
            false => &hunk.added,
        };
    }
    text.extend(kept[position..].iter().copied());
    text
}

/// Returns the lines with their ends.
fn lines(text: &str) -> Vec<&str> {
    text.split_inclusive('\n').collect()
}

fn is_equal(op: &DiffOp) -> bool {
    matches!(op, DiffOp::Equal { .. })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_hunks_rejected_are_the_old_text_and_none_the_new() {
        for (old, new) in [
            ("", ""),
            ("", "a"),
            ("a", ""),
            ("a\nb\nc", "a\nc\n"),
            ("a\r\nb\r\n", "a\nb\n"),
            ("a\n\n\nb\n", "x\n\nb\ny"),
            ("é\u{2028}x\rz\n", "é\u{2028}y\rz\n"),
        ] {
            assert_eq!(rejected(old, new, |_| true), old, "{old:?} {new:?}");
            assert_eq!(rejected(old, new, |_| false), new, "{old:?} {new:?}");
        }
    }

    #[test]
    fn one_hunk_of_several_is_rejected() {
        let (old, new) = ("1\n2\n3\n4\n5\n", "1\n3\n4\nfour\n5!\n");
        let all = hunks(old, new);
        assert_eq!(all.len(), 2, "{all:?}");
        assert_eq!(
            rejected(old, new, |hunk| *hunk == all[0]),
            "1\n2\n3\n4\nfour\n5!\n"
        );
        assert_eq!(rejected(old, new, |hunk| *hunk == all[1]), "1\n3\n4\n5\n");
    }
}
