//! Objects and lists.

use serde_core::ser::{
    SerializeMap, SerializeSeq, SerializeStruct, SerializeStructVariant, SerializeTuple,
    SerializeTupleStruct, SerializeTupleVariant,
};
use serde_core::{Serialize, ser};

use super::string::name;
use super::{EncodeError, Result, Role, Writer};

/// An object or a list whose first bracket is written.
pub(in crate::json) struct Compound<'b> {
    bytes: &'b mut Vec<u8>,
    form: Form,
}

#[derive(Clone, Copy, PartialEq)]
enum Form {
    Object,
    List,
    /// Its only member is the text of a value.
    Verbatim,
    /// An object without members, which is written.
    Empty,
}

impl<'b> Compound<'b> {
    #[inline]
    pub(super) fn object(bytes: &'b mut Vec<u8>) -> Self {
        bytes.push(b'{');
        Self {
            bytes,
            form: Form::Object,
        }
    }

    #[inline]
    pub(super) fn empty(bytes: &'b mut Vec<u8>) -> Self {
        bytes.extend_from_slice(b"{}");
        Self {
            bytes,
            form: Form::Empty,
        }
    }

    #[inline]
    pub(super) fn list(bytes: &'b mut Vec<u8>) -> Self {
        bytes.push(b'[');
        Self {
            bytes,
            form: Form::List,
        }
    }

    pub(super) fn verbatim(bytes: &'b mut Vec<u8>) -> Self {
        Self {
            bytes,
            form: Form::Verbatim,
        }
    }

    /// The object or list in an object whose only member, `variant`, it is.
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

    /// Writes the last bracket, in the place of the comma behind the last value.
    #[inline]
    pub(super) fn close(self) {
        let close = match self.form {
            Form::Object => b'}',
            Form::List => b']',
            Form::Verbatim | Form::Empty => return,
        };
        match self.bytes.last_mut() {
            Some(last) if *last == b',' => *last = close,
            _ => self.bytes.push(close),
        }
    }

    /// Ends the value of a variant, and the object around it.
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

/// Makes a name of the value that was written from `start` on, as serde_json does.
#[inline]
fn make_name(bytes: &mut Vec<u8>, start: usize) -> Result {
    // No JSON ends so but a string that was written as a name.
    if bytes.last() == Some(&b':') {
        return Ok(());
    }
    quote_name(bytes, start)
}

#[cold]
fn quote_name(bytes: &mut Vec<u8>, start: usize) -> Result {
    match bytes.get(start) {
        Some(b'"') => {}
        // Numbers and booleans get quotes.
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
    ser::Error::custom("the name of a member must be a string, a number or a boolean")
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
            Form::Verbatim => value.serialize(Writer {
                bytes: self.bytes,
                role: Role::Verbatim,
            }),
            Form::Object | Form::List => self.member(key, value),
            Form::Empty => Err(ser::Error::custom("a struct without members has one")),
        }
    }

    #[inline]
    fn end(self) -> Result {
        self.close();
        Ok(())
    }
}

/// Implements a trait whose parts are values one after the other.
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
