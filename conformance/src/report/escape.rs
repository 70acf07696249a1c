//! Text that came from elsewhere, made harmless where it is shown.
//!
//! What an agent or a client says stands in every report. It may hold markup, escape
//! sequences of terminals, or characters that turn the direction of writing: none of
//! it takes effect, and all of it stays visible.

use acp_sdk::text::is_control;

/// As a terminal may show it: nothing but lines of text.
pub(super) use acp_sdk::text::escaped as terminal;

/// As HTML shows it, in an element and in a quoted attribute.
pub(super) fn html(text: &str) -> String {
    markup(text, |c, out| match c {
        '\n' | '\t' => out.push(c),
        c if is_control(c) => out.extend(c.escape_unicode()),
        c => out.push(c),
    })
}

/// As XML allows it, in an element and in a quoted attribute, where lines would
/// otherwise be joined.
pub(super) fn xml(text: &str) -> String {
    markup(text, |c, out| match c {
        '\n' => out.push_str("&#10;"),
        '\t' => out.push_str("&#9;"),
        '\u{fffe}' | '\u{ffff}' => out.push(char::REPLACEMENT_CHARACTER),
        c if is_control(c) => out.extend(c.escape_unicode()),
        c => out.push(c),
    })
}

/// As HTML within one line, for an empty one ends it in Markdown.
pub(super) fn html_line(text: &str) -> String {
    html(&text.replace(['\n', '\r', '\t'], " "))
}

/// As Markdown shows it within a line or a cell of a table.
pub(super) fn markdown(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' | '\r' | '\t' => out.push(' '),
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '\\' | '`' | '*' | '_' | '[' | ']' | '|' | '#' | '~' | '!' | '$' => {
                out.push('\\');
                out.push(c);
            }
            c if is_control(c) => {
                out.push('\\');
                out.extend(c.escape_unicode());
            }
            c => out.push(c),
        }
    }
    out
}

/// As a code span of Markdown in a cell of a table.
pub(super) fn code(text: &str) -> String {
    let line: String = terminal(text).replace(['\n', '\t'], " ");
    // A table ends at a bar, in a code span too, unless it is escaped.
    let line = line.replace('|', "\\|");
    let fence = "`".repeat(longest_run(&line, '`') + 1);
    // A space is taken off again at both ends.
    let space = if line.starts_with('`') || line.ends_with('`') || line.is_empty() {
        " "
    } else {
        ""
    };
    format!("{fence}{space}{line}{space}{fence}")
}

/// As a fenced block of Markdown.
pub(super) fn block(text: &str, language: &str) -> String {
    let text = terminal(text);
    let fence = "`".repeat((longest_run(&text, '`') + 1).max(3));
    format!("{fence}{language}\n{text}\n{fence}\n")
}

/// Text of the tables as Markdown; backticks stand around code.
pub(super) fn prose(text: &str) -> String {
    // A sentence that was cut within code.
    if text.matches('`').count() % 2 == 1 {
        return markdown(text);
    }
    let parts = text.split('`').enumerate();
    let parts = parts.map(|(place, part)| match place % 2 {
        0 => markdown(part),
        _ => format!("`{part}`"),
    });
    parts.collect()
}

fn markup(text: &str, other: impl Fn(char, &mut String)) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => other(c, &mut out),
        }
    }
    out
}

fn longest_run(text: &str, of: char) -> usize {
    let runs = text.split(|c| c != of).map(str::len);
    runs.max().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_is_text() {
        assert_eq!(
            html("<b>&\"'\u{1b}\u{202e}"),
            "&lt;b&gt;&amp;&quot;&#39;\\u{1b}\\u{202e}"
        );
        assert_eq!(xml("<\n\u{0}\u{ffff}"), "&lt;&#10;\\u{0}\u{fffd}");
    }

    #[test]
    fn a_terminal_is_told_nothing() {
        assert_eq!(
            terminal("a\u{1b}[2J\r\nb\u{9b}"),
            "a\\u{1b}[2J\\u{d}\nb\\u{9b}"
        );
    }

    #[test]
    fn a_cell_of_a_table_stays_one() {
        assert_eq!(
            markdown("a|b\nc`d`<i> *x*"),
            "a\\|b c\\`d\\`&lt;i&gt; \\*x\\*"
        );
        assert_eq!(code("a|b\nc"), "`a\\|b c`");
    }

    #[test]
    fn code_is_not_left_by_backticks() {
        assert_eq!(code("`` x"), "``` `` x ```");
        assert_eq!(code(""), "`  `");
        assert_eq!(block("a\n```\nb", "json"), "````json\na\n```\nb\n````\n");
    }
}
