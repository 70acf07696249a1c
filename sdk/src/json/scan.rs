//! Finds the bytes that need an escape in a string: quotes, backslashes and control characters.
//!
//! Reader and writer share the search. Short texts are searched in words of eight bytes, long
//! ones in blocks that the compiler turns into vector instructions.

/// Number of bytes of a block.
pub(super) const BLOCK: usize = 32;

/// Returns a word with `byte` in each byte.
const fn each(byte: u8) -> u64 {
    u64::from_ne_bytes([byte; 8])
}

/// Returns the position of the first special byte, or the length if there is none.
#[inline]
pub(super) fn special(bytes: &[u8]) -> usize {
    // Most names, tags and ids are short; two words are searched before the loop is set up.
    let Some((head, rest)) = bytes.split_first_chunk::<16>() else {
        return in_short(bytes);
    };
    match in_half_block(head) {
        Some(at) => at,
        None => 16 + in_long(rest),
    }
}

/// Searches less than 16 bytes as [`special`] does.
#[inline]
fn in_short(bytes: &[u8]) -> usize {
    let (Some(head), Some(tail)) = (bytes.first_chunk(), bytes.last_chunk()) else {
        let found = bytes.iter().position(|byte| is_special(*byte));
        return found.unwrap_or(bytes.len());
    };
    // The words overlap; a special byte in the overlap is found in the first.
    match in_word(u64::from_le_bytes(*head)) {
        Some(at) => at,
        None => match in_word(u64::from_le_bytes(*tail)) {
            Some(at) => bytes.len() - 8 + at,
            None => bytes.len(),
        },
    }
}

/// Searches a long text as [`special`] does.
fn in_long(bytes: &[u8]) -> usize {
    let (blocks, rest) = bytes.as_chunks::<BLOCK>();
    for (index, block) in blocks.iter().enumerate() {
        if let Some(at) = in_block(block) {
            return BLOCK * index + at;
        }
    }
    let at = BLOCK * blocks.len();
    match rest.split_first_chunk::<16>() {
        Some((head, rest)) => match in_half_block(head) {
            Some(found) => at + found,
            None => at + 16 + in_short(rest),
        },
        None => at + in_short(rest),
    }
}

/// Whether there is a special byte; no early end, so that all are looked at at once.
#[inline]
pub(super) fn any_special<const N: usize>(block: &[u8; N]) -> bool {
    block
        .iter()
        .fold(false, |any, byte| any | is_special(*byte))
}

/// Where the first special byte of a block is. Always inlined: a call takes as long as the search.
#[inline(always)]
pub(super) fn in_block(block: &[u8; BLOCK]) -> Option<usize> {
    if !any_special(block) {
        return None;
    }
    let (words, _) = block.as_chunks::<8>();
    let mut words = words.iter().enumerate();
    words.find_map(|(index, word)| in_word(u64::from_le_bytes(*word)).map(|at| 8 * index + at))
}

#[inline]
fn in_half_block(block: &[u8; 16]) -> Option<usize> {
    let words = u128::from_le_bytes(*block);
    match in_word(words as u64) {
        Some(at) => Some(at),
        None => in_word((words >> 64) as u64).map(|at| 8 + at),
    }
}

#[inline]
fn is_special(byte: u8) -> bool {
    // As in `in_word`.
    (byte ^ 2) < 0x21 || byte == b'\\'
}

/// The first special byte of a word, the lowest first.
#[inline]
fn in_word(word: u64) -> Option<usize> {
    // With their second bit turned over, control characters and the quote, and nothing
    // else, are below 0x21. A byte below another borrows from the high bit when the other
    // is taken away; so may the bytes above it then, but the first hit is right.
    let low = (word ^ each(2)).wrapping_sub(each(0x21));
    let backslash = (word ^ each(b'\\')).wrapping_sub(each(1));
    let hits = (low | backslash) & !word & each(0x80);
    (hits != 0).then(|| hits.trailing_zeros() as usize / 8)
}

#[cfg(test)]
mod tests {
    use super::{in_word, special};

    fn expected(bytes: &[u8]) -> usize {
        let special = |byte: &u8| *byte < 0x20 || b"\"\\".contains(byte);
        bytes.iter().position(special).unwrap_or(bytes.len())
    }

    #[test]
    fn special_bytes_are_found_in_a_word_wherever_they_are() {
        for byte in 0..=u8::MAX {
            for around in 0..=u8::MAX {
                for at in 0..8 {
                    let mut word = [around; 8];
                    word[at] = byte;
                    let found = in_word(u64::from_le_bytes(word)).unwrap_or(8);
                    assert_eq!(found, expected(&word), "{word:?}");
                }
            }
        }
    }

    #[test]
    fn special_bytes_are_found_in_texts_of_any_length() {
        for length in 0..150 {
            for around in [b' ', b'!', b'#', b'[', b']', b'x', 0x7f, 0x80, 0xff] {
                let mut text = vec![around; length];
                assert_eq!(special(&text), length);
                for at in (0..length).rev() {
                    text[at] = [b'"', b'\\', 0, 0x1f, b'\n'][at % 5];
                    assert_eq!(special(&text), at, "of {length}");
                }
            }
        }
    }
}
