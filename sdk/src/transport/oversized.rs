//! A message above the limit, of which both ends are kept.

/// Bytes kept of each end: enough for the envelope of a message, which stands around its payload.
const KEPT: usize = 4 << 10;

/// A message above the limit. It is skipped as it arrives; its ends tell what it was.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Oversized {
    /// Length of the message.
    pub(crate) bytes: u64,
    /// Its first bytes.
    pub(crate) head: Vec<u8>,
    /// Its last bytes. They overlap with the first ones if the message is short.
    pub(crate) tail: Vec<u8>,
}

impl Oversized {
    /// Creates the ends of a message that is whole.
    pub(crate) fn of(message: &[u8]) -> Self {
        let mut oversized = Self::default();
        oversized.add(message);
        oversized
    }

    /// Adds the next bytes of the message.
    pub(super) fn add(&mut self, bytes: &[u8]) {
        self.bytes += bytes.len() as u64;
        let first = bytes.len().min(KEPT - self.head.len());
        self.head.extend_from_slice(&bytes[..first]);
        let last = &bytes[bytes.len().saturating_sub(KEPT)..];
        let surplus = (self.tail.len() + last.len()).saturating_sub(KEPT);
        self.tail.drain(..surplus);
        self.tail.extend_from_slice(last);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ends_are_kept_however_the_message_was_cut() {
        let message: Vec<u8> = (0..3 * KEPT).map(|byte| (byte % 251) as u8).collect();
        for piece in [1, 7, KEPT - 1, KEPT, KEPT + 1, 2 * KEPT, 3 * KEPT] {
            let mut oversized = Oversized::default();
            message.chunks(piece).for_each(|piece| oversized.add(piece));
            assert_eq!(oversized.bytes, 3 * KEPT as u64, "pieces of {piece}");
            assert_eq!(oversized.head, message[..KEPT], "pieces of {piece}");
            assert_eq!(oversized.tail, message[2 * KEPT..], "pieces of {piece}");
        }
        let short = Oversized::of(b"abc");
        assert_eq!((&*short.head, &*short.tail), (&b"abc"[..], &b"abc"[..]));
    }
}
