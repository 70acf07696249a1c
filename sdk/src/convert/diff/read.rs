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
    /// Returns whether the lines before the hunks contain a path.
    pub(super) fn names(&self, path: &str) -> bool {
        let header = self.0.iter().take_while(|line| !line.starts_with("@@"));
        header.into_iter().any(|line| line.contains(path))
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
