//! Writes a patch in Git's format.

use std::fmt::Write as _;

/// Lines without a change around the changed ones.
const CONTEXT: usize = 3;

/// A patch in Git's format.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct GitPatch {
    /// The patch, which ends with a line feed.
    pub text: String,
    /// Whether the patch contains the whole old and new text.
    pub is_whole: bool,
}

/// Returns the patch of one file from its old to its new text, or `None` if both are equal.
///
/// Without an old text the file is new. Three unchanged lines are kept on each side of the change;
/// changes that are apart become one hunk that covers them all.
///
/// ```
/// let patch = acp_sdk::text::git_patch("/w/a", Some("one\n"), "two\n").unwrap();
/// let expected = "diff --git /w/a /w/a\n--- /w/a\n+++ /w/a\n@@ -1,1 +1,1 @@\n-one\n+two\n";
/// assert_eq!(patch.text, expected);
/// ```
#[must_use]
pub fn git_patch(path: &str, old: Option<&str>, new: &str) -> Option<GitPatch> {
    let path = quoted(path);
    let mut text = format!("diff --git {path} {path}\n");
    match old {
        None => text.push_str("new file mode 100644\n"),
        Some(old) if old == new => return None,
        Some(_) => {}
    }
    let (hunk, is_whole) = hunk(old.unwrap_or_default(), new);
    if !hunk.is_empty() {
        let old = match old {
            None => "/dev/null",
            Some(_) => &path,
        };
        // Writing to a string cannot fail.
        let _ = write!(text, "--- {old}\n+++ {path}\n{hunk}");
    }
    Some(GitPatch { text, is_whole })
}

/// Returns the hunk that turns `old` into `new`, empty if they are the same, and whether it
/// contains the whole texts.
fn hunk(old: &str, new: &str) -> (String, bool) {
    let (old, new) = (lines(old), lines(new));
    let same = old.iter().zip(&new).take_while(|(a, b)| a == b).count();
    let rest = old[same..].iter().rev().zip(new[same..].iter().rev());
    let same_after = rest.take_while(|(a, b)| a == b).count();
    let (old_end, new_end) = (old.len() - same_after, new.len() - same_after);
    if same == old_end && same == new_end {
        return (String::new(), old.is_empty());
    }
    let first = same.saturating_sub(CONTEXT);
    let after = same_after.min(CONTEXT);
    let (old_count, new_count) = (old_end + after - first, new_end + after - first);
    // A side without lines is at the line before, which is how `diff` counts.
    let start = |count: usize| if count == 0 { first } else { first + 1 };
    let mut hunk = format!(
        "@@ -{},{old_count} +{},{new_count} @@\n",
        start(old_count),
        start(new_count)
    );
    let mut add = |sign: char, lines: &[&str]| {
        for line in lines {
            hunk.push(sign);
            hunk.push_str(line);
            if !line.ends_with('\n') {
                hunk.push_str("\n\\ No newline at end of file\n");
            }
        }
    };
    add(' ', &old[first..same]);
    add('-', &old[same..old_end]);
    add('+', &new[same..new_end]);
    add(' ', &old[old_end..old_end + after]);
    (hunk, first == 0 && after == same_after)
}

/// Returns the lines of a text, each with its line feed if it has one.
fn lines(text: &str) -> Vec<&str> {
    text.split_inclusive('\n').collect()
}

/// Returns a path as Git writes it: in quotes if it has characters that would end it.
fn quoted(path: &str) -> String {
    let special = |c: char| c.is_ascii_control() || c == '"' || c == '\\';
    if !path.contains(special) {
        return path.to_owned();
    }
    let mut text = String::from("\"");
    for c in path.chars() {
        match c {
            '"' | '\\' => {
                text.push('\\');
                text.push(c);
            }
            '\n' => text.push_str("\\n"),
            '\r' => text.push_str("\\r"),
            '\t' => text.push_str("\\t"),
            c if c.is_ascii_control() => {
                let _ = write!(text, "\\{:03o}", u32::from(c));
            }
            c => text.push(c),
        }
    }
    text.push('"');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn patch(old: Option<&str>, new: &str) -> Option<String> {
        git_patch("/w/a", old, new).map(|patch| patch.text)
    }

    #[test]
    fn a_changed_line_keeps_three_lines_around_it() {
        let old = "1\n2\n3\n4\n5\n6\n7\n8\n9\n";
        let new = old.replace('5', "five");
        let expected = "diff --git /w/a /w/a\n--- /w/a\n+++ /w/a\n@@ -2,7 +2,7 @@\n \
             2\n 3\n 4\n-5\n+five\n 6\n 7\n 8\n";
        assert_eq!(patch(Some(old), &new).as_deref(), Some(expected));
    }

    #[test]
    fn new_and_emptied_files_differ() {
        let added = "diff --git /w/a /w/a\nnew file mode 100644\n--- /dev/null\n+++ /w/a\n\
            @@ -0,0 +1,2 @@\n+a\n+b\n\\ No newline at end of file\n";
        assert_eq!(patch(None, "a\nb").as_deref(), Some(added));
        let empty = "diff --git /w/a /w/a\nnew file mode 100644\n";
        assert_eq!(patch(None, "").as_deref(), Some(empty));
        let emptied = "diff --git /w/a /w/a\n--- /w/a\n+++ /w/a\n@@ -1,1 +0,0 @@\n-a\n";
        assert_eq!(patch(Some("a\n"), "").as_deref(), Some(emptied));
        assert_eq!(patch(Some("a"), "a"), None);
    }

    #[test]
    fn repeated_lines_are_not_counted_twice() {
        let inserted = patch(Some("a\n"), "a\na\n").unwrap();
        assert!(
            inserted.ends_with("@@ -1,1 +1,2 @@\n a\n+a\n"),
            "{inserted}"
        );
        let removed = patch(Some("a\na\n"), "a\n").unwrap();
        assert!(removed.ends_with("@@ -1,2 +1,1 @@\n a\n-a\n"), "{removed}");
        let ended = patch(Some("a"), "a\n").unwrap();
        let expected = "@@ -1,1 +1,1 @@\n-a\n\\ No newline at end of file\n+a\n";
        assert!(ended.ends_with(expected), "{ended}");
    }

    #[test]
    fn a_path_is_quoted_if_it_must_be() {
        assert_eq!(quoted("/w/ä b"), "/w/ä b");
        assert_eq!(quoted("C:\\a\n\u{1}\""), r#""C:\\a\n\001\"""#);
    }

    /// `git apply` judges the patches, if there is one.
    #[test]
    fn git_applies_the_patch() {
        let texts = [
            "",
            "a",
            "a\n",
            "a\nb\n",
            "b\na\nb",
            "x\n1\n2\n3\n4\n5\ny\n",
            "1\n2\n",
        ];
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a");
        for (old, new) in texts.iter().flat_map(|old| texts.map(|new| (*old, new))) {
            let Some(patch) = git_patch(&file.display().to_string(), Some(old), new) else {
                assert_eq!(old, new);
                continue;
            };
            std::fs::write(&file, old).unwrap();
            let name = folder.path().join("patch");
            std::fs::write(&name, patch.text.as_bytes()).unwrap();
            let mut git = std::process::Command::new("git");
            // The paths are absolute; without their leading part they are relative to the folder.
            let depth = folder.path().components().count();
            let git = git
                .current_dir(folder.path())
                .args(["apply", "--unidiff-zero"]);
            let Ok(done) = git.arg(format!("-p{depth}")).arg(&name).output() else {
                return;
            };
            assert!(done.status.success(), "{done:?}\n{}", patch.text);
            assert_eq!(std::fs::read_to_string(&file).unwrap_or_default(), new);
        }
    }
}
