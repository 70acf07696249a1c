//! Edits the prompt in the user's editor.

use std::io::{Read as _, Write as _};
use std::process::Command;

/// Maximum size of an edited prompt, in bytes.
const LONGEST: u64 = 1 << 20;

/// Runs `$VISUAL` or `$EDITOR` on a file with the text. Returns the text of the file afterwards, without
/// line feeds at its end. Blocks until the editor exits.
///
/// # Errors
///
/// Fails with the reason and the remedy.
pub(super) fn edit(text: &str) -> Result<String, String> {
    let named = ["VISUAL", "EDITOR"].map(|name| std::env::var(name).unwrap_or_default());
    let editor = named.into_iter().find(|editor| !editor.trim().is_empty());
    edit_in(
        &editor.ok_or("set VISUAL or EDITOR to the command of an editor")?,
        text,
    )
}

fn edit_in(editor: &str, text: &str) -> Result<String, String> {
    let failed = |error: &dyn std::fmt::Display| format!("cannot edit in {editor:?}: {error}");
    let words = shell_words::split(editor).map_err(|error| failed(&error))?;
    let (program, args) = words.split_first().ok_or_else(|| failed(&"it is empty"))?;
    // Only the user can read it.
    let mut builder = tempfile::Builder::new();
    let file = builder.prefix("acp-prompt-").suffix(".md").tempfile();
    let mut file = file.map_err(|error| failed(&error))?;
    let written = file.write_all(text.as_bytes()).and_then(|()| file.flush());
    written.map_err(|error| failed(&error))?;
    let mut command = Command::new(program);
    command.args(args).arg(file.path());
    acp_client::internal::withhold(&mut command);
    let status = command.status().map_err(|error| failed(&error))?;
    if !status.success() {
        return Err(failed(&status));
    }
    // Editors may have replaced the file.
    let read = || {
        let mut text = String::new();
        let file = std::fs::File::open(file.path())?;
        file.take(LONGEST + 1).read_to_string(&mut text)?;
        Ok::<_, std::io::Error>(text)
    };
    let text = read().map_err(|error| failed(&error))?;
    match text.len() as u64 > LONGEST {
        true => Err(failed(&format_args!(
            "the text is longer than {LONGEST} bytes"
        ))),
        false => Ok(text.trim_end_matches(['\n', '\r']).to_owned()),
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn the_text_of_the_file_is_the_prompt() {
        let edited = edit_in(
            "sh -c 'printf \"%s!\\n\\n\" \"$(cat \"$0\")\" >\"$0\"'",
            "a\nb",
        );
        assert_eq!(edited.as_deref(), Ok("a\nb!"));
        let replaced = edit_in("sh -c 'echo new >\"$0.x\"; mv \"$0.x\" \"$0\"'", "old");
        assert_eq!(replaced.as_deref(), Ok("new"));
        for editor in ["false", "/no/such/editor", "'"] {
            let error = edit_in(editor, "a").unwrap_err();
            assert!(error.contains("cannot edit in"), "{error}");
        }
        let long = edit_in("sh -c 'head -c 1100000 /dev/zero >\"$0\"'", "a");
        assert!(long.unwrap_err().contains("longer than"));
    }
}
