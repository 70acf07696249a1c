//! Reads the members of an object as text, for the envelope of a message.

use std::borrow::Cow;

use serde_json::value::RawValue;

use super::{Reader, StrictError, raw};
use crate::json::errors::kind;

/// Reads an object and returns the text of the members `names`, in their order.
///
/// Validates the whole text in one pass. Values may nest to any depth. `begin` is how most
/// texts begin: a brace, the first of `names` with its value, and a comma.
///
/// # Errors
/// Fails when `text` is not a JSON object, or one of the members is there twice.
pub(crate) fn read_members<'de, const N: usize>(
    text: &'de str,
    names: &[&'static str; N],
    begin: &'static str,
) -> Result<[Option<&'de RawValue>; N], StrictError> {
    let mut reader = Reader::new(text);
    let mut found = [None; N];
    if !reader.begins(begin, names, &mut found)? {
        if reader.next()? != b'{' {
            return Err(StrictError::new(reader.at, "expected an object"));
        }
        reader.enter()?;
    }
    let mut first = true;
    while reader.more(b'}', &mut first)? {
        let slot = reader.member(names, &mut found)?;
        reader.expect(b':')?;
        let value = reader.value()?;
        if let Some(slot) = slot {
            *slot = Some(raw(value));
        }
    }
    reader.expect(b'}')?;
    reader.blank();
    match reader.at == text.len() {
        true => Ok(found),
        false => Err(StrictError::INVALID),
    }
}

/// Reads the text of a string.
///
/// # Errors
/// Fails when the value is not a string, or has half of a surrogate pair.
pub(crate) fn read_text(value: &RawValue) -> Result<Cow<'_, str>, StrictError> {
    let mut reader = Reader::new(value.get());
    if reader.next()? != b'"' {
        return Err(StrictError::new(
            reader.at,
            format!("expected a string, got {}", kind(value.get())),
        ));
    }
    reader.string().map(Into::into)
}

impl<'de> Reader<'de> {
    /// Consumes `begin`, if the text begins so and goes on with a name, and stores the value of
    /// the first of `names`.
    fn begins(
        &mut self,
        begin: &'static str,
        names: &[&'static str],
        found: &mut [Option<&'de RawValue>],
    ) -> Result<bool, StrictError> {
        let rest = self.text.strip_prefix(begin);
        let (Some(name), Some(slot)) = (names.first(), found.first_mut()) else {
            return Ok(false);
        };
        if rest.is_none_or(|rest| !rest.starts_with('"')) {
            return Ok(false);
        }
        // Around the name and the value are a brace, two quotes, a colon and a comma.
        let value = self.text.get(name.len() + 4..begin.len() - 1);
        *slot = Some(raw(value.ok_or(StrictError::INVALID)?));
        self.at = begin.len();
        self.depth += 1;
        Ok(true)
    }

    /// Reads the name of a member and returns the slot for its value, if it has one.
    fn member<'f, T>(
        &mut self,
        names: &[&'static str],
        found: &'f mut [Option<T>],
    ) -> Result<Option<&'f mut Option<T>>, StrictError> {
        if self.next()? != b'"' {
            return Err(StrictError::INVALID);
        }
        let name = self.string()?;
        let mut slots = names.iter().zip(found);
        match slots.find(|(known, _)| **known == name.as_str()) {
            Some((known, Some(_))) => Err(StrictError::new(
                self.at,
                format!("duplicate field `{known}`"),
            )),
            Some((_, slot)) => Ok(Some(slot)),
            None => Ok(None),
        }
    }
}
