//! Unions without a tag: the first branch that takes the value.

use serde_json::value::RawValue;

use super::object::kind;
use super::{Decode, DecodeError, Object};

/// What a JSON value looks like from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// `null`
    Null,
    /// `true` or `false`
    Boolean,
    /// Any number.
    Number,
    /// Any string.
    String,
    /// A list.
    Array,
    /// An object.
    Object,
    /// Any value.
    Any,
}

impl Form {
    /// Whether `raw` has this form, as far as its first byte tells.
    fn has(self, raw: &RawValue) -> bool {
        let first = raw.get().as_bytes().first();
        match self {
            Self::Null => first == Some(&b'n'),
            Self::Boolean => matches!(first, Some(b't' | b'f')),
            Self::Number => matches!(first, Some(b'-' | b'0'..=b'9')),
            Self::String => first == Some(&b'"'),
            Self::Array => first == Some(&b'['),
            Self::Object => first == Some(&b'{'),
            Self::Any => true,
        }
    }
}

/// How to read one branch of a union, and the form it takes.
type Branch<T> = (Form, fn(&RawValue, &mut Decode) -> Result<T, DecodeError>);

/// Reads a union without a tag: the first branch that takes the value.
///
/// All branches are tried strictly before any is tried with leniency.
///
/// # Errors
/// When no branch takes it: the error of the branch that got furthest.
pub fn first_of<T>(
    raw: &RawValue,
    cx: &mut Decode,
    expected: &str,
    branches: &[Branch<T>],
) -> Result<T, DecodeError> {
    let wrong = cx.error(format!("invalid type: {}, expected {expected}", kind(raw)));
    let mut error = wrong.clone();
    for &strict in rounds(cx) {
        // What the last round says counts: an earlier one blames what is tolerated.
        error = wrong.clone();
        for (_, read) in branches.iter().filter(|(form, _)| form.has(raw)) {
            match cx.attempt(strict, |cx| read(raw, cx)) {
                Ok(value) => return Ok(value),
                Err(other) => error = further(error, other),
            }
        }
    }
    Err(error)
}

/// How to read one branch of a union of objects, and the members it must have.
type ObjectBranch<T> = (
    &'static [&'static str],
    fn(&mut Object<'_>) -> Result<T, DecodeError>,
);

impl Object<'_> {
    /// Reads a union without a tag: the first branch that takes the members.
    ///
    /// # Errors
    /// When no branch takes them: the error of the branch that got furthest.
    pub fn first_of<T>(
        &mut self,
        expected: &str,
        branches: &[ObjectBranch<T>],
    ) -> Result<T, DecodeError> {
        let wrong = self.cx.error(format!("invalid value: expected {expected}"));
        let mut error = wrong.clone();
        for &strict in rounds(self.cx) {
            error = wrong.clone();
            // A branch whose members are not there is only asked for the sake of its error.
            let complete = |names: &[&str]| names.iter().all(|name| self.has(name));
            let any = branches.iter().any(|(names, _)| complete(names));
            let asked: Vec<_> = branches
                .iter()
                .filter(|(names, _)| !any || complete(names))
                .collect();
            for (_, read) in asked {
                match self.attempt(strict, read) {
                    Ok(value) => return Ok(value),
                    Err(other) => error = further(error, other),
                }
            }
        }
        Err(error)
    }
}

/// Strictly first, with leniency second, if it is allowed.
fn rounds(cx: &Decode) -> &'static [bool] {
    if cx.strict { &[true] } else { &[true, false] }
}

/// The error that lies deeper; the first of equals.
fn further(known: DecodeError, other: DecodeError) -> DecodeError {
    let depth = |error: &DecodeError| error.path.matches('/').count();
    if depth(&other) > depth(&known) {
        other
    } else {
        known
    }
}

/// Implements the decoding of a union of objects without a tag: each variant with
/// the members that its payload must have.
#[doc(hidden)]
#[macro_export]
macro_rules! __acp_object_union {
    ($name:ident { $($variant:ident: [$($member:literal),*]),* $(,)? }) => {
        impl $crate::runtime::FromObject for $name {
            fn from_object(
                object: &mut $crate::runtime::Object<'_>,
            ) -> ::core::result::Result<Self, $crate::runtime::DecodeError> {
                object.first_of(
                    concat!(stringify!($name), " (", stringify!($($variant),*), ")"),
                    &[$((&[$($member),*], |object| object.flattened().map(Self::$variant))),*],
                )
            }
        }

        impl<'de> $crate::runtime::serde::Deserialize<'de> for $name {
            fn deserialize<D: $crate::runtime::serde::Deserializer<'de>>(
                deserializer: D,
            ) -> ::core::result::Result<Self, D::Error> {
                $crate::runtime::first_object_of(
                    deserializer,
                    concat!(stringify!($name), " (", stringify!($($variant),*), ")"),
                    &[$((&[$($member),*], |kept| kept.read().map(Self::$variant))),*],
                )
            }
        }
    };
}

/// Implements the decoding of a union of any values without a tag: each variant
/// with the form of its JSON. A variant whose form is `Null` has no payload.
#[doc(hidden)]
#[macro_export]
macro_rules! __acp_value_union {
    (@read $variant:ident Null) => {
        |raw, cx| $crate::runtime::FromJson::from_json(raw, cx).map(|()| Self::$variant)
    };
    (@read $variant:ident $form:ident) => {
        |raw, cx| $crate::runtime::FromJson::from_json(raw, cx).map(Self::$variant)
    };
    ($name:ident { $($variant:ident: $form:ident),* $(,)? }) => {
        impl $crate::runtime::FromJson for $name {
            fn from_json(
                raw: &$crate::runtime::RawValue,
                cx: &mut $crate::runtime::Decode,
            ) -> ::core::result::Result<Self, $crate::runtime::DecodeError> {
                $crate::runtime::first_of(
                    raw,
                    cx,
                    concat!(stringify!($name), " (", stringify!($($variant),*), ")"),
                    &[$((
                        $crate::runtime::Form::$form,
                        $crate::__acp_value_union!(@read $variant $form),
                    )),*],
                )
            }
        }

        $crate::__acp_deserialize_with!($name, $crate::runtime::json);
    };
}
