//! Rust names of members and variants, from their names on the wire.

use std::collections::BTreeMap;

use heck::{ToPascalCase as _, ToSnakeCase as _};
use proc_macro2::Ident;
use quote::format_ident;

/// Returns the name of the field of a member. A word of Rust gets an underscore.
pub(crate) fn field(wire: &str) -> Ident {
    let name = letters(wire).to_snake_case();
    let name = match name.chars().next() {
        Some(first) if first.is_numeric() => format!("x{name}"),
        Some(_) => name,
        None => spelled(wire).to_snake_case(),
    };
    identifier(&name)
}

/// The name as an identifier, also when it is a word of Rust.
pub(crate) fn identifier(name: &str) -> Ident {
    syn::parse_str(name).unwrap_or_else(|_| format_ident!("{name}_"))
}

/// Returns the names of variants, in the order of the values. Signs are left out; where that
/// makes two names one, or leaves none, they are spelled.
pub(crate) fn variants<'a>(wires: impl Iterator<Item = &'a str> + Clone) -> Vec<String> {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for wire in wires.clone() {
        *counts.entry(letters(wire).to_pascal_case()).or_default() += 1;
    }
    let name = |wire: &str| {
        let plain = letters(wire).to_pascal_case();
        let name = match counts.get(&plain) {
            Some(1) if !plain.is_empty() => plain,
            _ => spelled(wire).to_pascal_case(),
        };
        match name.starts_with(|first: char| first.is_numeric()) {
            true => format!("X{name}"),
            // The only such word of Rust.
            false if name == "Self" => "Self_".to_owned(),
            false => name,
        }
    };
    wires.map(name).collect()
}

/// Replaces what no name in Rust can have.
fn letters(wire: &str) -> String {
    wire.replace(|c: char| !(c == '_' || is_part(c)), "-")
}

fn is_part(c: char) -> bool {
    c.is_alphanumeric() && syn::parse_str::<Ident>(&format!("x{c}")).is_ok()
}

/// Spells the signs of a name.
fn spelled(wire: &str) -> String {
    let mut name = String::new();
    for c in wire.chars() {
        match c {
            c if is_part(c) => name.push(c),
            c => {
                name.push('-');
                match sign(c) {
                    Some(word) => name.push_str(word),
                    None => name.push_str(&format!("u{:x}", u32::from(c))),
                }
                name.push('-');
            }
        }
    }
    if name.is_empty() {
        "empty".into()
    } else {
        name
    }
}

fn sign(c: char) -> Option<&'static str> {
    Some(match c {
        ' ' => "space",
        '!' => "not",
        '"' => "quote",
        '#' => "hash",
        '$' => "dollar",
        '%' => "percent",
        '&' => "and",
        '\'' => "apostrophe",
        '(' | '[' | '{' => "open",
        ')' | ']' | '}' => "close",
        '*' => "star",
        '+' => "plus",
        ',' => "comma",
        '-' => "minus",
        '.' => "dot",
        '/' => "slash",
        ':' => "colon",
        ';' => "semicolon",
        '<' => "less",
        '=' => "equal",
        '>' => "greater",
        '?' => "question",
        '@' => "at",
        '\\' => "backslash",
        '^' => "caret",
        '_' => "underscore",
        '`' => "backtick",
        '|' => "or",
        '~' => "tilde",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_fields() {
        for (wire, expected) in [
            ("toolCallId", "tool_call_id"),
            ("$odd-name", "odd_name"),
            ("type", "type_"),
            ("self", "self_"),
            ("2fa", "x2fa"),
            ("", "empty"),
            ("*", "star"),
            ("_", "underscore"),
            ("größe", "größe"),
            ("😀", "u1f600"),
        ] {
            assert_eq!(field(wire).to_string(), expected, "{wire}");
        }
    }

    #[test]
    fn names_of_variants() {
        for (wires, expected) in [
            (
                &["tool_call", "self", "2fa", ""][..],
                &["ToolCall", "Self_", "X2fa", "Empty"][..],
            ),
            (&["<", "<=", "a"], &["Less", "LessEqual", "A"]),
            (&["a-b", "a_b", "c-d"], &["AMinusB", "AUnderscoreB", "CD"]),
            (&["😀"], &["U1f600"]),
        ] {
            assert_eq!(variants(wires.iter().copied()), expected);
        }
    }
}
