//! Skips values while validating them.

use serde_core::de::IgnoredAny;

use super::{Reader, StrictError};

impl Reader<'_> {
    /// Skips a value of any depth.
    pub(in crate::json) fn skip(&mut self) -> Result<(), StrictError> {
        // One bit per open object (1) or list (0), the innermost lowest.
        let mut open: u128 = 0;
        let mut depth = 0;
        loop {
            match self.next()? {
                b'"' => self.skip_string()?,
                b'{' | b'[' if depth == u128::BITS => self.skip_deep()?,
                first @ (b'{' | b'[') => {
                    let object = first == b'{';
                    open = open << 1 | u128::from(object);
                    depth += 1;
                    self.at += 1;
                    if self.next()? != close(object) {
                        if object {
                            self.skip_name()?;
                        }
                        continue;
                    }
                }
                b't' => self.word("true")?,
                b'f' => self.word("false")?,
                b'n' => self.word("null")?,
                _ => drop(self.digits()?),
            }
            // After a value, close the objects and lists that end with it.
            loop {
                if depth == 0 {
                    return Ok(());
                }
                let object = open & 1 == 1;
                match self.next()? {
                    b',' => {
                        self.at += 1;
                        if object {
                            self.skip_name()?;
                        }
                        break;
                    }
                    byte if byte == close(object) => {
                        self.at += 1;
                        open >>= 1;
                        depth -= 1;
                    }
                    _ => return Err(StrictError::INVALID),
                }
            }
        }
    }

    #[cold]
    fn skip_deep(&mut self) -> Result<(), StrictError> {
        let rest = self.text.get(self.at..).unwrap_or_default();
        let mut values = serde_json::Deserializer::from_str(rest).into_iter::<IgnoredAny>();
        values
            .next()
            .ok_or(StrictError::INVALID)?
            .map_err(|_| StrictError::INVALID)?;
        self.at += values.byte_offset();
        Ok(())
    }

    fn skip_name(&mut self) -> Result<(), StrictError> {
        if self.next()? != b'"' {
            return Err(StrictError::INVALID);
        }
        self.skip_string()?;
        self.expect(b':')
    }
}

fn close(object: bool) -> u8 {
    if object { b'}' } else { b']' }
}
