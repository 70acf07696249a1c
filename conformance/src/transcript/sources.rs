//! The files that a command line names.

use std::fs;
use std::path::{Path, PathBuf};

use crate::{Error, Result};

/// The extensions that a folder is searched for.
const EXTENSIONS: [&str; 2] = ["jsonl", "ndjson"];

/// The files named by `paths`, in order; folders stand for the recordings below
/// them, sorted by name. Symbolic links to folders are not followed.
///
/// # Errors
/// When a path does not exist or cannot be read, or a folder holds no recording.
pub fn files(paths: &[PathBuf]) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for path in paths {
        let before = files.len();
        let metadata = fs::metadata(path).map_err(Error::reading(path))?;
        if !metadata.is_dir() {
            files.push(path.clone());
            continue;
        }
        walk(path, &mut files)?;
        if files.len() == before {
            return Err(Error::NoRecording(path.clone()));
        }
    }
    Ok(files)
}

fn walk(folder: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    let failed = Error::reading(folder);
    let mut entries = fs::read_dir(folder)
        .map_err(failed)?
        .collect::<std::io::Result<Vec<_>>>()
        .map_err(failed)?;
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let path = entry.path();
        if entry.file_type().map_err(failed)?.is_dir() {
            walk(&path, files)?;
        } else if path
            .extension()
            .is_some_and(|found| EXTENSIONS.iter().any(|known| found == *known))
        {
            files.push(path);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_stand_for_their_recordings() {
        let root = tempfile::tempdir().unwrap();
        let at = |name: &str| root.path().join(name);
        fs::create_dir(at("b")).unwrap();
        for name in ["b/2.ndjson", "b/1.jsonl", "b/notes.txt", "a.jsonl"] {
            fs::write(at(name), "").unwrap();
        }
        let found = files(&[root.path().to_owned(), at("b/notes.txt")]).unwrap();
        let expected = ["a.jsonl", "b/1.jsonl", "b/2.ndjson", "b/notes.txt"].map(at);
        assert_eq!(found, expected);
    }

    #[test]
    fn a_folder_without_recordings_and_a_missing_file_are_errors() {
        let root = tempfile::tempdir().unwrap();
        let empty = files(&[root.path().to_owned()]).unwrap_err();
        assert!(matches!(empty, Error::NoRecording(_)), "{empty}");
        let missing = files(&[root.path().join("none.jsonl")]).unwrap_err();
        assert!(matches!(missing, Error::Read { .. }), "{missing}");
    }
}
