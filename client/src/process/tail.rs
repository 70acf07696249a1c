//! The end of a stream of text.
//!
//! Uses at most twice [`Tail::BYTES`] of memory, for streams of any length.

/// Keeps the last bytes of a stream.
#[derive(Debug, Default)]
pub(crate) struct Tail {
    bytes: Vec<u8>,
    /// Whether earlier bytes were dropped.
    cut: bool,
}

impl Tail {
    /// The minimum number of bytes that are kept.
    pub(crate) const BYTES: usize = 64 << 10;

    pub(crate) fn push(&mut self, chunk: &[u8]) {
        self.bytes.extend_from_slice(chunk);
        // Cutting at twice the size makes the cost of moving bytes linear.
        if self.bytes.len() > 2 * Self::BYTES {
            self.bytes.drain(..self.bytes.len() - Self::BYTES);
            self.cut = true;
        }
    }

    /// Returns the last `count` non-blank lines, without line endings.
    pub(crate) fn lines(&self, count: usize) -> Vec<String> {
        let mut lines: Vec<_> = self.bytes.split(|byte| *byte == b'\n').collect();
        if self.cut && lines.len() > 1 {
            // Only the end of this line was kept.
            lines.remove(0);
        }
        let lines = lines
            .iter()
            .map(|line| line.trim_ascii_end())
            .filter(|line| !line.is_empty())
            .map(|line| String::from_utf8_lossy(line).into_owned());
        let mut last: Vec<_> = lines.rev().take(count).collect();
        last.reverse();
        last
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_lines_are_kept_in_order() {
        let mut tail = Tail::default();
        tail.push(b"one\r\n\ntwo\nth");
        tail.push(b"ree");
        assert_eq!(tail.lines(2), ["two", "three"]);
        assert_eq!(tail.lines(9), ["one", "two", "three"]);
    }

    #[test]
    fn memory_is_bounded_and_half_lines_are_left_out() {
        let mut tail = Tail::default();
        for number in 0..100_000 {
            tail.push(format!("line {number}\n").as_bytes());
        }
        assert!(tail.bytes.len() <= 2 * Tail::BYTES);
        let lines = tail.lines(usize::MAX);
        assert_eq!(lines.last().map(String::as_str), Some("line 99999"));
        assert!(lines.iter().all(|line| line.starts_with("line ")));
    }

    #[test]
    fn a_line_without_end_is_cut_rather_than_lost() {
        let mut tail = Tail::default();
        for _ in 0..5 {
            tail.push(&[b'x'; Tail::BYTES]);
        }
        assert!(tail.lines(1)[0].len() >= Tail::BYTES);
    }
}
