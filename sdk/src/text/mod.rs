//! Text of peers and users: lines of bounded length, text that is safe to show in a terminal, patches, ages
//! and options.

mod age;
pub mod agent_name;
mod lines;
mod option;
mod patch;
mod sanitizer;

use std::fmt::Write as _;

pub use self::age::age;
pub use self::lines::{Line, Splitter};
pub use self::option::option_value;
pub use self::patch::{GitPatch, git_patch};
pub use self::sanitizer::Sanitizer;

/// Returns whether a character controls a terminal or the direction of text, or takes no column, instead
/// of being shown.
///
/// True for line feeds and tabs, which most callers keep. False for the two joiners, which scripts and
/// emoji need.
#[must_use]
pub fn is_control(c: char) -> bool {
    let turns = matches!(
        c,
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}'
    ) || matches!(c, '\u{2066}'..='\u{206f}' | '\u{fff9}'..='\u{fffb}');
    let has_no_width = matches!(
        c,
        '\u{ad}' | '\u{180e}' | '\u{200b}' | '\u{2060}'..='\u{2064}' | '\u{feff}'
    ) || matches!(
        c,
        '\u{115f}' | '\u{1160}' | '\u{3164}' | '\u{ffa0}' | '\u{e0000}'..='\u{e007f}'
    );
    c.is_control() || turns || has_no_width
}

/// Removes escape sequences and [control characters](is_control), except line feeds and tabs.
///
/// A sequence that sets a title or similar ends at a line feed at the latest. For a text that arrives in parts
/// there is [`Sanitizer`].
///
/// ```
/// let shown = acp_sdk::text::printable("\u{1b}[31mred\u{1b}[0m\n\u{202e}txt.exe");
/// assert_eq!(shown, "red\ntxt.exe");
/// ```
#[must_use]
pub fn printable(text: &str) -> String {
    Sanitizer::default().push(text)
}

/// Shows [control characters](is_control) as `\u{1b}` or similar, except line feeds and tabs, so that nothing
/// of the text is missing: for text that somebody decides about.
///
/// ```
/// let shown = acp_sdk::text::escaped("ls \u{1b}]0;; rm -rf /\u{7}");
/// assert_eq!(shown, r"ls \u{1b}]0;; rm -rf /\u{7}");
/// ```
#[must_use]
pub fn escaped(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' | '\t' => shown.push(c),
            c if is_control(c) => shown.extend(c.escape_unicode()),
            c => shown.push(c),
        }
    }
    shown
}

/// Returns [`printable`] text in a single line: line feeds and tabs become spaces. Other white space
/// stays, as it may align columns.
#[must_use]
pub fn single_line(text: &str) -> String {
    printable(text).replace(['\n', '\t'], " ")
}

/// Returns [`printable`] text as one line of at most `most` characters, with white space
/// collapsed. A longer line ends with `…`.
#[must_use]
pub fn one_line(text: &str, most: usize) -> String {
    let mut line = String::new();
    let mut length = 0;
    for word in text.split_whitespace() {
        let word = printable(word);
        let space = (length > 0 && !word.is_empty()).then_some(' ');
        for character in space.into_iter().chain(word.chars()) {
            if length == most {
                line.push('…');
                return line;
            }
            line.push(character);
            length += 1;
        }
    }
    line
}

/// Adds the texts of what caused an error to a text: `text: cause: cause of it`.
#[must_use]
pub fn with_causes(mut text: String, error: &dyn std::error::Error) -> String {
    let mut source = error.source();
    while let Some(cause) = source {
        // Writing to a string cannot fail.
        let _ = write!(text, ": {cause}");
        source = cause.source();
    }
    text
}

/// Returns a command as a shell would take it: words that it would not read as one are in quotes.
#[must_use]
pub fn command_line(words: impl IntoIterator<Item = impl AsRef<str>>) -> String {
    let plain = |c: char| c.is_alphanumeric() || "-_./=:@,+%".contains(c);
    let mut line = String::new();
    for word in words {
        let word = word.as_ref();
        if !line.is_empty() {
            line.push(' ');
        }
        match !word.is_empty() && word.chars().all(plain) {
            true => line.push_str(word),
            false => {
                line.push('\'');
                line.push_str(&word.replace('\'', r"'\''"));
                line.push('\'');
            }
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_controls_the_terminal() {
        let text = "a\u{1b}[2J\u{1b}[1;31mb\r\u{7}\tc\nd";
        assert_eq!(printable(text), "ab\tc\nd");
        assert_eq!(printable("\u{1b}]0;title\u{7}x\u{9b}2Jy"), "xy");
        assert_eq!(
            printable("\u{1b}]8;;http://a\u{1b}\\link\u{9d}8;;\u{9c}."),
            "link."
        );
        assert_eq!(printable("\u{1b}Pq#0\u{1b}\\a\u{1b}]no end\nb"), "a\nb");
        assert_eq!(printable("rm \u{202e}gpj.exe\u{2066}"), "rm gpj.exe");
        assert_eq!(printable("a\u{200b}b\u{feff}c\u{e0041}d\u{2060}"), "abcd");
        assert_eq!(
            printable("\u{1f469}\u{200d}\u{1f4bb}"),
            "\u{1f469}\u{200d}\u{1f4bb}"
        );
        // A sequence in two texts leaves letters, not a sequence.
        assert_eq!(printable("\u{1b}[") + &printable("2J"), "2J");
        assert_eq!(printable("\u{1b}\u{1b}[2Jx"), "x");
    }

    #[test]
    fn a_command_line_shows_which_words_there_are() {
        let line = command_line(["rm", "-r", "a b", "", "it's", "$(x)", "ü/*"]);
        assert_eq!(line, r"rm -r 'a b' '' 'it'\''s' '$(x)' 'ü/*'");
    }

    #[test]
    fn a_line_is_short_and_harmless() {
        assert_eq!(one_line("  a\n\tb  c ", 9), "a b c");
        assert_eq!(one_line("a \u{7} b\rc", 9), "a b c");
        assert_eq!(one_line("\u{1b}]0;title\u{7}rm -rf", 99), "rm -rf");
        assert_eq!(one_line("äöü äöü", 5), "äöü ä…");
        assert_eq!(one_line("äöü", 3), "äöü");
        assert_eq!(one_line("", 3), "");
        assert_eq!(single_line("a  b\n\tc\u{1b}[2J\r"), "a  b  c");
    }
}
