//! Reads tagged unions.

use super::{TaggedUnion, UnknownVariant};
use crate::json::reader::{Object, OpenObject, Position, Reader, StrictError, raw};

/// Reads the rest of an object as a tagged union.
///
/// # Errors
/// Fails when the members are not those of a `T`.
pub fn read_tagged_union<T: TaggedUnion>(
    reader: &mut Reader<'_>,
    mut object: OpenObject<'_>,
) -> Result<T, StrictError> {
    let start = reader.position(object);
    let mut is_first = true;
    while let Some(name) = reader.visible_name(&mut object)? {
        if name.as_str() != T::TAG {
            reader.skip()?;
            is_first = false;
            continue;
        }
        // The first tag counts wherever it stands.
        let tag = reader.text()?;
        let variant = VariantReader {
            start,
            rest: is_first.then_some(object),
            reader,
            hides: |name| name == T::TAG,
        };
        return T::read(tag.as_str(), variant);
    }
    T::read_untagged(VariantReader {
        start,
        rest: None,
        reader,
        hides: |_| false,
    })
}

/// Reads the members of a union's object as one of its variants.
#[derive(Debug)]
pub struct VariantReader<'r, 'de> {
    reader: &'r mut Reader<'de>,
    start: Position<'r>,
    /// The members behind a tag that comes first.
    rest: Option<OpenObject<'r>>,
    hides: fn(&str) -> bool,
}

impl VariantReader<'_, '_> {
    /// Reads the members as a `P`.
    ///
    /// # Errors
    /// Fails when they are invalid for `P`.
    #[inline]
    pub fn payload<P: Object>(self) -> Result<P, StrictError> {
        match self.rest {
            Some(rest) => P::read_members(self.reader, rest),
            None => self.start.read(self.reader, self.hides),
        }
    }

    /// Skips the members.
    ///
    /// # Errors
    /// Fails when the input is invalid.
    pub fn unit(self) -> Result<(), StrictError> {
        self.payload()
    }

    /// Returns the members as an unknown variant.
    ///
    /// # Errors
    /// Fails when the input is invalid.
    pub fn unknown(self, tag: &str) -> Result<UnknownVariant, StrictError> {
        let mut object = self.start.rewind(self.reader);
        let mut fields = Vec::new();
        while let Some(name) = self.reader.visible_name(&mut object)? {
            let value = self.reader.value()?;
            fields.push((name.into(), raw(value).into()));
        }
        Ok(UnknownVariant::new(tag, fields))
    }

    /// Reads the members as a `P`, or as an unknown variant when they do not fit.
    ///
    /// # Errors
    /// Fails when the input is invalid.
    pub fn payload_or_unknown<P: Object, T>(
        self,
        tag: &str,
        known: fn(P) -> T,
        unknown: fn(UnknownVariant) -> T,
    ) -> Result<T, StrictError> {
        match self.start.read(self.reader, self.hides) {
            Ok(payload) => Ok(known(payload)),
            Err(_) => self.unknown(tag).map(unknown),
        }
    }
}
