//! The unparsed members of one object.

use std::borrow::Cow;

use crate::json::reader::{Reader, StrictError};

/// A member of an object, its value unparsed.
#[derive(Debug)]
pub(super) struct Member<'a> {
    pub(super) name: Cow<'a, str>,
    pub(super) raw: &'a str,
    /// Whether a type has claimed it.
    pub(super) taken: bool,
}

/// Collects the members of an object.
///
/// # Errors
/// Fails when a name is no text, because it has half of a surrogate pair.
pub(super) fn collect(text: &str) -> Result<Vec<Member<'_>>, StrictError> {
    let mut reader = Reader::new(text);
    let mut object = reader.open()?;
    let mut members = Vec::new();
    while let Some(name) = reader.name(&mut object)? {
        members.push(Member {
            name: name.into(),
            raw: reader.value()?,
            taken: false,
        });
    }
    Ok(members)
}
