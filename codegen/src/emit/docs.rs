//! Turns descriptions into rustdoc: valid Markdown without unintended links or tags.

use proc_macro2::TokenStream;
use quote::quote;

/// Returns the doc attributes of a description, or of `fallback` when there is none.
pub(crate) fn described(text: Option<&str>, fallback: &str) -> TokenStream {
    // The compiler rejects comments with characters that change the direction of text.
    let text = text.map(|text| text.replace(turns_direction, ""));
    match text.as_deref().map(str::trim) {
        Some(text) if !text.is_empty() => {
            let mut fenced = false;
            attributes(text.lines().flat_map(|line| {
                let fence = line.trim_start().starts_with("```");
                fenced ^= fence;
                if fenced || fence {
                    vec![line.trim_end().to_owned()]
                } else {
                    wrapped(&safe(line))
                }
            }))
        }
        _ => written(fallback),
    }
}

/// Returns the doc attributes of a text of the generator, which is Markdown already.
pub(crate) fn written(text: &str) -> TokenStream {
    attributes(text.lines().map(str::to_owned))
}

fn attributes(lines: impl Iterator<Item = String>) -> TokenStream {
    let lines = lines.map(|line| {
        if line.is_empty() {
            line
        } else {
            format!(" {line}")
        }
    });
    quote!(#(#[doc = #lines])*)
}

/// The largest width of a line.
const WIDTH: usize = 88;

/// Wraps a line; rustdoc reads the result as the same paragraph or list item.
fn wrapped(line: &str) -> Vec<String> {
    let body = line.trim_start();
    let mut indent = " ".repeat(line.len() - body.len());
    let mut lines = Vec::new();
    let mut current = indent.clone();
    if starts_block(body.split(' ').next().unwrap_or_default()) {
        // Further lines of a list item are indented to its text.
        indent.push_str("  ");
    }
    for word in body.split(' ') {
        let started = !current.trim().is_empty();
        let in_link = current.matches('[').count() > current.matches(']').count();
        // At the start of a line, some words would begin a list or a heading.
        let breaks = !in_link && !starts_block(word);
        if started && breaks && current.len() + 1 + word.len() > WIDTH {
            lines.push(std::mem::replace(&mut current, indent.clone()));
        } else if started {
            current.push(' ');
        }
        current.push_str(word);
    }
    lines.push(current);
    lines
}

/// Returns whether a word is Markdown syntax at the start of a line.
fn starts_block(word: &str) -> bool {
    let number = word.strip_suffix(['.', ')']).unwrap_or_default();
    let is_number = !number.is_empty() && number.chars().all(|c| c.is_ascii_digit());
    is_number
        || matches!(word, "-" | "+" | "*")
        || word.starts_with(['#', '>', '=', '|'])
        || word.starts_with("```")
}

/// Returns whether a character changes the direction of the text around it.
fn turns_direction(c: char) -> bool {
    matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Escapes the parts of a line that rustdoc would misinterpret.
fn safe(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut code = false;
    let mut rest = text.trim_end();
    while let Some(c) = rest.chars().next() {
        let url = ["https://", "http://"]
            .iter()
            .any(|scheme| rest.starts_with(scheme));
        if url && !code && !out.ends_with(['(', '<']) {
            let end = rest.find(|c: char| c.is_whitespace() || matches!(c, ')' | '>' | ','));
            let (address, after) = rest.split_at(end.unwrap_or(rest.len()));
            let address_end = address.trim_end_matches(['.', ':', ';']);
            out.push('<');
            out.push_str(address_end);
            out.push('>');
            out.push_str(&address[address_end.len()..]);
            rest = after;
            continue;
        }
        let escaped = out.ends_with('\\');
        match c {
            '`' => code = !code,
            '[' if !code && !escaped && !is_link(rest) => out.push('\\'),
            '<' if !code && !escaped && !rest.starts_with("<http") => out.push('\\'),
            _ => {}
        }
        out.push(c);
        rest = &rest[c.len_utf8()..];
    }
    out
}

/// Returns whether `text` starts with an inline link, `[words](address)`.
fn is_link(text: &str) -> bool {
    text.find(']')
        .is_some_and(|end| text[end + 1..].starts_with('('))
}

#[cfg(test)]
mod tests {
    use super::{described, safe, wrapped};

    #[test]
    fn what_turns_the_direction_of_text_is_left_out() {
        let tokens = described(Some("a\u{202e}b\n```\nc\u{2066}d\n```"), "").to_string();
        assert!(tokens.contains("ab") && tokens.contains("cd"), "{tokens}");
    }

    #[test]
    fn long_lines_are_broken_where_markdown_does_not_care() {
        assert_eq!(wrapped("short"), ["short"]);
        assert_eq!(wrapped(""), [""]);
        let word = "w".repeat(50);
        assert_eq!(
            wrapped(&format!("{word} {word}")),
            [word.as_str(), word.as_str()]
        );
        assert_eq!(
            wrapped(&format!("{word} {word} - 1. # {word}")),
            [word.clone(), format!("{word} - 1. #"), word.clone()]
        );
        let link = format!("[two words]({word})");
        assert_eq!(
            wrapped(&format!("{word} {link} end")),
            [format!("{word} {link}"), "end".to_owned()]
        );
        assert_eq!(
            wrapped(&format!("- {word} {word}")),
            [format!("- {word}"), format!("  {word}")]
        );
    }

    #[test]
    fn links_and_tags_are_made_safe() {
        for (text, expected) in [
            ("plain", "plain"),
            ("see https://a.b/c.", "see <https://a.b/c>."),
            ("see [words](https://a.b)", "see [words](https://a.b)"),
            ("a [b] c", "a \\[b] c"),
            ("`[b]` and `<T>`", "`[b]` and `<T>`"),
            ("Vec<T>", "Vec\\<T>"),
            (r"\[1\]", r"\[1\]"),
        ] {
            assert_eq!(safe(text), expected);
        }
    }
}
