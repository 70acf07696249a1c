//! Strings, with what cannot stand in them as it is.

use std::fmt;

use crate::json::scan::special;

const HEX: &[u8; 16] = b"0123456789abcdef";

/// Appends `text` as a string.
pub(super) fn string(bytes: &mut Vec<u8>, text: &str) {
    bytes.reserve(text.len() + 2);
    bytes.push(b'"');
    contents(bytes, text.as_bytes());
    bytes.push(b'"');
}

/// Appends the inside of a string.
#[inline]
fn contents(bytes: &mut Vec<u8>, mut text: &[u8]) {
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

/// Appends what stands for a special byte.
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

/// The inside of a string, written by what can be displayed.
pub(super) struct Escaping<'b>(pub(super) &'b mut Vec<u8>);

impl fmt::Write for Escaping<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        contents(self.0, text.as_bytes());
        Ok(())
    }
}
