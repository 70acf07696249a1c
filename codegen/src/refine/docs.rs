//! Descriptions as rustdoc: safe Markdown, no accidental links or tags.

use proc_macro2::TokenStream;
use quote::quote;

/// The doc attributes of a description, or of `fallback` when there is none.
pub(crate) fn described(text: Option<&str>, fallback: &str) -> TokenStream {
    match text.map(str::trim) {
        Some(text) if !text.is_empty() => {
            let mut fenced = false;
            attributes(text.lines().map(|line| {
                let fence = line.trim_start().starts_with("```");
                fenced ^= fence;
                if fenced || fence {
                    line.trim_end().to_owned()
                } else {
                    safe(line)
                }
            }))
        }
        _ => written(fallback),
    }
}

/// The doc attributes of a text of ours, which is Markdown already.
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

/// One line without what rustdoc would misread.
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

/// Whether `text` starts with an inline link, `[words](address)`.
fn is_link(text: &str) -> bool {
    text.find(']')
        .is_some_and(|end| text[end + 1..].starts_with('('))
}

#[cfg(test)]
mod tests {
    use super::safe;

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
