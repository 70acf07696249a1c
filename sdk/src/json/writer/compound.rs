//! Objects and lists.

use std::any::type_name;

use serde_core::ser::{
    SerializeMap, SerializeSeq, SerializeStruct, SerializeStructVariant, SerializeTuple,
    SerializeTupleStruct, SerializeTupleVariant,
};
use serde_core::{Serialize, ser};

use super::string::name;
use super::{EncodeError, Result, Role, Writer};

/// An object or a list after its opening bracket.
pub(in crate::json) struct Compound<'b> {
    bytes: &'b mut Vec<u8>,
    form: Kind,
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Object,
    List,
    /// Its only member is JSON text.
    Verbatim,
    /// An object without members, already written.
    Empty,
}

impl<'b> Compound<'b> {
    #[inline]
    pub(super) fn object(bytes: &'b mut Vec<u8>) -> Self {
        bytes.push(b'{');
        Self {
            bytes,
            form: Kind::Object,
        }
    }

    #[inline]
    pub(super) fn empty(bytes: &'b mut Vec<u8>) -> Self {
        bytes.extend_from_slice(b"{}");
        Self {
            bytes,
            form: Kind::Empty,
        }
    }

    #[inline]
    pub(super) fn list(bytes: &'b mut Vec<u8>) -> Self {
        bytes.push(b'[');
        Self {
            bytes,
            form: Kind::List,
        }
    }

    pub(super) fn verbatim(bytes: &'b mut Vec<u8>) -> Self {
        Self {
            bytes,
            form: Kind::Verbatim,
        }
    }

    /// Starts the content of a variant: the only member of an object.
    pub(super) fn variant(bytes: &'b mut Vec<u8>, variant: &str, open: u8) -> Self {
        bytes.push(b'{');
        name(bytes, variant);
        match open {
            b'[' => Self::list(bytes),
            _ => Self::object(bytes),
        }
    }

    #[inline]
    pub(super) fn member<T: Serialize + ?Sized>(&mut self, key: &'static str, value: &T) -> Result {
        name(self.bytes, key);
        self.value(value)
    }

    #[inline]
    fn value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result {
        value.serialize(Writer::new(self.bytes))?;
        self.bytes.push(b',');
        Ok(())
    }

    /// Writes the closing bracket in place of the last comma.
    #[inline]
    pub(super) fn close(self) {
        let close = match self.form {
            Kind::Object => b'}',
            Kind::List => b']',
            Kind::Verbatim | Kind::Empty => return,
        };
        match self.bytes.last_mut() {
            Some(last) if *last == b',' => *last = close,
            _ => self.bytes.push(close),
        }
    }

    /// Closes the content of a variant and the object around it.
    fn close_variant(self) {
        let Self { bytes, form } = self;
        let inner = Compound {
            bytes: &mut *bytes,
            form,
        };
        inner.close();
        bytes.push(b'}');
    }
}

/// Turns the value written from `start` on into a name, as serde_json does.
#[inline]
fn make_name(bytes: &mut Vec<u8>, start: usize) -> Result {
    // Only a string written as a name ends with a colon.
    if bytes.last() == Some(&b':') {
        return Ok(());
    }
    quote_name(bytes, start)
}

#[cold]
fn quote_name(bytes: &mut Vec<u8>, start: usize) -> Result {
    match bytes.get(start) {
        Some(b'"') => {}
        // Numbers and booleans are quoted.
        Some(b'-' | b'0'..=b'9' | b't' | b'f') => {
            bytes.insert(start, b'"');
            bytes.push(b'"');
        }
        _ => return Err(no_name()),
    }
    bytes.push(b':');
    Ok(())
}

#[cold]
pub(super) fn no_name() -> EncodeError {
    ser::Error::custom("key must be a string, a number or a boolean")
}

impl SerializeMap for Compound<'_> {
    type Ok = ();
    type Error = EncodeError;

    #[inline]
    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result {
        let start = self.bytes.len();
        let writer = Writer {
            bytes: self.bytes,
            role: Role::Name,
        };
        key.serialize(writer)?;
        // The compiler knows it of the names of generated types.
        if type_name::<T>() == type_name::<str>() {
            return Ok(());
        }
        make_name(self.bytes, start)
    }

    #[inline]
    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result {
        self.value(value)
    }

    #[inline]
    fn end(self) -> Result {
        self.close();
        Ok(())
    }
}

impl SerializeStruct for Compound<'_> {
    type Ok = ();
    type Error = EncodeError;

    #[inline]
    fn serialize_field<T: Serialize + ?Sized>(&mut self, key: &'static str, value: &T) -> Result {
        match self.form {
            Kind::Verbatim => value.serialize(Writer {
                bytes: self.bytes,
                role: Role::Verbatim,
            }),
            Kind::Object | Kind::List => self.member(key, value),
            Kind::Empty => Err(ser::Error::custom("struct of zero members has a member")),
        }
    }

    #[inline]
    fn end(self) -> Result {
        self.close();
        Ok(())
    }
}

/// Implements a trait that writes a sequence of values.
macro_rules! values {
    ($($trait:ident $method:ident $close:ident,)*) => {
        $(impl $trait for Compound<'_> {
            type Ok = ();
            type Error = EncodeError;

            #[inline]
            fn $method<T: Serialize + ?Sized>(&mut self, value: &T) -> Result {
                self.value(value)
            }

            #[inline]
            fn end(self) -> Result {
                self.$close();
                Ok(())
            }
        })*
    };
}

values! {
    SerializeSeq serialize_element close,
    SerializeTuple serialize_element close,
    SerializeTupleStruct serialize_field close,
    SerializeTupleVariant serialize_field close_variant,
}

impl SerializeStructVariant for Compound<'_> {
    type Ok = ();
    type Error = EncodeError;

    fn serialize_field<T: Serialize + ?Sized>(&mut self, key: &'static str, value: &T) -> Result {
        self.member(key, value)
    }

    fn end(self) -> Result {
        self.close_variant();
        Ok(())
    }
}
