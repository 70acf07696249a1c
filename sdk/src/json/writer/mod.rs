//! JSON from serde's data, straight into a buffer.
//!
//! What it writes is what serde_json writes, byte for byte; tests hold the two against
//! each other. It knows that the buffer takes everything: nothing fails but what has no
//! JSON form. A string is looked through in blocks and copied in runs, and a comma is
//! written behind each member, where the end of the object takes the place of the last,
//! so that no state is kept.
//!
//! Numbers of more than a digit are left to serde_json, which has them ready.

mod compound;
mod string;
#[cfg(test)]
mod tests;

use std::fmt;

use serde_core::{Serialize, Serializer};
use serde_json::value::RawValue;

use self::compound::Compound;
use self::string::{Escaping, name, string};
use super::{raw_value, reader};

/// Why a value could not be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EncodeError {
    // Boxed to keep the results of all that is written as small as a pointer.
    reason: Box<Reason>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Reason(String);

impl fmt::Display for EncodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.reason.0)
    }
}

impl std::error::Error for EncodeError {}

impl serde_core::ser::Error for EncodeError {
    #[cold]
    fn custom<T: fmt::Display>(reason: T) -> Self {
        Self {
            reason: Box::new(Reason(reason.to_string())),
        }
    }
}

type Result<T = ()> = std::result::Result<T, EncodeError>;

/// Appends the JSON form of `value` to `bytes`, without white space.
///
/// # Errors
/// When `value` has no JSON form, such as a map whose keys are lists; nothing has been
/// appended then.
pub fn encode<T: Serialize + ?Sized>(value: &T, bytes: &mut Vec<u8>) -> Result {
    let start = bytes.len();
    let written = value.serialize(Writer::new(bytes));
    if written.is_err() {
        bytes.truncate(start);
    }
    written
}

/// What has a JSON form, whatever its type: code that takes it is compiled once for all types.
pub(crate) trait Encode {
    /// Appends the JSON form. What has been appended when it fails is for the caller to remove.
    ///
    /// # Errors
    /// As [`encode`].
    fn encode(&self, bytes: &mut Vec<u8>) -> Result;
}

impl<T: Serialize> Encode for T {
    fn encode(&self, bytes: &mut Vec<u8>) -> Result {
        self.serialize(Writer::new(bytes))
    }
}

/// The JSON form of `value`, as a value of its own.
///
/// # Errors
/// As [`encode`].
pub(crate) fn encode_raw(value: &dyn Encode) -> Result<Box<RawValue>> {
    let mut bytes = Vec::new();
    value.encode(&mut bytes)?;
    let text = String::from_utf8(bytes).map_err(serde_core::ser::Error::custom)?;
    reader::boxed(text).map_err(serde_core::ser::Error::custom)
}

/// The end of a buffer, where a value is to be written.
pub(super) struct Writer<'b> {
    bytes: &'b mut Vec<u8>,
    role: Role,
}

/// What a value is written as.
#[derive(Clone, Copy, PartialEq)]
enum Role {
    Value,
    /// The name of a member.
    Name,
    /// A string whose text is JSON already.
    Verbatim,
}

impl<'b> Writer<'b> {
    #[inline]
    pub(super) fn new(bytes: &'b mut Vec<u8>) -> Self {
        Self {
            bytes,
            role: Role::Value,
        }
    }

    /// Leaves the value to serde_json, which writes into the same buffer.
    fn leave<T: Serialize + ?Sized>(self, value: &T) -> Result {
        serde_json::to_writer(self.bytes, value).map_err(serde_core::ser::Error::custom)
    }
}

/// Methods that write integers as serde_json does.
macro_rules! integers {
    ($($method:ident: $type:ty,)*) => {
        $(fn $method(self, value: $type) -> Result {
            match u8::try_from(value) {
                // A call takes longer than the one digit that most integers have.
                Ok(digit @ 0..=9) => self.bytes.push(b'0' + digit),
                _ => return self.leave(&value),
            }
            Ok(())
        })*
    };
}

impl<'b> Serializer for Writer<'b> {
    type Ok = ();
    type Error = EncodeError;
    type SerializeSeq = Compound<'b>;
    type SerializeTuple = Compound<'b>;
    type SerializeTupleStruct = Compound<'b>;
    type SerializeTupleVariant = Compound<'b>;
    type SerializeMap = Compound<'b>;
    type SerializeStruct = Compound<'b>;
    type SerializeStructVariant = Compound<'b>;

    integers! {
        serialize_i8: i8,
        serialize_i16: i16,
        serialize_i32: i32,
        serialize_i64: i64,
        serialize_i128: i128,
        serialize_u8: u8,
        serialize_u16: u16,
        serialize_u32: u32,
        serialize_u64: u64,
        serialize_u128: u128,
    }

    fn serialize_f32(self, value: f32) -> Result {
        self.leave(&value)
    }

    fn serialize_f64(self, value: f64) -> Result {
        self.leave(&value)
    }

    fn serialize_bool(self, value: bool) -> Result {
        let word = if value { "true" } else { "false" };
        self.bytes.extend_from_slice(word.as_bytes());
        Ok(())
    }

    fn serialize_char(self, value: char) -> Result {
        self.serialize_str(value.encode_utf8(&mut [0; 4]))
    }

    #[inline]
    fn serialize_str(self, value: &str) -> Result {
        match self.role {
            Role::Verbatim => self.bytes.extend_from_slice(value.as_bytes()),
            Role::Value => string(self.bytes, value),
            Role::Name => name(self.bytes, value),
        }
        Ok(())
    }

    fn serialize_bytes(self, value: &[u8]) -> Result {
        self.leave(value)
    }

    #[inline]
    fn serialize_none(self) -> Result {
        self.serialize_unit()
    }

    #[inline]
    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Result {
        self.bytes.extend_from_slice(b"null");
        Ok(())
    }

    fn serialize_unit_struct(self, _: &'static str) -> Result {
        self.serialize_unit()
    }

    fn serialize_unit_variant(self, _: &'static str, _: u32, variant: &'static str) -> Result {
        self.serialize_str(variant)
    }

    #[inline]
    fn serialize_newtype_struct<T: Serialize + ?Sized>(self, _: &'static str, value: &T) -> Result {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        value: &T,
    ) -> Result {
        let mut members = Compound::object(self.bytes);
        members.member(variant, value)?;
        members.close();
        Ok(())
    }

    #[inline]
    fn serialize_seq(self, _: Option<usize>) -> Result<Compound<'b>> {
        Ok(Compound::list(self.bytes))
    }

    fn serialize_tuple(self, _: usize) -> Result<Compound<'b>> {
        Ok(Compound::list(self.bytes))
    }

    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<Compound<'b>> {
        Ok(Compound::list(self.bytes))
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<Compound<'b>> {
        Ok(Compound::variant(self.bytes, variant, b'['))
    }

    #[inline]
    fn serialize_map(self, _: Option<usize>) -> Result<Compound<'b>> {
        Ok(Compound::object(self.bytes))
    }

    #[inline]
    fn serialize_struct(self, name: &'static str, members: usize) -> Result<Compound<'b>> {
        if members == 0 {
            return Ok(Compound::empty(self.bytes));
        }
        // Types that hold text have one member.
        if members != 1 || !raw_value::is_text(name) {
            return Ok(Compound::object(self.bytes));
        }
        // What is written as it is may be a string, and is no name all the same.
        if self.role == Role::Name {
            return Err(compound::no_name());
        }
        Ok(Compound::verbatim(self.bytes))
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<Compound<'b>> {
        Ok(Compound::variant(self.bytes, variant, b'{'))
    }

    fn collect_str<T: fmt::Display + ?Sized>(self, value: &T) -> Result {
        use fmt::Write as _;

        self.bytes.push(b'"');
        write!(Escaping(self.bytes), "{value}").map_err(serde_core::ser::Error::custom)?;
        self.bytes.push(b'"');
        Ok(())
    }
}
