//! A serde serializer that appends JSON text to a buffer.
//!
//! It writes the same bytes as serde_json, which tests compare. It is faster because writing to
//! the buffer cannot fail, strings are searched in blocks, and no state is kept: a comma follows
//! each member, and the closing bracket replaces the last one.
//!
//! serde_json writes the numbers of more than one digit.

mod compound;
mod string;
#[cfg(test)]
mod tests;

use std::fmt;

use serde_core::{Serialize, Serializer};
use serde_json::value::RawValue;

use self::compound::Compound;
use self::string::{Escaping, name, string};
use super::reader;

/// Error of encoding a value that has no JSON form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EncodeError {
    // Boxed to keep results as small as a pointer.
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
/// Fails when `value` has no JSON form, such as a map whose keys are lists. The buffer is then
/// unchanged.
pub fn encode<T: Serialize + ?Sized>(value: &T, bytes: &mut Vec<u8>) -> Result {
    let start = bytes.len();
    let written = value.serialize(Writer::new(bytes));
    if written.is_err() {
        bytes.truncate(start);
    }
    written
}

/// A value with a JSON form. Code that takes it as a trait object is compiled once for all types.
pub(crate) trait Encode {
    /// Appends the JSON form. On failure the caller removes what was appended.
    ///
    /// # Errors
    /// Fails as [`encode`] does.
    fn encode(&self, bytes: &mut Vec<u8>) -> Result;
}

impl<T: Serialize> Encode for T {
    fn encode(&self, bytes: &mut Vec<u8>) -> Result {
        self.serialize(Writer::new(bytes))
    }
}

/// Returns the JSON form of `value`.
///
/// # Errors
/// Fails as [`encode`] does.
pub(crate) fn encode_raw(value: &dyn Encode) -> Result<Box<RawValue>> {
    let mut bytes = Vec::new();
    value.encode(&mut bytes)?;
    let text = String::from_utf8(bytes).map_err(serde_core::ser::Error::custom)?;
    Ok(reader::boxed(text))
}

/// Writes one value to the end of a buffer.
pub(super) struct Writer<'b> {
    bytes: &'b mut Vec<u8>,
    role: Role,
}

/// The role of a written value.
#[derive(Clone, Copy, PartialEq)]
enum Role {
    Value,
    /// The name of a member.
    Name,
    /// A string that holds JSON text.
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

    /// Lets serde_json write the value into the same buffer.
    fn leave<T: Serialize + ?Sized>(self, value: &T) -> Result {
        serde_json::to_writer(self.bytes, value).map_err(serde_core::ser::Error::custom)
    }
}

/// Methods that write integers as serde_json does.
macro_rules! integers {
    ($($method:ident: $type:ty,)*) => {
        $(fn $method(self, value: $type) -> Result {
            match u8::try_from(value) {
                // Most integers have one digit; a call would take longer.
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
        // serde_json's types that hold JSON text serialize as a struct of one member, whose name
        // is in its namespace: `RawValue`, and `Number` where a feature keeps numbers as text.
        if members != 1 || !name.starts_with("$serde_json::") {
            return Ok(Compound::object(self.bytes));
        }
        // JSON text may be a string, but serde_json does not accept it as a name either.
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
