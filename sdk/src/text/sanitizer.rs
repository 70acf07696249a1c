//! Removes from a text what would control a terminal.

use super::is_control;

/// Removes escape sequences and [control characters](is_control) from a text that arrives in parts, except
/// line feeds and tabs.
///
/// The parts have the same result as the whole text: a sequence may begin in one part and end in another.
/// A sequence that sets a title or similar ends at a line feed at the latest.
///
/// ```
/// let mut sanitizer = acp_sdk::text::Sanitizer::default();
/// assert_eq!(sanitizer.push("a\u{1b}[3"), "a");
/// assert_eq!(sanitizer.push("1mb"), "b");
/// ```
#[derive(Clone, Debug, Default)]
pub struct Sanitizer {
    state: State,
}

/// The position in a sequence.
#[derive(Clone, Copy, Debug, Default)]
enum State {
    #[default]
    Text,
    /// After the escape character.
    Escape,
    /// In the parameters of a control sequence.
    Parameters,
    /// In the string of a sequence, such as that of a title.
    String,
    /// After an escape character in a string.
    StringEscape,
}

impl Sanitizer {
    /// Returns the printable part of the next part of the text.
    #[must_use]
    pub fn push(&mut self, part: &str) -> String {
        let mut shown = String::with_capacity(part.len());
        for c in part.chars() {
            self.state = match (self.state, c) {
                (State::Escape, '[') => State::Parameters,
                (State::Escape, ']' | 'P' | 'X' | '^' | '_') => State::String,
                (State::Parameters, ' '..='?') => State::Parameters,
                (State::Parameters, '@'..='~') | (State::StringEscape, '\\') => State::Text,
                (State::String, '\u{1b}') => State::StringEscape,
                (State::String, '\u{7}' | '\u{9c}') => State::Text,
                (State::String, c) if c != '\n' => State::String,
                // The character is not one of the sequence, which ends before it.
                (_, c) => begin(c, &mut shown),
            };
        }
        shown
    }
}

/// Adds a character outside of sequences, unless it begins one.
fn begin(c: char, shown: &mut String) -> State {
    match c {
        '\u{1b}' => return State::Escape,
        '\u{9b}' => return State::Parameters,
        '\u{90}' | '\u{98}' | '\u{9d}'..='\u{9f}' => return State::String,
        '\n' | '\t' => shown.push(c),
        c if is_control(c) => {}
        c => shown.push(c),
    }
    State::Text
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::text::printable;

    proptest! {
        #[test]
        fn the_parts_are_printed_as_the_whole(
            parts in prop::collection::vec("[\\x1b\\[\\]P\\\\0-3;m\\x07\u{9b}\u{9c}\u{9d}\u{202e}\n\ta-cü]{0,4}", 0..12)
        ) {
            let mut sanitizer = Sanitizer::default();
            let shown: String = parts.iter().map(|part| sanitizer.push(part)).collect();
            prop_assert_eq!(&shown, &printable(&parts.concat()));
            let controls = shown.replace(['\n', '\t'], "").contains(is_control);
            prop_assert!(!controls, "{shown:?}");
        }
    }

    #[test]
    fn a_sequence_in_two_parts_leaves_nothing() {
        for whole in [
            "a\u{1b}[1;31mb",
            "a\u{9b}2Jb",
            "a\u{1b}]0;title\u{7}b",
            "a\u{1b}]8;;http://x\u{1b}\\b",
            "a\u{90}q\u{9c}b",
        ] {
            for (at, _) in whole.char_indices() {
                let (begin, end) = whole.split_at(at);
                let mut sanitizer = Sanitizer::default();
                let shown = sanitizer.push(begin) + &sanitizer.push(end);
                assert_eq!(shown, "ab", "{whole:?} at {at}");
            }
        }
    }
}
