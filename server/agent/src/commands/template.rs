//! The text of a command, with places for its arguments.

use std::collections::BTreeMap;

/// Bytes that an expanded command has at most: a short template can name a long argument often.
pub(super) const LONGEST_EXPANSION: usize = 1 << 20;

/// A text with placeholders.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Template(Vec<Piece>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Piece {
    Text(String),
    /// `$ARGUMENTS`: the arguments as they were typed.
    All,
    /// `$1` to `$9`.
    Word(usize),
    /// `$NAME`, in upper case.
    Named(String),
}

impl Template {
    pub(super) fn parse(text: &str) -> Self {
        let mut pieces = Vec::new();
        let mut plain = String::new();
        let mut rest = text;
        while let Some(at) = rest.find('$') {
            plain.push_str(&rest[..at]);
            let after = &rest[at + 1..];
            let (piece, length) = placeholder(after);
            rest = &after[length..];
            match piece {
                Some(piece) => {
                    if !plain.is_empty() {
                        pieces.push(Piece::Text(std::mem::take(&mut plain)));
                    }
                    pieces.push(piece);
                }
                // `$$`, or a sign that begins nothing.
                None => plain.push('$'),
            }
        }
        plain.push_str(rest);
        if !plain.is_empty() {
            pieces.push(Piece::Text(plain));
        }
        Self(pieces)
    }

    pub(super) fn takes_arguments(&self) -> bool {
        self.0.iter().any(|piece| !matches!(piece, Piece::Text(_)))
    }

    /// Puts arguments into their places; `None` if the result is too long. Those of a template
    /// without places follow its text.
    pub(super) fn expand(&self, typed: &str) -> Option<String> {
        let typed = typed.trim();
        let (words, named) = self.assign(split(typed));
        let mut expanded = String::new();
        for piece in &self.0 {
            let text = match piece {
                Piece::Text(text) => text,
                Piece::All => typed,
                Piece::Word(number) => words.get(number - 1).map_or("", String::as_str),
                Piece::Named(name) => named.get(name).map_or("", String::as_str),
            };
            if expanded.len() + text.len() > LONGEST_EXPANSION {
                return None;
            }
            expanded.push_str(text);
        }
        if !typed.is_empty() && !self.takes_arguments() {
            expanded.push_str("\n\n");
            expanded.push_str(typed);
        }
        (expanded.len() <= LONGEST_EXPANSION).then_some(expanded)
    }

    /// Takes the words `name=value` out whose names the template has.
    fn assign(&self, words: Vec<String>) -> (Vec<String>, BTreeMap<String, String>) {
        let mut named = BTreeMap::new();
        let mut others = Vec::new();
        for word in words {
            if let Some((name, value)) = word.split_once('=')
                && let name = name.to_ascii_uppercase()
                && self.0.contains(&Piece::Named(name.clone()))
            {
                named.insert(name, value.to_owned());
            } else {
                others.push(word);
            }
        }
        (others, named)
    }
}

/// Returns what begins behind a `$`, and its length.
fn placeholder(after: &str) -> (Option<Piece>, usize) {
    match after.as_bytes().first() {
        Some(b'$') => (None, 1),
        Some(digit @ b'1'..=b'9') => (Some(Piece::Word(usize::from(digit - b'0'))), 1),
        Some(b'A'..=b'Z') => {
            let in_name = |byte: &u8| matches!(byte, b'A'..=b'Z' | b'0'..=b'9' | b'_');
            let length = after.bytes().take_while(in_name).count();
            let piece = match &after[..length] {
                "ARGUMENTS" => Piece::All,
                name => Piece::Named(name.to_owned()),
            };
            (Some(piece), length)
        }
        _ => (None, 0),
    }
}

/// Splits as a shell does: blanks separate words, quotes keep them together, a backslash takes the
/// special meaning of the next character. Nothing is a comment. A quote without its end is an
/// apostrophe.
pub(super) fn split(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut rest = text.chars();
    while let Some(next) = rest.next() {
        match next {
            blank if blank.is_whitespace() => words.extend(word.take()),
            '\'' | '"' => {
                let word = word.get_or_insert_default();
                match quoted(rest.as_str(), next) {
                    Some((inside, behind)) => {
                        word.push_str(&inside);
                        rest = behind.chars();
                    }
                    None => word.push(next),
                }
            }
            '\\' => word
                .get_or_insert_default()
                .push(rest.next().unwrap_or('\\')),
            other => word.get_or_insert_default().push(other),
        }
    }
    words.extend(word);
    words
}

/// Returns the text up to a quote, and what is behind it; `None` without one.
fn quoted(text: &str, quote: char) -> Option<(String, &str)> {
    let mut inside = String::new();
    let mut rest = text.chars();
    while let Some(next) = rest.next() {
        match next {
            end if end == quote => return Some((inside, rest.as_str())),
            '\\' if quote == '"' => match rest.next()? {
                special @ ('"' | '\\' | '$' | '`') => inside.push(special),
                other => inside.extend(['\\', other]),
            },
            other => inside.push(other),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn expands(template: &str, arguments: &str, expected: &str) {
        let expanded = Template::parse(template).expand(arguments);
        assert_eq!(expanded.as_deref(), Some(expected));
    }

    #[test]
    fn placeholders_are_replaced_once() {
        expands("a $1 b $2", "x 'y z'", "a x b y z");
        expands(
            "all: $ARGUMENTS.",
            " don't  'split' ",
            "all: don't  'split'.",
        );
        expands("$1-$2-$1", "x", "x--x");
        expands("$2 of $TARGET", "a target=b c", "c of b");
        expands("$1 $TARGET", "$2 TARGET='$1 x'", "$2 $1 x");
        expands("$1 $X", "Y=1 X=2 X=3", "Y=1 3");
    }

    #[test]
    fn signs_that_are_no_placeholders_stay() {
        expands(
            "$$1 costs $ 5, ${X} $x $0 $",
            "",
            "$1 costs $ 5, ${X} $x $0 $",
        );
        expands("$$$1", "x", "$x");
        expands("$10", "x", "x0");
        expands("$ARGUMENTS_2", "x", "");
        expands("ä$1ö", "ü", "äüö");
    }

    #[test]
    fn arguments_without_a_place_follow_the_text() {
        expands("Review.", "the last commit", "Review.\n\nthe last commit");
        expands("Review.", "  ", "Review.");
    }

    #[test]
    fn words_are_split_as_a_shell_does() {
        let split = |text| split(text).join("|");
        assert_eq!(
            split(r#"a "b \"c\" $d" 'e\' f\ g "#),
            r#"a|b "c" $d|e\|f g"#
        );
        assert_eq!(split("a'b'c ''  \t\n#1 \\"), "abc||#1|\\");
        assert_eq!(split("don't do \"it"), "don't|do|\"it");
    }

    #[test]
    fn expansions_are_bounded() {
        let template = Template::parse(&"$1".repeat(1000));
        assert!(template.expand(&"x".repeat(1000)).is_some());
        assert_eq!(template.expand(&"x".repeat(2000)), None);
        let template = Template::parse("Review.");
        assert_eq!(template.expand(&"x".repeat(LONGEST_EXPANSION)), None);
    }
}
