//! Whether two globs have a common path.

use std::path::{Component, Path};

/// The longest name whose characters are compared. A longer one may match every other name.
const LONGEST: usize = 256;

/// A component of a glob.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Name {
    /// `**`: any number of components.
    Any,
    /// One component.
    One(Vec<Token>),
}

/// A part of a [`Name`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Token {
    /// This character, in lower case.
    Char(char),
    /// One character: `?`, `[ab]`.
    AnyChar,
    /// Any number of characters: `*`, `{a,b}`.
    AnyText,
}

/// Returns the components of a glob. `..` after a wildcard makes it match everything.
pub(super) fn names(glob: &Path) -> Vec<Name> {
    let mut names = Vec::new();
    for component in glob.components() {
        match (component, names.last()) {
            (Component::Normal(name), _) => names.push(name_of(&name.to_string_lossy())),
            (Component::ParentDir, Some(Name::One(tokens))) if is_literal(tokens) => {
                names.pop();
            }
            (Component::ParentDir, Some(_)) => return vec![Name::Any],
            _ => {}
        }
    }
    names
}

/// Returns the components of a path without wildcards.
pub(super) fn literal_names(path: &Path) -> Vec<Name> {
    let names = path.components().filter_map(|component| match component {
        Component::Normal(name) => Some(name.to_string_lossy().into_owned()),
        _ => None,
    });
    names
        .map(|name| Name::One(lower(&name).map(Token::Char).collect()))
        .collect()
}

fn lower(text: &str) -> impl Iterator<Item = char> {
    text.chars().flat_map(char::to_lowercase)
}

fn is_literal(tokens: &[Token]) -> bool {
    tokens.iter().all(|token| matches!(token, Token::Char(_)))
}

fn name_of(text: &str) -> Name {
    // Alternatives may contain separators: the rest of them is in other components.
    let count = |c: char| text.matches(c).count();
    if text == "**" || count('{') != count('}') || count('[') > count(']') {
        return Name::Any;
    }
    let mut tokens = Vec::new();
    let mut chars = lower(text).peekable();
    while let Some(c) = chars.next() {
        match c {
            '*' => tokens.push(Token::AnyText),
            '?' => tokens.push(Token::AnyChar),
            '[' => {
                // A `]` at the start is a member of the class.
                if matches!(chars.peek(), Some('!' | '^')) {
                    chars.next();
                }
                chars.next();
                if !chars.any(|c| c == ']') {
                    return Name::Any;
                }
                tokens.push(Token::AnyChar);
            }
            '{' => {
                let mut depth = 1;
                while depth > 0 {
                    match chars.next() {
                        Some('{') => depth += 1,
                        Some('}') => depth -= 1,
                        Some(_) => {}
                        None => return Name::Any,
                    }
                }
                tokens.push(Token::AnyText);
            }
            '\\' if !cfg!(windows) => tokens.extend(chars.next().map(Token::Char)),
            c => tokens.push(Token::Char(c)),
        }
    }
    match tokens.len() > LONGEST {
        true => Name::Any,
        false => Name::One(tokens),
    }
}

/// Returns whether some path matches both.
pub(super) fn intersect(a: &[Name], b: &[Name]) -> bool {
    let any = |name: &Name| *name == Name::Any;
    let both = |a: &Name, b: &Name| match (a, b) {
        (Name::One(a), Name::One(b)) => {
            let text = |token: &Token| *token == Token::AnyText;
            let one = |a: &Token, b: &Token| match (a, b) {
                (Token::Char(a), Token::Char(b)) => a == b,
                _ => true,
            };
            have_common(a, b, text, one)
        }
        _ => true,
    };
    have_common(a, b, any, both)
}

/// Returns whether two sequences of wildcards and others have a common reading: `is_wild` matches any
/// number of elements, `both` says whether two others match a common one.
fn have_common<T>(
    a: &[T],
    b: &[T],
    is_wild: impl Fn(&T) -> bool,
    both: impl Fn(&T, &T) -> bool,
) -> bool {
    // For each end of `b`, whether it has a common reading with the rest of `a`.
    let mut next: Vec<bool> = Vec::new();
    for at in (0..=a.len()).rev() {
        let mut row = vec![false; b.len() + 1];
        for bt in (0..=b.len()).rev() {
            let below = |bt: usize| next.get(bt).copied().unwrap_or_default();
            row[bt] = match (a.get(at), b.get(bt)) {
                (None, None) => true,
                (Some(x), _) if is_wild(x) => below(bt) || (bt < b.len() && row[bt + 1]),
                (_, Some(y)) if is_wild(y) => row[bt + 1] || below(bt),
                (Some(x), Some(y)) => below(bt + 1) && both(x, y),
                _ => false,
            };
        }
        next = row;
    }
    next.first().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn globs_have_a_common_path_or_none() {
        for (a, b, expected) in [
            ("a/b", "A/b", true),
            ("a/b", "a", false),
            ("**", "", true),
            ("**/x", "x", true),
            ("**/x", "a/b/x", true),
            ("**/x", "a/b/y", false),
            ("a/**", "**/b", true),
            ("a/**/c", "a/*/c", true),
            ("*.env", ".env", true),
            ("*.env", "*.rs", false),
            ("a*", "*b", true),
            ("a?c", "a*", true),
            ("a?c", "ac", false),
            ("[!]x]y", "ay", true),
            ("[slug]", ".env", false),
            ("{a,b}.rs", "c.rs", true),
            ("{a/b,c}/x", "q/r/x", true),
            ("a/*/../b", "z", true),
            ("a/b/../c", "a/c", true),
            ("a/b/../c", "a/b/c", false),
        ] {
            let (first, second) = (names(Path::new(a)), names(Path::new(b)));
            assert_eq!(intersect(&first, &second), expected, "{a} {b}");
            assert_eq!(intersect(&second, &first), expected, "{b} {a}");
        }
    }
}
