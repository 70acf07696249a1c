//! The length of a value as JSON, without its text.

use std::io;

use serde_core::Serialize;

/// Returns the length of `value` as JSON, in bytes, or 0 if it has no JSON form. Nothing is allocated.
///
/// ```
/// # use acp_sdk::v1::SessionId;
/// assert_eq!(acp_sdk::json::encoded_len(&SessionId::from("s1")), r#""s1""#.len());
/// ```
pub fn encoded_len(value: &impl Serialize) -> usize {
    let mut count = Count(0);
    match serde_json::to_writer(&mut count, value) {
        Ok(()) => count.0,
        Err(_) => 0,
    }
}

struct Count(usize);

impl io::Write for Count {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
