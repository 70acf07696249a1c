//! Types that are read from JSON text.

use serde_core::de::DeserializeOwned;

use super::descriptor::TypeDescriptor;
use super::reader::{Reader, StrictError};

/// A type with a descriptor of its JSON form.
///
/// Generated types implement it. A type written by hand implements it to travel in messages;
/// with [`TypeDescriptor::Any`] it is read strictly by serde.
pub trait Described: DeserializeOwned {
    /// Returns the descriptor.
    fn descriptor() -> &'static TypeDescriptor;

    /// Reads a value. Types written by hand leave it to serde_json.
    #[doc(hidden)]
    fn read(reader: &mut Reader<'_>) -> Result<Self, StrictError> {
        reader.parse()
    }
}

/// Reads `text` as a `T`, without leniency.
///
/// Always inlined: a call takes as long as the smallest messages.
#[inline(always)]
pub(super) fn read<T: Described>(text: &str) -> Result<T, StrictError> {
    let mut reader = Reader::new(text);
    // One variable for the result, because `?` would copy the whole message.
    let mut value = T::read(&mut reader);
    if value.is_ok() && !reader.is_at_end() {
        value = Err(StrictError::INVALID);
    }
    value
}
