//! Strings with escapes.

use std::fmt;

use crate::json::scan::{any_special, special};

const HEX: &[u8; 16] = b"0123456789abcdef";

/// Appends `text` as a string.
pub(super) fn string(bytes: &mut Vec<u8>, text: &str) {
    bytes.push(b'"');
    contents(bytes, text.as_bytes());
    bytes.push(b'"');
}

/// Appends `text` as the name of a member, with the colon.
pub(super) fn name(bytes: &mut Vec<u8>, text: &str) {
    bytes.push(b'"');
    contents(bytes, text.as_bytes());
    bytes.extend_from_slice(b"\":");
}

/// Appends the inside of a string.
#[inline(always)]
fn contents(bytes: &mut Vec<u8>, text: &[u8]) {
    // Reserves once, so that the calls below need not.
    bytes.reserve(text.len() + 16);
    let done = match text.len() {
        0..4 => few(bytes, text),
        4..8 => two::<4>(bytes, text),
        8..16 => two::<8>(bytes, text),
        16..=32 => two::<16>(bytes, text),
        _ => false,
    };
    if !done {
        runs(bytes, text);
    }
}

/// Appends the few bytes of `text` if none of them is special.
#[inline]
fn few(bytes: &mut Vec<u8>, text: &[u8]) -> bool {
    let plain = !text.iter().any(|byte| any_special(&[*byte]));
    if plain {
        text.iter().for_each(|byte| bytes.push(*byte));
    }
    plain
}

/// Appends `text` if no byte of it is special, as two overlapping copies of `N` bytes. Copies of
/// constant size are much faster.
#[inline]
fn two<const N: usize>(bytes: &mut Vec<u8>, text: &[u8]) -> bool {
    let (Some(first), Some(last)) = (text.first_chunk::<N>(), text.last_chunk::<N>()) else {
        return false;
    };
    if any_special(first) | any_special(last) {
        return false;
    }
    let end = bytes.len() + text.len() - N;
    bytes.extend_from_slice(first);
    bytes.truncate(end);
    bytes.extend_from_slice(last);
    true
}

/// Appends text of any length with escapes.
#[inline(never)]
fn runs(bytes: &mut Vec<u8>, mut text: &[u8]) {
    loop {
        let (run, rest) = text.split_at(special(text));
        bytes.extend_from_slice(run);
        let Some((byte, rest)) = rest.split_first() else {
            return;
        };
        escape(bytes, *byte);
        text = rest;
    }
}

/// Appends the escape of a special byte.
fn escape(bytes: &mut Vec<u8>, byte: u8) {
    let short = match byte {
        b'\n' => b'n',
        b'"' | b'\\' => byte,
        b'\t' => b't',
        b'\r' => b'r',
        0x8 => b'b',
        0xc => b'f',
        _ => {
            let [high, low] = [byte >> 4, byte & 0xf].map(|digit| HEX[usize::from(digit)]);
            return bytes.extend_from_slice(&[b'\\', b'u', b'0', b'0', high, low]);
        }
    };
    bytes.extend_from_slice(&[b'\\', short]);
}

/// Writes displayed text as the inside of a string.
pub(super) struct Escaping<'b>(pub(super) &'b mut Vec<u8>);

impl fmt::Write for Escaping<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        contents(self.0, text.as_bytes());
        Ok(())
    }
}
