//! Diffs of files, as lines.

use std::time::Duration;

use similar::{ChangeTag, TextDiff};

use super::style::{Colour, Face, Paint, fit, more, wrap};

/// Maximum number of displayed lines of a diff that nobody asked to see.
const MOST_LINES: usize = 40;

/// Maximum size of both texts together, in bytes.
const MOST_BYTES: usize = 2 << 20;

/// Time limit of the comparison; after it, the diff is coarser.
const COMPARING: Duration = Duration::from_millis(100);

/// Returns lines that begin with two spaces, of at most `width` columns. With `cut` there are at most
/// 40, each is cut, and the line for the others ends in it.
pub(super) fn lines(
    path: &str,
    old: Option<&str>,
    new: &str,
    cut: Option<&str>,
    width: usize,
    paint: Paint,
) -> Vec<String> {
    let columns = width.saturating_sub(4).max(10);
    let name = fit(path, columns);
    let old = old.unwrap_or_default();
    if old.len() + new.len() > MOST_BYTES {
        let counts = format!(
            "{} lines become {}",
            old.lines().count(),
            new.lines().count()
        );
        return vec![format!("  {}: {counts}", paint.text(Face::BOLD, &name))];
    }
    let diff = TextDiff::configure()
        .timeout(COMPARING)
        .diff_lines(old, new);
    let (mut added, mut removed, mut left_out) = (0, 0, 0);
    let mut lines = Vec::new();
    let mut show = |line: String| match cut.is_none() || lines.len() < MOST_LINES {
        true => lines.push(line),
        false => left_out += 1,
    };
    for (index, group) in diff.grouped_ops(2).iter().enumerate() {
        if index > 0 {
            show(format!("  {}", paint.text(Face::DIM, "…")));
        }
        for change in group.iter().flat_map(|op| diff.iter_changes(op)) {
            let (mark, face) = match change.tag() {
                ChangeTag::Equal => (' ', Face::DIM),
                ChangeTag::Delete => ('-', Face::of(Colour::Red)),
                ChangeTag::Insert => ('+', Face::of(Colour::Green)),
            };
            match change.tag() {
                ChangeTag::Equal => {}
                ChangeTag::Delete => removed += 1,
                ChangeTag::Insert => added += 1,
            }
            let text = change.value().replace('\n', "");
            let parts = match cut.is_none() {
                true if !text.trim().is_empty() => wrap(&text, columns - 2),
                _ => vec![fit(&text, columns - 2)],
            };
            for text in parts {
                let line = format!("{mark} {text}");
                show(format!("    {}", paint.text(face, line.trim_end())));
            }
        }
    }
    let counts = format!("+{added} -{removed}");
    let head = format!(
        "  {} {}",
        paint.text(
            Face::BOLD,
            &fit(&name, columns.saturating_sub(counts.len() + 1))
        ),
        paint.text(Face::DIM, &counts)
    );
    lines.insert(0, head);
    if left_out > 0 {
        let more = more(left_out, cut.unwrap_or_default(), width);
        lines.push(format!("    {}", paint.text(Face::DIM, &more)));
    }
    lines
}

#[cfg(test)]
mod tests {
    use unicode_width::UnicodeWidthStr as _;

    use super::*;

    const PLAIN: Paint = Paint { colours: false };

    #[test]
    fn changes_have_their_neighbours() {
        let old = "a\nb\nc\nd\ne\nf\ng\nh\ni\nj\nk\n";
        let new = old.replace("b\n", "B\n").replace("k\n", "");
        let shown = lines("/x", Some(old), &new, Some(" · all"), 80, PLAIN);
        let expected = [
            "  /x +1 -2",
            "      a",
            "    - b",
            "    + B",
            "      c",
            "      d",
            "  …",
            "      i",
            "      j",
            "    - k",
        ];
        assert_eq!(shown, expected);
    }

    #[test]
    fn a_new_file_is_all_additions() {
        assert_eq!(
            lines("/x", None, "a\u{1b}[2Jb\n", Some(" · all"), 80, PLAIN),
            ["  /x +1 -0", "    + ab"]
        );
        let red = lines(
            "/x",
            Some("a\n"),
            "",
            Some(" · all"),
            80,
            Paint { colours: true },
        );
        assert_eq!(red[1], "    \u{1b}[31m- a\u{1b}[0m");
    }

    #[test]
    fn long_diffs_and_long_lines_are_cut() {
        let new = "x".repeat(300) + "\n" + &"y\n".repeat(100);
        let shown = lines("/x", None, &new, Some(" · all"), 80, PLAIN);
        assert_eq!(shown.len(), MOST_LINES + 2);
        assert_eq!(shown.last().unwrap(), "    … 61 more lines · all");
        assert!(shown.iter().all(|line| line.width() <= 80));
        let shown = lines("/x", None, &new, None, 80, PLAIN);
        let whole: String = shown.concat();
        assert_eq!(whole.matches('y').count(), 100);
        assert_eq!(whole.matches('x').count(), 301);
        let huge = "x\n".repeat(MOST_BYTES);
        assert_eq!(lines("/x", None, &huge, Some(" · all"), 80, PLAIN).len(), 1);
    }
}
