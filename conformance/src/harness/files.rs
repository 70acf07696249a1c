//! The client's files: those of the working directory and no others.

use std::path::{Component, Path, PathBuf};

use serde_json::Value;

/// Files under a folder.
#[derive(Debug, Default)]
pub(super) struct Files {
    pub(super) folder: PathBuf,
}

impl Files {
    /// Reads a file, from a line on and as many lines as asked for.
    pub(super) fn read(&self, params: &Value) -> Result<String, String> {
        let path = self.path(params)?;
        let text = std::fs::read_to_string(&path)
            .map_err(|error| format!("cannot read {}: {error}", path.display()))?;
        let number = |name: &str| params.get(name).and_then(Value::as_u64);
        let skipped = number("line").map_or(0, |line| line.saturating_sub(1));
        let limit = number("limit").unwrap_or(u64::MAX);
        let at = |count: u64| usize::try_from(count).unwrap_or(usize::MAX);
        let lines = text.split_inclusive('\n').skip(at(skipped));
        Ok(lines.take(at(limit)).collect())
    }

    /// Writes a file and makes the folders it stands in.
    pub(super) fn write(&self, params: &Value) -> Result<(), String> {
        let path = self.path(params)?;
        let content = params.get("content").and_then(Value::as_str);
        let failed = |error| format!("cannot write {}: {error}", path.display());
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent).map_err(failed)?;
        }
        std::fs::write(&path, content.unwrap_or_default()).map_err(failed)
    }

    fn path(&self, params: &Value) -> Result<PathBuf, String> {
        let path = params.get("path").and_then(Value::as_str);
        let path = Path::new(path.unwrap_or_default());
        let climbs = path.components().any(|part| part == Component::ParentDir);
        if path.starts_with(&self.folder) && !climbs {
            Ok(path.to_owned())
        } else {
            Err(format!(
                "{} is outside the working directory",
                path.display()
            ))
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn lines_are_counted_from_one() {
        let folder = tempfile::tempdir().unwrap();
        let files = Files {
            folder: folder.path().to_owned(),
        };
        let path = folder.path().join("a/b.txt");
        files
            .write(&json!({"path": path, "content": "1\n2\n3\n"}))
            .unwrap();
        let read = files.read(&json!({"path": path, "line": 2, "limit": 1}));
        assert_eq!(read.as_deref(), Ok("2\n"));
    }

    #[test]
    fn nothing_outside_the_folder_is_touched() {
        let files = Files {
            folder: PathBuf::from("/w"),
        };
        for path in ["/etc/hostname", "/w/../etc/hostname", "w", "/wide"] {
            let read = files.read(&json!({"path": path}));
            assert!(read.unwrap_err().contains("outside"), "{path}");
        }
    }
}
