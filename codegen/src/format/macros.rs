//! Layout of calls of the runtime's macros, which no formatter knows.

use proc_macro2::{Delimiter, Spacing, TokenStream, TokenTree};

/// The longest line.
const WIDTH: usize = 100;

/// A call `path!(arguments)` or `path!(arguments { entries })`: on one line if it
/// fits, otherwise with a line an entry.
pub(super) fn layout(call: &syn::Macro) -> String {
    let path: Vec<String> = call
        .path
        .segments
        .iter()
        .map(|part| part.ident.to_string())
        .collect();
    let path = path.join("::");
    let (arguments, entries) = split(call.tokens.clone());
    let Some(entries) = entries else {
        return format!("{path}!({arguments});\n");
    };
    let line = format!("{path}!({arguments} {{ {} }});\n", entries.join(", "));
    if line.len() <= WIDTH {
        return line;
    }
    let mut text = format!("{path}!({arguments} {{\n");
    for entry in entries {
        // A rest, as in a pattern, is the last and takes no comma.
        let comma = if entry.starts_with("..") { "" } else { "," };
        text.push_str(&format!("    {entry}{comma}\n"));
    }
    text.push_str("});\n");
    text
}

/// What stands before the braces, and the entries in them.
fn split(tokens: TokenStream) -> (String, Option<Vec<String>>) {
    let mut before = Vec::new();
    for token in tokens {
        match token {
            TokenTree::Group(group) if group.delimiter() == Delimiter::Brace => {
                let tokens: Vec<TokenTree> = group.stream().into_iter().collect();
                let entries = tokens.split(is_comma).filter(|entry| !entry.is_empty());
                return (inline(&before), Some(entries.map(inline).collect()));
            }
            token => before.push(token),
        }
    }
    (inline(&before), None)
}

fn is_comma(token: &TokenTree) -> bool {
    matches!(token, TokenTree::Punct(punct) if punct.as_char() == ',')
}

/// Tokens on one line, spaced as rustfmt would.
fn inline(tokens: &[TokenTree]) -> String {
    let mut text = String::new();
    let mut after_word = false;
    for token in tokens {
        let word = matches!(token, TokenTree::Ident(_) | TokenTree::Literal(_));
        match token {
            TokenTree::Punct(punct) => match (punct.as_char(), punct.spacing()) {
                (c @ ('=' | '+'), _) => text.push_str(&format!(" {c} ")),
                (',', _) => text.push_str(", "),
                (':', Spacing::Alone) if !text.ends_with(':') => text.push_str(": "),
                (c, _) => text.push(c),
            },
            TokenTree::Group(group) => {
                let inner: Vec<TokenTree> = group.stream().into_iter().collect();
                let inner = inline(&inner);
                match group.delimiter() {
                    Delimiter::Parenthesis => text.push_str(&format!("({inner})")),
                    Delimiter::None => text.push_str(&inner),
                    _ if after_word => text.push_str(&format!(" [{inner}]")),
                    _ => text.push_str(&format!("[{inner}]")),
                }
            }
            other => {
                // Two words, or a word after brackets.
                if after_word || text.ends_with([']', ')']) {
                    text.push(' ');
                }
                text.push_str(&other.to_string());
            }
        }
        after_word = word;
    }
    text
}

#[cfg(test)]
mod tests {
    use super::layout;

    fn laid_out(call: &str) -> String {
        layout(&syn::parse_str(call).expect("a macro call"))
    }

    #[test]
    fn short_calls_take_one_line() {
        for call in [
            "runtime::string_id!(SessionId);\n",
            "runtime::members!(A { x \"x\": Option<B> = optional });\n",
            "runtime::string_enum!(A { B = \"b, c\", ..Unknown });\n",
            "runtime::object_union!(A { B: X = [\"x\", \"y\"], C: Y = [] });\n",
            "runtime::members!(A { \"x\": Option<Vec<B>> = optional + or_default });\n",
            "runtime::tagged_union!(A [\"type\"] or B { \"c\": C, \"d\": () });\n",
        ] {
            assert_eq!(laid_out(call.trim_end().trim_end_matches(';')), call);
        }
    }

    #[test]
    fn long_calls_take_a_line_an_entry() {
        let word = "w".repeat(60);
        let call = format!("m!(A {{ B = \"{word}\", C = \"{word}\", ..D }})");
        let expected =
            format!("m!(A {{\n    B = \"{word}\",\n    C = \"{word}\",\n    ..D\n}});\n");
        assert_eq!(laid_out(&call), expected);
    }
}
