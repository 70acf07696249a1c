//! WebSocket frames, right ones and wrong ones.

use bytes::{Buf as _, Bytes, BytesMut};

/// The longest frame that is read, in bytes.
const FRAME_BYTES: u64 = acp_sdk::limits::MAX_MESSAGE_BYTES as u64;

/// The key that masks what is sent. It hides nothing, so that it need not be random.
const MASK: [u8; 4] = [0x37, 0xfa, 0x21, 0x3d];

/// What a frame is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Opcode(pub(crate) u8);

impl Opcode {
    pub(crate) const CONTINUATION: Self = Self(0);
    pub(crate) const TEXT: Self = Self(1);
    pub(crate) const BINARY: Self = Self(2);
    pub(crate) const CLOSE: Self = Self(8);
    pub(crate) const PING: Self = Self(9);
    pub(crate) const PONG: Self = Self(10);
}

/// A frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Frame {
    /// Whether it is the last one of its message.
    pub(crate) is_last: bool,
    /// The reserved bits, as the lower three of this number.
    pub(crate) reserved: u8,
    pub(crate) opcode: Opcode,
    pub(crate) is_masked: bool,
    pub(crate) payload: Bytes,
}

impl Frame {
    /// A whole message, masked as those of a client are.
    pub(crate) fn new(opcode: Opcode, payload: impl Into<Bytes>) -> Self {
        Self {
            is_last: true,
            reserved: 0,
            opcode,
            is_masked: true,
            payload: payload.into(),
        }
    }

    /// A part of a message that is not the last one.
    pub(crate) fn part(opcode: Opcode, payload: impl Into<Bytes>) -> Self {
        Self {
            is_last: false,
            ..Self::new(opcode, payload)
        }
    }

    /// The code of a close frame.
    pub(crate) fn close_code(&self) -> Option<u16> {
        let [first, second, ..] = self.payload.as_ref() else {
            return None;
        };
        (self.opcode == Opcode::CLOSE).then(|| u16::from_be_bytes([*first, *second]))
    }

    /// The bytes of the frame.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut bytes = self.head(self.payload.len() as u64);
        let start = bytes.len();
        bytes.extend_from_slice(&self.payload);
        if self.is_masked {
            let payload = bytes.iter_mut().skip(start);
            for (byte, key) in payload.zip(MASK.into_iter().cycle()) {
                *byte ^= key;
            }
        }
        bytes
    }

    /// The bytes before the payload, for a payload of this length.
    pub(crate) fn head(&self, length: u64) -> Vec<u8> {
        let first = u8::from(self.is_last) << 7 | (self.reserved & 7) << 4 | self.opcode.0 & 15;
        let mask = u8::from(self.is_masked) << 7;
        let mut bytes = vec![first];
        match (u8::try_from(length), u16::try_from(length)) {
            (Ok(short @ 0..=125), _) => bytes.push(mask | short),
            (_, Ok(short)) => {
                bytes.push(mask | 126);
                bytes.extend_from_slice(&short.to_be_bytes());
            }
            _ => {
                bytes.push(mask | 127);
                bytes.extend_from_slice(&length.to_be_bytes());
            }
        }
        if self.is_masked {
            bytes.extend_from_slice(&MASK);
        }
        bytes
    }

    /// Takes a frame off the front of what has come; `None` while it is not complete.
    ///
    /// # Errors
    /// When it is longer than is read.
    pub(crate) fn decode(bytes: &mut BytesMut) -> Result<Option<Self>, String> {
        let mut rest = bytes.as_ref();
        if rest.len() < 2 {
            return Ok(None);
        }
        let (first, second) = (rest.get_u8(), rest.get_u8());
        let wide = match second & 127 {
            126 => 2,
            127 => 8,
            _ => 0,
        };
        let masks = if second & 128 == 0 { 0 } else { 4 };
        if rest.len() < wide + masks {
            return Ok(None);
        }
        let length = match wide {
            2 => u64::from(rest.get_u16()),
            8 => rest.get_u64(),
            _ => u64::from(second & 127),
        };
        if length > FRAME_BYTES {
            return Err(format!("a frame has {length} bytes"));
        }
        let mut mask = [0; 4];
        if let Some(found) = rest.get(..masks)
            && masks == 4
        {
            mask.copy_from_slice(found);
        }
        // Within the limit above.
        let (head, length) = (2 + wide + masks, length as usize);
        if bytes.len() < head + length {
            return Ok(None);
        }
        bytes.advance(head);
        let mut payload = bytes.split_to(length);
        if masks == 4 {
            for (byte, key) in payload.iter_mut().zip(mask.into_iter().cycle()) {
                *byte ^= key;
            }
        }
        Ok(Some(Self {
            is_last: first & 128 != 0,
            reserved: first >> 4 & 7,
            opcode: Opcode(first & 15),
            is_masked: masks == 4,
            payload: payload.freeze(),
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_is_read_as_it_was_written() {
        for length in [0, 1, 125, 126, 65_535, 65_536] {
            for is_masked in [false, true] {
                let frame = Frame {
                    is_masked,
                    reserved: 5,
                    ..Frame::part(Opcode::TEXT, vec![7; length])
                };
                let whole = frame.encode();
                let mut bytes = BytesMut::from(&whole[..whole.len() - 1]);
                assert_eq!(Frame::decode(&mut bytes).unwrap(), None);
                bytes.extend_from_slice(&whole[whole.len() - 1..]);
                assert_eq!(Frame::decode(&mut bytes).unwrap(), Some(frame));
                assert!(bytes.is_empty());
            }
        }
    }
}
