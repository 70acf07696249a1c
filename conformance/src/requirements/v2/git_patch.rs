//! Patches of the format `git_patch`: sections that begin with `diff --git`, with absolute paths and
//! nothing around them.

use crate::requirements::passive::is_absolute;

/// What a section begins with.
const SECTION: &str = "diff --git ";

/// What lines of a section's head have before their path.
const PATHS: [&str; 6] = [
    "--- ",
    "+++ ",
    "rename from ",
    "rename to ",
    "copy from ",
    "copy to ",
];

/// What lines of commit metadata and of email envelopes begin with. No line of a section does.
const METADATA: [&str; 10] = [
    "commit ",
    "Merge: ",
    "Author: ",
    "AuthorDate: ",
    "Commit: ",
    "CommitDate: ",
    "Date: ",
    "From ",
    "From: ",
    "Subject: ",
];

/// Returns what is wrong with a patch.
pub(super) fn fault(patch: &str) -> Option<String> {
    if !patch.starts_with(SECTION) {
        let reason = "expected a patch that begins with `diff --git`, got another beginning";
        return Some(reason.to_owned());
    }
    let (mut hunk, mut is_head) = (Hunk::default(), true);
    for line in patch.lines() {
        if hunk.takes(line) {
            continue;
        }
        let is_good = if let Some(paths) = line.strip_prefix(SECTION) {
            is_head = true;
            are_absolute(paths)
        } else if let Some(ranges) = line.strip_prefix("@@ ") {
            is_head = false;
            hunk = Hunk::read(ranges).unwrap_or_default();
            true
        } else {
            let path = PATHS.iter().find_map(|name| line.strip_prefix(name));
            path.filter(|_| is_head).is_none_or(begins_absolute)
        };
        if !is_good {
            let reason = format!("expected absolute paths in the patch, got `{line}`");
            return Some(reason);
        }
        // The signature of an email follows the last hunk.
        if line.trim_end() == "--" || METADATA.iter().any(|start| line.starts_with(start)) {
            let reason =
                format!("expected no commit metadata and no email in the patch, got `{line}`");
            return Some(reason);
        }
    }
    None
}

/// Whether a path is absolute, which may be in quotes.
fn begins_absolute(path: &str) -> bool {
    is_absolute(path.trim_start_matches('"'))
}

/// Whether both paths of a section are absolute. Without quotes they may have spaces, so that the second one
/// may begin after each.
fn are_absolute(paths: &str) -> bool {
    let mut spaces = paths.match_indices(' ');
    let is_second = |at: usize| paths.get(at + 1..).is_some_and(begins_absolute);
    begins_absolute(paths) && spaces.any(|(at, _)| is_second(at))
}

/// How many lines of a hunk are left, in the old and in the new file.
#[derive(Default)]
struct Hunk {
    old: u64,
    new: u64,
}

impl Hunk {
    /// Reads `-1,3 +1,4 @@`; one line is not counted there.
    fn read(ranges: &str) -> Option<Self> {
        let mut ranges = ranges.split(' ');
        let mut count = |sign: char| {
            let range = ranges.next()?.strip_prefix(sign)?;
            range
                .split_once(',')
                .map_or(Some(1), |(_, count)| count.parse().ok())
        };
        Some(Self {
            old: count('-')?,
            new: count('+')?,
        })
    }

    /// Whether a line belongs to the hunk. One with wrong counts ends where no line of a hunk comes.
    fn takes(&mut self, line: &str) -> bool {
        if line.starts_with('\\') {
            return true;
        }
        if self.old == 0 && self.new == 0 {
            return false;
        }
        let (old, new) = match line.bytes().next() {
            Some(b'-') => (1, 0),
            Some(b'+') => (0, 1),
            Some(b' ') | None => (1, 1),
            Some(_) => {
                *self = Self::default();
                return false;
            }
        };
        self.old = self.old.saturating_sub(old);
        self.new = self.new.saturating_sub(new);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "diff --git /a /a\n--- /a\n+++ /a\n";

    /// A hunk whose lines look like those of a head or of an email.
    const HUNK: &str = "@@ -1,3 +1,3 @@ fn main\n--- a/old\n-- \n+++ b/new\n+From: me\n \n";

    #[test]
    fn sections_with_absolute_paths_are_a_patch() {
        for patch in [
            format!("{HEAD}{HUNK}"),
            format!("{HEAD}{HUNK}\\ No newline at end of file\n{HEAD}{HUNK}"),
            format!("{HEAD}@@ -1 +1 @@\n-a\n+b\n"),
            "diff --git /n /n\nnew file mode 100644\n--- /dev/null\n+++ /n\n@@ -0,0 +1 @@\n+a\n"
                .to_owned(),
            "diff --git /a b /a b\r\nrename from /a b\r\nrename to /a b\r\n".to_owned(),
            "diff --git \"/\\303\\244\" \"/\\303\\244\"\n--- \"/\\303\\244\"\n".to_owned(),
            "diff --git \"C:\\\\a\" \"C:\\\\a\"\n".to_owned(),
            "diff --git /p /p\nGIT binary patch\nliteral 3\nKcmZQzU}OLQ0002b0384H\n\n".to_owned(),
        ] {
            assert_eq!(fault(&patch), None, "{patch}");
        }
    }

    #[test]
    fn a_relative_path_is_found_in_every_line_of_the_head() {
        for patch in [
            "diff --git a/a b/a\n",
            "diff --git /a b/a\n",
            "diff --git /a /a\n--- a/a\n",
            "diff --git /a /a\n--- /a\n+++ \"b/\\303\"\n",
            "diff --git /a /b\nrename from a\n",
            "diff --git /a /b\ncopy to b\n",
        ] {
            let found = fault(patch).unwrap_or_default();
            assert!(found.contains("absolute"), "{patch}: {found}");
        }
    }

    #[test]
    fn nothing_stands_around_the_sections() {
        assert!(fault("From: me\ndiff --git /a /a\n").is_some());
        for more in ["-- \n2.43.0\n", "commit 1\nAuthor: me\n", "From 1 Mon\n"] {
            for patch in [format!("{HEAD}{HUNK}{more}"), format!("{HEAD}{more}{HEAD}")] {
                let found = fault(&patch).unwrap_or_default();
                assert!(found.contains("metadata"), "{patch}: {found}");
            }
        }
    }
}
