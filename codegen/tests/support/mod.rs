//! Comparing generated text with what is kept beside the tests.

use std::path::{Path, PathBuf};

/// A path below this crate's `tests`.
pub(crate) fn tests(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests")
        .join(path)
}

/// Compares `text` with the file `path`, or updates the file when `UPDATE_GOLDEN`
/// is set. A difference comes back as a short diff with the command that updates.
pub(crate) fn compare(path: &Path, text: &str, test: &str) -> Result<(), String> {
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        return std::fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()));
    }
    let kept = std::fs::read_to_string(path).unwrap_or_default();
    if kept == text {
        return Ok(());
    }
    Err(format!(
        "{} differs from what is generated:\n{}\n\
         if the change is meant: UPDATE_GOLDEN=1 cargo test -p acp-codegen --test {test}",
        path.display(),
        diff(&kept, text)
    ))
}

/// The lines around and in the part where two texts differ, at most 20 a side.
pub(crate) fn diff(old: &str, new: &str) -> String {
    const CONTEXT: usize = 3;
    const MOST: usize = 20;
    let (old, new): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
    let start = old.iter().zip(&new).take_while(|(a, b)| a == b).count();
    let rest = (old.len() - start).min(new.len() - start);
    let ends = old.iter().rev().zip(new.iter().rev()).take(rest);
    let end = ends.take_while(|(a, b)| a == b).count();

    let mut text = format!("@@ line {} @@\n", start + 1);
    for line in &old[start.saturating_sub(CONTEXT)..start] {
        text.push_str(&format!("  {line}\n"));
    }
    for (sign, lines) in [
        ('-', &old[start..old.len() - end]),
        ('+', &new[start..new.len() - end]),
    ] {
        for line in lines.iter().take(MOST) {
            text.push_str(&format!("{sign} {line}\n"));
        }
        if lines.len() > MOST {
            text.push_str(&format!("{sign} … {} more lines\n", lines.len() - MOST));
        }
    }
    for line in old[old.len() - end..].iter().take(CONTEXT) {
        text.push_str(&format!("  {line}\n"));
    }
    text
}
