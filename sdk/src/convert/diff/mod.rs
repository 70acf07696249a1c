//! Diffs: version 1 has the old and new text of a file, version 2 a list of changes with a patch.

mod read;

use self::read::{Section, common, sections};
use crate::text::git_patch;
use crate::v2::DiffOperation::{Add, Copy, Delete, Modify, Move};
use crate::{v1, v2};

use super::Losses;

/// Converts a diff to version 2. The unchanged text around the change is lost, except for three
/// lines on each side.
pub(super) fn to_v2(diff: v1::Diff, losses: &mut Losses) -> Option<v2::Diff> {
    let v1::Diff {
        path,
        old_text,
        new_text,
        meta,
    } = diff;
    let patch = git_patch(&path, old_text.as_deref(), &new_text);
    if !patch.as_ref().is_some_and(|patch| patch.is_whole) {
        losses.lost("", "a patch has no text apart from the change");
    }
    let path = v2::DiffPathChange::new(path);
    let operation = match old_text {
        None => Add(path),
        Some(_) => Modify(path),
    };
    let change = v2::DiffChange::new(operation).with_file_type(v2::DiffFileType::Text);
    let mut next = v2::Diff::new(vec![change]);
    next.patch = patch.map(|patch| v2::DiffPatch::new(v2::DiffPatchFormat::GitPatch, patch.text));
    next.meta = meta;
    Some(next)
}

/// Converts a diff to the first of its diffs in version 1.
pub(super) fn to_v1(diff: v2::Diff, losses: &mut Losses) -> Option<v1::Diff> {
    let mut diffs = all_to_v1(diff, losses);
    if diffs.len() > 1 {
        losses.lost("", "a diff of version 1 is about one file");
    }
    (!diffs.is_empty()).then(|| diffs.swap_remove(0))
}

/// Converts a diff: each change becomes one diff of version 1, or one for each hunk of its patch. A
/// change without text becomes a diff without text.
///
/// A patch contains only the lines around a change, so each hunk becomes a diff of its own. The
/// result contains every path of the input, because permission rules match them. A section of the
/// patch about a file that no change names keeps the path of the patch.
pub(super) fn all_to_v1(diff: v2::Diff, losses: &mut Losses) -> Vec<v1::Diff> {
    let v2::Diff {
        changes,
        patch,
        meta,
    } = diff;
    losses.lost("", "diffs of version 1 have old and new text only");
    let patch = patch.filter(|patch| patch.format == v2::DiffPatchFormat::GitPatch);
    let sections = patch
        .as_ref()
        .map_or_else(Vec::new, |patch| sections(&patch.text));
    let (sections, others) = assigned(&changes, sections);
    let mut diffs = Vec::new();
    for (change, section) in changes.iter().zip(sections) {
        let (old_path, path) = match &change.operation {
            Add(change) | Delete(change) | Modify(change) => (None, change.path.as_str()),
            Move(change) | Copy(change) => (Some(change.old_path.as_str()), change.path.as_str()),
            v2::DiffOperation::Unknown(unknown) => {
                let member = |name| unknown.get(name)?.parse::<String>().ok();
                let paths = [member("oldPath"), member("path")].into_iter().flatten();
                diffs.extend(paths.map(|path| v1::Diff::new(path, "")));
                continue;
            }
        };
        if let Some(old_path) = old_path {
            diffs.push(v1::Diff::new(old_path, "").with_old_text(""));
        }
        let section = section.unwrap_or_default();
        let is_new = matches!(change.operation, Add(_));
        let hunks = section.hunks();
        if hunks.is_empty() {
            let mut next = v1::Diff::new(path, "");
            next.old_text = (!is_new).then(String::new);
            diffs.push(next);
        }
        for (old, new) in hunks {
            let mut next = v1::Diff::new(path, new);
            next.old_text = (!is_new).then_some(old);
            diffs.push(next);
        }
    }
    for section in others {
        let Some(path) = section.path() else { continue };
        let hunks = section.hunks().into_iter();
        diffs.extend(hunks.map(|(old, new)| v1::Diff::new(&*path, new).with_old_text(old)));
    }
    if let Some(first) = diffs.first_mut() {
        first.meta = meta;
    }
    diffs
}

/// Returns the section of each change, and those about other files.
///
/// The sections may be in another order, and fewer. The path that agrees best with one of a change
/// decides, so that `src/a` is not taken for `a`. A section without a path belongs to the change
/// that is left, if both are the only ones.
fn assigned<'a>(
    changes: &[v2::DiffChange],
    sections: Vec<Section<'a>>,
) -> (Vec<Option<Section<'a>>>, Vec<Section<'a>>) {
    let mut pairs = Vec::new();
    for (from, section) in sections.iter().enumerate() {
        let Some(written) = section.path() else {
            continue;
        };
        let matching = changes.iter().enumerate().filter_map(|(to, change)| {
            let path = path(change)?;
            let common = common(&written, path)?;
            Some((std::cmp::Reverse(common), path.len() - common, from, to))
        });
        pairs.extend(matching);
    }
    pairs.sort_unstable();
    let mut sections: Vec<_> = sections.into_iter().map(Some).collect();
    let mut of_changes: Vec<_> = changes.iter().map(|_| None).collect();
    for (_, _, from, to) in pairs {
        if let (Some(section), Some(free @ None)) = (sections.get_mut(from), of_changes.get_mut(to))
        {
            *free = section.take();
        }
    }
    let mut others: Vec<_> = sections.into_iter().flatten().collect();
    if let ([only], [free @ None]) = (&others[..], &mut of_changes[..])
        && only.path().is_none()
    {
        *free = others.pop();
    }
    (of_changes, others)
}

/// Returns the path after a change.
fn path(change: &v2::DiffChange) -> Option<&str> {
    match &change.operation {
        Add(change) | Delete(change) | Modify(change) => Some(change.path.as_str()),
        Move(change) | Copy(change) => Some(change.path.as_str()),
        v2::DiffOperation::Unknown(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(operation: impl Into<v2::DiffOperation>) -> v2::DiffChange {
        v2::DiffChange::new(operation.into())
    }

    fn modified(path: &str) -> v2::DiffChange {
        change(Modify(v2::DiffPathChange::new(path)))
    }

    fn diff(changes: Vec<v2::DiffChange>, patch: &str) -> Vec<(String, Option<String>, String)> {
        let mut diff = v2::Diff::new(changes);
        if !patch.is_empty() {
            diff.patch = Some(v2::DiffPatch::new(v2::DiffPatchFormat::GitPatch, patch));
        }
        let diffs = all_to_v1(diff, &mut Losses::default()).into_iter();
        diffs
            .map(|diff| (diff.path, diff.old_text, diff.new_text))
            .collect()
    }

    fn row(path: &str, old: Option<&str>, new: &str) -> (String, Option<String>, String) {
        (path.to_owned(), old.map(str::to_owned), new.to_owned())
    }

    #[test]
    fn a_hunk_is_a_diff() {
        let patch = "diff --git /a /a\n--- /a\n+++ /a\n@@ -1,3 +1,2 @@\n x\n-y\n-z\n+w\n\
            @@ -9 +8 @@\n-old\n\\ No newline at end of file\n+new\n";
        let expected = [
            row("/a", Some("x\ny\nz\n"), "x\nw\n"),
            row("/a", Some("old"), "new\n"),
        ];
        assert_eq!(diff(vec![modified("/a")], patch), expected);
        let added = change(Add(v2::DiffPathChange::new("/b")));
        let patch = "diff --git /b /b\nnew file mode 100644\n--- /dev/null\n+++ /b\n\
            @@ -0,0 +1 @@\n+--- one\n\\ No newline at end of file\n";
        assert_eq!(diff(vec![added], patch), [row("/b", None, "--- one")]);
    }

    #[test]
    fn sections_find_their_change() {
        let section = |path: &str| {
            format!("diff --git {path} {path}\n--- {path}\n+++ {path}\n@@ -1 +1 @@\n-o\n+{path}\n")
        };
        let patch = section("/b") + &section("/a");
        let changes = vec![modified("/a"), modified("/c"), modified("/b")];
        let expected = [
            row("/a", Some("o\n"), "/a\n"),
            row("/c", Some(""), ""),
            row("/b", Some("o\n"), "/b\n"),
        ];
        assert_eq!(diff(changes, &patch), expected);
    }

    #[test]
    fn a_hunk_is_never_under_the_path_of_another_file() {
        let section = |path: &str| {
            format!(
                "diff --git a/{path} b/{path}\n--- a/{path}\n+++ b/{path}\n@@ -1 +1 @@\n-o\n+{path}\n"
            )
        };
        // As many sections as changes, in another order.
        let patch = section("b") + &section("a");
        let expected = [
            row("/w/a", Some("o\n"), "a\n"),
            row("/w/b", Some("o\n"), "b\n"),
        ];
        assert_eq!(
            diff(vec![modified("/w/a"), modified("/w/b")], &patch),
            expected
        );
        // The path of one file is the end or the beginning of another's.
        let patch = section("src/ab") + &section("src/a") + &section("a");
        let changes = vec![
            modified("/w/a"),
            modified("/w/src/a"),
            modified("/w/src/ab"),
        ];
        let expected = [
            row("/w/a", Some("o\n"), "a\n"),
            row("/w/src/a", Some("o\n"), "src/a\n"),
            row("/w/src/ab", Some("o\n"), "src/ab\n"),
        ];
        assert_eq!(diff(changes, &patch), expected);
        // A file that no change names.
        let expected = [row("/w/a", Some(""), ""), row("b/c", Some("o\n"), "c\n")];
        assert_eq!(diff(vec![modified("/w/a")], &section("c")), expected);
    }

    #[test]
    fn every_path_is_named() {
        let moved = change(Move(v2::DiffPathPairChange::new("/old", "/new")));
        let deleted = change(Delete(v2::DiffPathChange::new("/gone")));
        let paths: Vec<_> = diff(vec![moved, deleted], "")
            .into_iter()
            .map(|row| row.0)
            .collect();
        assert_eq!(paths, ["/old", "/new", "/gone"]);
    }

    #[test]
    fn a_patch_that_is_none_is_no_text() {
        for patch in [
            "@@",
            "garbage\n",
            "diff --git \n@@\n",
            "diff --git /a\n+++ \n\\ No",
        ] {
            for (path, _, new) in diff(vec![modified("/a")], patch) {
                assert_eq!((path.as_str(), new.as_str()), ("/a", ""), "{patch:?}");
            }
        }
    }
}
