//! Objects: their members one after the other, and once more from the start.
//!
//! Several types can share an object, and the tag of a union can stand behind its payload. The
//! members are then read again from the text, without those that belong to another type.

use super::string::Text;
use super::{Reader, StrictError};

/// A type whose JSON form is an object. Generated code implements it.
pub trait Object: Sized {
    /// Reads the rest of an object, with its closing brace.
    ///
    /// # Errors
    /// Fails when the members are invalid for the type.
    fn read_members(reader: &mut Reader<'_>, object: OpenObject<'_>) -> Result<Self, StrictError>;
}

impl Object for () {
    fn read_members(
        reader: &mut Reader<'_>,
        mut object: OpenObject<'_>,
    ) -> Result<(), StrictError> {
        while reader.name(&mut object)?.is_some() {
            reader.skip()?;
        }
        Ok(())
    }
}

impl<T: Object> Object for Box<T> {
    fn read_members(reader: &mut Reader<'_>, object: OpenObject<'_>) -> Result<Self, StrictError> {
        T::read_members(reader, object).map(Box::new)
    }
}

/// An object between two of its members.
#[derive(Clone, Copy, Debug)]
pub struct OpenObject<'h> {
    first: bool,
    hidden: Option<&'h Hidden<'h>>,
}

/// Members that belong to another type of the same object.
#[derive(Debug)]
struct Hidden<'h> {
    hides: fn(&str) -> bool,
    outer: Option<&'h Hidden<'h>>,
}

impl OpenObject<'_> {
    /// Whether the member `name` belongs to another type.
    fn hides(&self, name: &str) -> bool {
        let mut next = self.hidden;
        while let Some(hidden) = next {
            if (hidden.hides)(name) {
                return true;
            }
            next = hidden.outer;
        }
        false
    }
}

/// A position between two members of an object, to which a reader can return.
#[derive(Clone, Copy, Debug)]
pub struct Position<'h> {
    at: usize,
    depth: u8,
    object: OpenObject<'h>,
}

impl Position<'_> {
    /// Reads the members again as a `T`, without those that `hides` names.
    ///
    /// # Errors
    /// Fails when the members are invalid for the type.
    pub fn read<T: Object>(
        &self,
        reader: &mut Reader<'_>,
        hides: fn(&str) -> bool,
    ) -> Result<T, StrictError> {
        let outer = self.object.hidden;
        let hidden = Hidden { hides, outer };
        self.rewind(reader);
        let object = OpenObject {
            hidden: Some(&hidden),
            ..self.object
        };
        T::read_members(reader, object)
    }

    /// Reads as [`Self::read`] does; without the member `tag`, or when it is `null`, there is no
    /// value.
    ///
    /// # Errors
    /// Fails when the members are invalid for the type.
    pub fn read_optional<T: Object>(
        &self,
        reader: &mut Reader<'_>,
        tag: &str,
        hides: fn(&str) -> bool,
    ) -> Result<Option<T>, StrictError> {
        let mut object = self.rewind(reader);
        let mut found = false;
        while let Some(name) = reader.visible_name(&mut object)? {
            if !found && name.as_str() == tag {
                found = reader.next()? != b'n';
            }
            reader.skip()?;
        }
        match found {
            true => self.read(reader, hides).map(Some),
            false => Ok(None),
        }
    }

    /// Returns the reader to the position.
    pub(in crate::json) fn rewind(&self, reader: &mut Reader<'_>) -> OpenObject<'_> {
        (reader.at, reader.depth) = (self.at, self.depth);
        self.object
    }
}

impl<'de> Reader<'de> {
    /// Opens the object that comes next.
    ///
    /// # Errors
    /// Fails when something else comes next, or it nests too deeply.
    #[inline]
    pub fn open(&mut self) -> Result<OpenObject<'static>, StrictError> {
        if self.next()? != b'{' {
            return Err(StrictError::INVALID);
        }
        self.enter()?;
        Ok(OpenObject {
            first: true,
            hidden: None,
        })
    }

    /// Returns the position in `object`.
    #[must_use]
    pub fn position<'h>(&self, object: OpenObject<'h>) -> Position<'h> {
        Position {
            at: self.at,
            depth: self.depth,
            object,
        }
    }

    /// Reads the name of the next member, with its colon; `None` at the end of the object.
    ///
    /// Always inlined: without, every member costs a call that saves and restores registers.
    #[inline(always)]
    pub(in crate::json) fn name(
        &mut self,
        object: &mut OpenObject<'_>,
    ) -> Result<Option<Text<'de>>, StrictError> {
        if !self.more(b'}', &mut object.first)? {
            self.leave();
            return Ok(None);
        }
        if self.next()? != b'"' {
            return Err(StrictError::INVALID);
        }
        let name = self.string()?;
        self.expect(b':')?;
        Ok(Some(name))
    }

    /// Reads as [`Self::name`] does, and skips members that belong to another type.
    pub(in crate::json) fn visible_name(
        &mut self,
        object: &mut OpenObject<'_>,
    ) -> Result<Option<Text<'de>>, StrictError> {
        loop {
            match self.name(object)? {
                Some(name) if object.hides(name.as_str()) => self.skip()?,
                name => return Ok(name),
            }
        }
    }

    /// Returns the index of the next member, as `index` counts them; a larger number for one that
    /// is unknown or belongs to another type.
    ///
    /// # Errors
    /// Fails when the input is invalid.
    #[inline(always)]
    pub fn next_member(
        &mut self,
        object: &mut OpenObject<'_>,
        index: impl Fn(&str) -> usize,
    ) -> Result<Option<usize>, StrictError> {
        let Some(name) = self.name(object)? else {
            return Ok(None);
        };
        Ok(Some(match object.hidden {
            Some(_) if object.hides(name.as_str()) => usize::MAX,
            _ => index(name.as_str()),
        }))
    }

    /// Returns whether another member or item comes before `close`; consumes the comma.
    #[inline]
    pub(super) fn more(&mut self, close: u8, first: &mut bool) -> Result<bool, StrictError> {
        let next = self.next()?;
        if next == close {
            return Ok(false);
        }
        if std::mem::take(first) {
            return Ok(true);
        }
        if next != b',' {
            return Err(StrictError::INVALID);
        }
        self.at += 1;
        // The next read fails on a second comma and on the closing bracket.
        Ok(true)
    }
}
