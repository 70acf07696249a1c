//! Reads a patch in Git's format.

/// The section of a patch about one file: lines with their line endings.
#[derive(Debug, Default)]
pub(super) struct Section<'a>(Vec<&'a str>);

/// Returns the sections of a patch, each with its header.
pub(super) fn sections(patch: &str) -> Vec<Section<'_>> {
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
    /// Returns the path of the file after the change, or before its deletion, as the patch writes it;
    /// `None` if it names none.
    pub(super) fn path(&self) -> Option<String> {
        let header = self.0.iter().take_while(|line| !line.starts_with("@@"));
        let header: Vec<_> = header
            .map(|line| line.trim_end_matches(['\r', '\n']))
            .collect();
        let member = |name: &str| {
            let mut values = header.iter().filter_map(|line| line.strip_prefix(name));
            values.find_map(|value| path(value).filter(|path| path != "/dev/null"))
        };
        let names = ["+++ ", "--- ", "rename to ", "copy to "];
        let named = names.into_iter().find_map(member);
        named.or_else(|| both(header.first()?.strip_prefix("diff --git ")?))
    }

    /// Returns the old and the new text of each hunk.
    pub(super) fn hunks(&self) -> Vec<(String, String)> {
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

/// Returns how well the path of a section matches that of a change: the number of bytes that they
/// have in common at their ends; `None` if they are different files. Git writes paths relative to
/// the repository, after `a/` or `b/`.
pub(super) fn common(section: &str, change: &str) -> Option<usize> {
    let ends = |part: &str| {
        let before = change.strip_suffix(part).filter(|_| !part.is_empty())?;
        let is_whole = before.is_empty() || before.ends_with(['/', '\\']) || part.starts_with('/');
        is_whole.then_some(part.len())
    };
    let relative = section.split_once('/');
    let relative = relative.filter(|(prefix, _)| prefix.len() == 1);
    let relative = relative.and_then(|(_, relative)| ends(relative));
    ends(section).or(relative)
}

/// Reads a path of a header: without a time stamp after a tab, and quoted if it has unusual
/// characters.
fn path(value: &str) -> Option<String> {
    let path = match value.strip_prefix('"') {
        Some(rest) => unquoted(rest)?.0,
        None => value.split('\t').next()?.to_owned(),
    };
    (!path.is_empty()).then_some(path)
}

/// Returns the second of the two paths after `diff --git`. Paths that are not quoted may contain
/// spaces: then both have the same length.
fn both(paths: &str) -> Option<String> {
    if let Some(rest) = paths.strip_prefix('"') {
        return path(unquoted(rest)?.1.trim_start());
    }
    if let Some((_, quoted)) = paths.split_once(" \"") {
        return Some(unquoted(quoted)?.0);
    }
    let (old, new) = paths.split_at_checked(paths.len() / 2)?;
    let halves = new.strip_prefix(' ').filter(|new| new.len() == old.len());
    halves
        .or_else(|| Some(paths.split_once(' ')?.1))
        .and_then(path)
}

/// Reads a path after its opening quote, with the escapes of C. Returns it and what follows.
fn unquoted(text: &str) -> Option<(String, &str)> {
    let (mut bytes, mut rest) = (Vec::new(), text.as_bytes().iter().enumerate());
    while let Some((at, byte)) = rest.next() {
        match byte {
            b'"' => {
                let after = text.get(at + 1..).unwrap_or_default();
                return Some((String::from_utf8_lossy(&bytes).into_owned(), after));
            }
            b'\\' => bytes.push(match rest.next()?.1 {
                b'a' => 7,
                b'b' => 8,
                b't' => b'\t',
                b'n' => b'\n',
                b'v' => 11,
                b'f' => 12,
                b'r' => b'\r',
                first @ b'0'..=b'7' => {
                    let mut next = || Some(rest.next()?.1.wrapping_sub(b'0') & 7);
                    let (second, third) = (next()?, next()?);
                    ((first & 7) << 6) | (second << 3) | third
                }
                other => *other,
            }),
            other => bytes.push(*other),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_section_names_its_file() {
        for (header, expected) in [
            ("diff --git a/x b/x\n--- a/x\n+++ b/x\n", Some("b/x")),
            ("diff --git a/x b/x\n--- a/x\n+++ /dev/null\n", Some("a/x")),
            ("diff --git a/x y b/x y\nold mode 100644\n", Some("b/x y")),
            (
                "diff --git a/x b/y z\nrename from x\nrename to y z\n",
                Some("y z"),
            ),
            (
                "diff --git /w/x /w/x\n+++ /w/x\t2026-01-01\r\n",
                Some("/w/x"),
            ),
            (
                "diff --git \"a/\\303\\274 \\\"\" \"b/\\303\\274 \\\"\"\n",
                Some("b/ü \""),
            ),
            ("diff --git a/x \"b/\\t\"\n", Some("b/\t")),
            ("diff --git \n", None),
            ("diff --git \"\\", None),
            ("diff --git \"\\3", None),
        ] {
            let sections = sections(header);
            assert_eq!(sections[0].path().as_deref(), expected, "{header:?}");
        }
    }

    #[test]
    fn paths_are_compared_by_their_parts() {
        assert_eq!(common("/w/a", "/w/a"), Some(4));
        assert_eq!(common("b/src/a", "/w/src/a"), Some(5));
        assert_eq!(common("src/a", "/w/src/a"), Some(5));
        assert_eq!(common("b/a", "/w/b/a"), Some(3));
        assert_eq!(common("a", "/w/ba"), None);
        assert_eq!(common("/w/a", "/w/ab"), None);
        assert_eq!(common("b/src/ab", "/w/src/a"), None);
        assert_eq!(common("", "/w/a"), None);
    }
}
