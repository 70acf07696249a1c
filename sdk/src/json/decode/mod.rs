//! Decodes text with exact error paths and declared leniency.
//!
//! The strict pass is serde alone. When it fails, [`LenientReader`] reads the text once more by
//! the type's [`TypeDescriptor`](crate::json::TypeDescriptor), without the type itself. It either
//! finds the error, or writes the text anew without the values that the schema allows to be
//! dropped; the strict pass reads the result. Time is linear in the input per level of nesting.
//! Memory is the text written and the members of one object per level.

mod lenient;
mod members;
mod object;
#[cfg(test)]
mod tests;
mod union;

use std::fmt;

use serde_core::Deserializer;
use serde_core::de::Error as _;

use self::lenient::LenientReader;
use crate::json::described::{Described, read};
use crate::json::reader::RawJson;

/// Error of decoding a value, with its place.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DecodeError {
    /// JSON Pointer of the offending value; empty for the whole document.
    pub path: String,
    /// Description of the error.
    pub message: String,
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.path.is_empty() {
            write!(f, "{}: ", self.path)?;
        }
        f.write_str(&self.message)
    }
}

impl std::error::Error for DecodeError {}

/// An invalid value that was dropped because the schema allows it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Leniency {
    /// JSON Pointer of the dropped value.
    pub path: String,
    /// Reason why the value is invalid.
    pub reason: String,
}

/// Reads `text` as a `T`, with the leniency that the schema declares.
///
/// Calls `observer` for every dropped value once the whole text is accepted. After 100 dropped
/// values of one text, the others are reported as one.
///
/// # Errors
/// Fails when `text` is not JSON or not a `T`; the error names the place.
pub fn decode<T: Described>(
    text: &str,
    observer: &mut dyn FnMut(Leniency),
) -> Result<T, DecodeError> {
    decode_or(text, observer, |error| error)
}

/// Reads as [`decode()`] does, with an error from `convert`. Converting the result of [`decode()`]
/// would copy the value once more. Always inlined for the same reason.
///
/// # Errors
/// Fails as [`decode()`] does.
#[inline(always)]
pub(crate) fn decode_or<T: Described, E>(
    text: &str,
    observer: &mut dyn FnMut(Leniency),
    convert: impl FnOnce(DecodeError) -> E,
) -> Result<T, E> {
    match read(text) {
        Ok(value) => Ok(value),
        Err(_) => decode_leniently(text, observer).map_err(convert),
    }
}

/// Reads `text` as a `T`, as leniently as messages are read from the wire.
///
/// Values that the protocol's schema allows to be dropped are dropped when they are invalid.
/// [`from_str_reporting`] reports them; `serde_json::from_str` fails instead.
///
/// ```
/// use acp_sdk::v1::ToolCallUpdate;
///
/// let text = r#"{"toolCallId":"call-1","status":7}"#;
/// let update: ToolCallUpdate = acp_sdk::json::from_str(text)?;
/// assert_eq!(update.status, None);
/// assert!(serde_json::from_str::<ToolCallUpdate>(text).is_err());
/// # Ok::<(), acp_sdk::json::DecodeError>(())
/// ```
///
/// # Errors
/// Fails when `text` is not JSON or not a `T`; the error names the place.
pub fn from_str<T: Described>(text: &str) -> Result<T, DecodeError> {
    decode(text, &mut |_| {})
}

/// Reads `text` as [`from_str`] does, and returns what was dropped beside the value.
///
/// After 100 dropped values of one text, the others are reported as one.
///
/// ```
/// use acp_sdk::v1::ToolCallUpdate;
///
/// let text = r#"{"toolCallId":"call-1","status":7}"#;
/// let (_, dropped) = acp_sdk::json::from_str_reporting::<ToolCallUpdate>(text)?;
/// assert_eq!(dropped[0].path, "/status");
/// # Ok::<(), acp_sdk::json::DecodeError>(())
/// ```
///
/// # Errors
/// Fails when `text` is not JSON or not a `T`; the error names the place.
pub fn from_str_reporting<T: Described>(text: &str) -> Result<(T, Vec<Leniency>), DecodeError> {
    let mut dropped = Vec::new();
    let value = decode(text, &mut |leniency| dropped.push(leniency))?;
    Ok((value, dropped))
}

/// Runs the lenient pass of [`decode()`] alone.
///
/// Returns the same value as [`decode()`] for any text, but takes longer for a valid one.
///
/// # Errors
/// Fails as [`decode()`] does.
pub fn decode_leniently<T: Described>(
    text: &str,
    observer: &mut dyn FnMut(Leniency),
) -> Result<T, DecodeError> {
    let repaired = LenientReader::repair(text, T::descriptor())?;
    // The lenient pass checks no more than the descriptor says. A type written by hand may
    // require more.
    let value = read(&repaired.text).map_err(|error| DecodeError {
        path: error.path(&repaired.text),
        message: error.to_string(),
    })?;
    repaired.report(observer);
    Ok(value)
}

/// Deserializes a `T` from any deserializer, without leniency.
///
/// This is how every generated type implements `Deserialize`: it is read from JSON text alone, and
/// the deserializer is asked for that.
///
/// # Errors
/// Fails when the input is not a `T`; the error names the place.
pub fn deserialize<'de, T: Described, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<T, D::Error> {
    let RawJson(raw) = serde_core::Deserialize::deserialize(deserializer)?;
    let text = raw.get();
    read(text).map_err(
        |error| match LenientReader::run(text, T::descriptor(), true) {
            Err(error) => D::Error::custom(error),
            Ok(_) => D::Error::custom(error),
        },
    )
}

/// Returns the value of a text, which is read strictly.
#[must_use]
pub fn read_raw<T: Described>(text: &str) -> Option<T> {
    read(text).ok()
}

/// Reads the result of a request as [`decode()`] does, and `null` as an empty object.
///
/// Some peers answer `null` instead of an object without members. This is accepted where an
/// empty object is valid, and reported to `observer`.
///
/// # Errors
/// Fails as [`decode()`] does.
pub fn decode_result<T: Described>(
    text: &str,
    observer: &mut dyn FnMut(Leniency),
) -> Result<T, DecodeError> {
    let result = decode(text, observer);
    if result.is_ok() || text.trim() != "null" {
        return result;
    }
    let Ok(empty) = read("{}") else {
        return result;
    };
    let reason = "expected an object, got null".to_owned();
    observer(Leniency {
        path: String::new(),
        reason,
    });
    Ok(empty)
}
