//! Sanitizes text of the agent for single lines of output.

/// Returns one line of at most `most` characters, without control characters and with white space
/// collapsed.
pub(crate) fn one_line(text: &str, most: usize) -> String {
    let mut line = String::new();
    let mut length = 0;
    for word in text.split_whitespace() {
        let printable = word.chars().filter(|c| !c.is_control());
        let space = (length > 0).then_some(' ');
        for character in space.into_iter().chain(printable) {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_short_and_harmless() {
        assert_eq!(one_line("  a\n\tb  c ", 9), "a b c");
        assert_eq!(one_line("\u{1b}]0;title\u{7}rm -rf", 99), "]0;titlerm -rf");
        assert_eq!(one_line("äöü äöü", 5), "äöü ä…");
        assert_eq!(one_line("äöü", 3), "äöü");
        assert_eq!(one_line("", 3), "");
    }
}
