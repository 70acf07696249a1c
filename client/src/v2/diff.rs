//! Diffs: a list of changed files with a patch becomes the old and new text of each file.
//!
//! A patch contains only the lines around a change, so each hunk becomes a diff of version 1. The
//! result contains every path of the input, because permission rules match them.

use acp_sdk::v2::DiffOperation::{Add, Copy, Delete, Modify, Move};
use acp_sdk::{v1, v2};

/// Converts a diff: each change becomes one diff of version 1, or one for each hunk of its patch. A
/// change without text becomes a diff without text.
pub(super) fn from_v2(diff: &v2::Diff) -> Vec<v1::Diff> {
    let git = v2::DiffPatchFormat::GitPatch;
    let patch = diff.patch.as_ref().filter(|patch| patch.format == git);
    let mut sections = patch.map_or_else(Vec::new, |patch| sections(&patch.text));
    let in_order = sections.len() == diff.changes.len();
    let mut diffs = Vec::new();
    for change in &diff.changes {
        let (old_path, path) = match &change.operation {
            Add(change) | Delete(change) | Modify(change) => (None, change.path.as_str()),
            Move(change) | Copy(change) => (Some(change.old_path.as_str()), change.path.as_str()),
            v2::DiffOperation::Unknown(unknown) => {
                let member = |name| unknown.get(name)?.parse::<String>().ok();
                let paths = [member("oldPath"), member("path")].into_iter().flatten();
                diffs.extend(paths.map(|path| v1::Diff::new(path, "")));
                continue;
            }
            _ => continue,
        };
        if let Some(old_path) = old_path {
            diffs.push(v1::Diff::new(old_path, "").with_old_text(""));
        }
        let section = match in_order {
            true => Some(0),
            false => sections.iter().position(|section| section.names(path)),
        };
        let section = section.map(|at| sections.remove(at)).unwrap_or_default();
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
    if let Some(first) = diffs.first_mut() {
        first.meta.clone_from(&diff.meta);
    }
    diffs
}

/// The section of a patch about one file: lines with their line endings.
#[derive(Debug, Default)]
struct Section<'a>(Vec<&'a str>);

/// Returns the sections of a patch, each with its header.
fn sections(patch: &str) -> Vec<Section<'_>> {
    let mut sections: Vec<Section<'_>> = Vec::new();
    for line in patch.split_inclusive('\n') {
        match sections.last_mut() {
            _ if line.starts_with("diff --git ") => sections.push(Section(vec![line])),
            Some(section) => section.0.push(line),
            None => {}
        }
    }
    sections
}

impl Section<'_> {
    /// Returns whether the lines before the hunks contain a path.
    fn names(&self, path: &str) -> bool {
        let header = self.0.iter().take_while(|line| !line.starts_with("@@"));
        header.into_iter().any(|line| line.contains(path))
    }

    /// Returns the old and the new text of each hunk.
    fn hunks(&self) -> Vec<(String, String)> {
        let mut hunks: Vec<(String, String)> = Vec::new();
        let mut last = ' ';
        for line in &self.0 {
            if line.starts_with("@@") {
                hunks.push(Default::default());
                continue;
            }
            let Some((old, new)) = hunks.last_mut() else {
                continue;
            };
            let mut characters = line.chars();
            let sign = characters.next().unwrap_or(' ');
            let text = characters.as_str();
            match sign {
                '-' => old.push_str(text),
                '+' => new.push_str(text),
                // The previous line has no line feed.
                '\\' => {
                    if last != '+' {
                        old.truncate(old.trim_end_matches('\n').len());
                    }
                    if last != '-' {
                        new.truncate(new.trim_end_matches('\n').len());
                    }
                }
                // Some programs omit the space of an empty line.
                '\n' => {
                    old.push('\n');
                    new.push('\n');
                }
                _ => {
                    old.push_str(text);
                    new.push_str(text);
                }
            }
            last = sign;
        }
        hunks
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
        let diffs = from_v2(&diff).into_iter();
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
