//! Tests what is shown of Markdown.

use unicode_width::UnicodeWidthStr as _;

use super::*;

const PLAIN: Paint = Paint { colours: false };
const COLOURS: Paint = Paint { colours: true };

fn shown(text: &str, width: usize) -> String {
    let mut markdown = Markdown::new(PLAIN, Face::default());
    markdown.push(text, width) + &markdown.finish()
}

#[test]
fn blocks_have_marks() {
    assert_eq!(shown("# Title\n\n\ntext", 80), "Title\n\ntext\n");
    assert_eq!(shown("- a\n  - b\n* c\n+ d", 80), "• a\n  • b\n• c\n• d\n");
    assert_eq!(shown("1. a\n12) b\n\n1.5 c", 80), "1. a\n12) b\n\n1.5 c\n");
    assert_eq!(shown("> a\n>b", 80), "│ a\n│ b\n");
    assert_eq!(
        shown("a\n\n---\nb", 80),
        format!("a\n\n{}\nb\n", "─".repeat(40))
    );
    assert_eq!(shown("#tag\n-x", 80), "#tag\n-x\n");
}

#[test]
fn code_is_indented_and_left_alone() {
    let code = "```rust\nlet a = b*c*d; // **x**\n\n  y\n```\nz";
    assert_eq!(
        shown(code, 80),
        "    let a = b*c*d; // **x**\n\n      y\nz\n"
    );
    assert_eq!(shown("````\n```\n````\nx", 80), "    ```\nx\n");
}

#[test]
fn spans_lose_their_marks() {
    assert_eq!(shown("a **b c** *d* `e*f*` _g_", 80), "a b c d e*f* g\n");
    assert_eq!(shown("[name](http://x)", 80), "name (http://x)\n");
    let mut markdown = Markdown::new(COLOURS, Face::default());
    let text = markdown.push("**b** `c`\n", 80) + &markdown.finish();
    assert_eq!(text, "\u{1b}[1mb\u{1b}[0m \u{1b}[36mc\u{1b}[0m\n");
}

#[test]
fn what_is_no_markdown_stays() {
    for text in [
        "2 ** 3 * 4",
        "**kwargs and *args",
        "snake_case_name __x",
        "a [b] c [d",
        "`open",
        "C:\\dir \\",
        "a * b*",
    ] {
        assert_eq!(shown(text, 80), format!("{text}\n"));
    }
}

#[test]
fn the_work_is_linear_in_the_text() {
    const LENGTH: usize = 1 << 18;
    for piece in [
        "word ", "**", "[a", "x", "\u{65e5}", "- a\n", "a\n", "|a|\n", "```\n\n", "> ",
    ] {
        let mut markdown = Markdown::new(PLAIN, Face::default());
        let mut pushed = 0;
        while pushed < LENGTH {
            let _ = markdown.push(piece, 80);
            pushed += piece.len();
            assert!(
                markdown.work.get() < 40 * LENGTH,
                "{piece:?}: {} after {pushed}",
                markdown.work.get()
            );
        }
    }
}

#[test]
fn a_split_escape_sequence_shows_nothing() {
    let mut markdown = Markdown::new(PLAIN, Face::default());
    let text = markdown.push("a\u{1b}[3", 80) + &markdown.push("1mb\n\n", 80);
    assert_eq!(text + &markdown.finish(), "ab\n");
}

#[test]
fn the_pieces_make_no_difference() {
    let text = "# A *b*\n\n- **bold text** and `code`, [l](u)\n\n```x\nf(a)\n``\n\n    ```\n\n\ng\n```\n\n|a|\n|-|\n|b|\n\n1. z **k\n";
    let whole = shown(text, 30);
    for size in 1..9 {
        let mut markdown = Markdown::new(PLAIN, Face::default());
        let mut pieces = String::new();
        let characters: Vec<char> = text.chars().collect();
        for piece in characters.chunks(size) {
            pieces += &markdown.push(&piece.iter().collect::<String>(), 30);
        }
        pieces += &markdown.finish();
        assert_eq!(pieces, whole, "{size}");
    }
}

#[test]
fn lines_are_wrapped_at_words() {
    assert_eq!(
        shown("aaaa bbbb cccc dddd eeee ffff", 20),
        "aaaa bbbb cccc dddd\neeee ffff\n"
    );
    assert_eq!(
        shown("- aaaa bbbb cccc dddd eeee", 20),
        "• aaaa bbbb cccc\n  dddd eeee\n"
    );
    assert_eq!(shown(&"日".repeat(11), 20), "日日日日日日日日日日\n日\n");
}

#[test]
fn the_rest_of_the_text_is_previewed() {
    let mut markdown = Markdown::new(PLAIN, Face::default());
    let preview = |markdown: &Markdown| {
        let lines = markdown.preview().into_iter();
        lines.map(|line| line.shown).collect::<Vec<_>>()
    };
    assert_eq!(markdown.push("- a\n- **b", 80), "");
    assert_eq!(preview(&markdown), ["• a", "• **b"]);
    assert_eq!(markdown.push("**\n\n```\n1\n2", 80), "• a\n• b\n\n    1\n");
    assert_eq!(preview(&markdown), ["    2"]);
    assert_eq!(markdown.push("3\n```\nend", 80), "    23\n");
    assert_eq!(preview(&markdown), ["end"]);
    assert_eq!(markdown.finish(), "end\n");
    assert_eq!(preview(&markdown), [""; 0]);
}

#[test]
fn a_long_line_of_code_is_code_to_its_end() {
    let mut markdown = Markdown::new(PLAIN, Face::default());
    let mut text = markdown.push("```\n", 80);
    for _ in 0..5000 {
        text += &markdown.push("f(x); y", 80);
    }
    text += &markdown.push("\n```\nend\n", 80);
    text += &markdown.finish();
    let code = text.strip_suffix("\nend\n").unwrap();
    assert!(
        code.lines()
            .all(|line| line.starts_with("    f") || line.starts_with("    y"))
    );
    assert_eq!(code.matches("f(x);").count(), 5000);
}

#[test]
fn tables_fit_the_terminal() {
    let table =
        "| Name | Count | Note |\n|---|--:|---|\n| `a` | 7 | some long text |\n| b | 1234 | |\n";
    let wide = "Name │ Count │ Note\n─────┼───────┼───────────────\na    │     7 │ some long text\nb    │  1234 │\n";
    assert_eq!(shown(table, 80), wide);
    let narrow = "Name │ Count │ some\n";
    assert_eq!(
        shown(&table.replace("Note", "some long"), 20)
            .lines()
            .next(),
        narrow.lines().next()
    );
    for width in [20, 40, 80] {
        let text = shown(&table.replace("long", "looooooooooooooooooooong"), width);
        assert!(text.lines().all(|line| line.width() <= width), "{text}");
        let all: String = text.split(|c: char| !c.is_alphabetic()).collect();
        assert!(width > 20 || all.contains("looo"), "{text}");
    }
}

#[test]
fn nothing_of_the_text_is_lost() {
    let text = "[a][1] ![b](c)\n\n[1]: http://x\n\n<div>\nd\n</div>\n";
    assert_eq!(
        shown(text, 80),
        "a (http://x) b (c)\n\n[1]: http://x\n\n<div>\nd\n</div>\n"
    );
}

#[test]
fn blocks_stand_within_blocks() {
    let text = "1. a\n\n   b\n   - c\n     ```\n     d\n     ```\n2. e\n\n> f\n> - g\n";
    assert_eq!(
        shown(text, 80),
        "1. a\n\n   b\n   • c\n         d\n2. e\n\n│ f\n│ • g\n"
    );
}

const CODE: &str = "```rust title\nlet a = \"b\"; // c\n/* long\n  let 'x\n*/ let y = 1;\n```\n";

fn in_colours(paint: Paint, pieces: &[&str]) -> String {
    let mut markdown = Markdown::new(paint, Face::default());
    let shown: String = pieces.iter().map(|text| markdown.push(text, 40)).collect();
    shown + &markdown.finish()
}

/// Returns text without the sequences for colours.
fn plain(shown: &str) -> String {
    let mut parts = shown.split('\u{1b}');
    let first = parts.next().unwrap().to_owned();
    parts.fold(first, |text, part| text + part.split_once('m').unwrap().1)
}

#[test]
fn code_has_the_styles_of_its_language() {
    let shown = in_colours(COLOURS, &[CODE]);
    for styled in [
        "\u{1b}[35mlet\u{1b}[0m a",
        "\u{1b}[32m\"b\"\u{1b}[0m",
        "\u{1b}[2m// c\u{1b}[0m",
        "\u{1b}[33m1\u{1b}[0m",
    ] {
        assert!(shown.contains(styled), "{styled:?} is not in {shown:?}");
    }
    let unknown = in_colours(COLOURS, &["```none\nlet a\n```"]);
    assert!(unknown.contains("\u{1b}[36mlet a\u{1b}[0m"), "{unknown:?}");
}

/// A comment that begins in an earlier piece is one; and colours are all that is added.
#[test]
fn styles_change_no_text_and_do_not_depend_on_the_pieces() {
    let whole = in_colours(COLOURS, &[CODE]);
    let without = in_colours(PLAIN, &[CODE]);
    assert_eq!(plain(&whole), without);
    assert!(whole.contains("\u{1b}[2m  let 'x\u{1b}[0m\n"), "{whole:?}");
    let lines: Vec<_> = CODE.split_inclusive('\n').collect();
    assert_eq!(in_colours(COLOURS, &lines), whole);
    let bytes: Vec<_> = (0..CODE.len()).map(|at| &CODE[at..=at]).collect();
    assert_eq!(in_colours(COLOURS, &bytes), whole);
    let again = format!("{CODE}\n{CODE}");
    let again: Vec<_> = again.split_inclusive('\n').collect();
    let twice = in_colours(COLOURS, &again);
    assert_eq!(twice, format!("{whole}\n{whole}"));
}
