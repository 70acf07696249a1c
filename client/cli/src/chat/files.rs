//! Finds the files of the working directory that `@` completes.

use std::collections::VecDeque;
use std::path::Path;

/// Maximum number of files and folders that are read; those of deeper folders are read last.
const MOST_READ: usize = 20_000;

/// Maximum number of files that are offered.
const MOST_FOUND: usize = 100;

/// Returns the paths that contain `text`, those that begin with it first. Folders end in `/`. Hidden files are
/// left out unless `text` has a hidden part, and so are the plain names in `.gitignore`.
pub(super) fn matching(root: &Path, text: &str) -> Vec<String> {
    let hidden = text.split('/').any(|part| part.starts_with('.'));
    let ignored = std::fs::read_to_string(root.join(".gitignore")).unwrap_or_default();
    let ignored: Vec<_> = ignored
        .lines()
        .map(|line| line.trim().trim_matches('/'))
        .collect();
    let text = text.to_lowercase();
    let mut folders = VecDeque::from([String::new()]);
    let (mut found, mut read) = (Vec::new(), 0);
    while let Some(folder) = folders.pop_front() {
        let entries = root
            .join(&folder)
            .read_dir()
            .into_iter()
            .flatten()
            .flatten();
        for entry in entries.take(MOST_READ - read) {
            read += 1;
            let Ok(name) = entry.file_name().into_string() else {
                continue;
            };
            let skipped = name.starts_with('.') && !hidden || name == ".git";
            if skipped || name.contains(char::is_control) || ignored.contains(&name.as_str()) {
                continue;
            }
            // Links to folders are not followed, because they may lead back.
            let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
            let path = format!("{folder}{name}{}", if is_folder { "/" } else { "" });
            let lower = path.to_lowercase();
            if let Some(at) = lower.find(&text) {
                let in_name = name.to_lowercase().starts_with(&text);
                found.push((at > 0, !in_name, lower.matches('/').count(), path.clone()));
            }
            if is_folder {
                folders.push_back(path);
            }
        }
    }
    found.sort();
    found.truncate(MOST_FOUND);
    found.into_iter().map(|(.., path)| path).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_found_by_a_part_of_their_path() {
        let dir = tempfile::tempdir().unwrap();
        for path in [
            "src/chat/Main.rs",
            "main.c",
            "target/main.o",
            ".env",
            ".git/main",
            "src/a.rs",
        ] {
            let path = dir.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "").unwrap();
        }
        std::fs::write(dir.path().join(".gitignore"), "/target/\n").unwrap();
        let found = |text: &str| matching(dir.path(), text);
        assert_eq!(found("main"), ["main.c", "src/chat/Main.rs"]);
        assert_eq!(
            found("src/"),
            ["src/", "src/a.rs", "src/chat/", "src/chat/Main.rs"]
        );
        assert_eq!(found(".e"), [".env"]);
        assert_eq!(found("none"), [""; 0]);
    }
}
