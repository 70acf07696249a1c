//! The setting of readline for the keys of a line editor.

use std::path::PathBuf;

use crate::args::Editing;
use crate::folders;
use crate::text_file;

/// Maximum size of the file, in bytes.
const LARGEST: u64 = 256 << 10;

/// Returns the keys that `$INPUTRC` or `~/.inputrc` sets. A file that cannot be read sets nothing.
pub(super) fn editing() -> Editing {
    let named = std::env::var_os("INPUTRC").filter(|file| !file.is_empty());
    let file = named.map(PathBuf::from);
    let file = file.or_else(|| Some(folders::home()?.join(".inputrc")));
    let text = file.and_then(|file| text_file::read(&file, LARGEST).ok()?);
    text.map_or(Editing::Emacs, |text| of(&text))
}

/// Returns the last setting that is under no condition: conditions name other programs, or terminals.
fn of(text: &str) -> Editing {
    let (mut editing, mut conditions) = (Editing::Emacs, 0_usize);
    for line in text.lines() {
        let mut words = line.split_whitespace();
        match words.next() {
            Some("$if") => conditions += 1,
            Some("$endif") => conditions = conditions.saturating_sub(1),
            Some("set") if conditions == 0 => {
                let mut next_is = |expected: &str| {
                    let word = words.next();
                    word.is_some_and(|word| word.eq_ignore_ascii_case(expected))
                };
                if next_is("editing-mode") {
                    editing = match next_is("vi") {
                        true => Editing::Vi,
                        false => Editing::Emacs,
                    };
                }
            }
            _ => {}
        }
    }
    editing
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_setting_without_a_condition_counts() {
        for (text, editing) in [
            ("", Editing::Emacs),
            ("set editing-mode vi", Editing::Vi),
            (
                "  set\tEditing-Mode  VI # keys\nset bell-style none",
                Editing::Vi,
            ),
            (
                "set editing-mode vi\nset editing-mode emacs",
                Editing::Emacs,
            ),
            ("# set editing-mode vi\nset editing-mode", Editing::Emacs),
            ("$if Bash\nset editing-mode vi\n$endif", Editing::Emacs),
            (
                "$if Bash\n$if mode=vi\n$endif\nset editing-mode emacs\n$else\n$endif\nset editing-mode vi",
                Editing::Vi,
            ),
            ("$endif\nset editing-mode vi", Editing::Vi),
        ] {
            assert_eq!(of(text), editing, "{text}");
        }
    }
}
