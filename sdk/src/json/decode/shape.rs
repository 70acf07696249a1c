//! What a type looks like on the wire, as data: the second pass reads by it.
//!
//! A type gives its shape by a function, so that shapes can refer to each other in a
//! circle.

use serde_json::value::RawValue;

/// A type whose JSON form is known as data.
pub trait Shaped {
    /// The form.
    fn shape() -> &'static Shape;
}

/// Where to get the shape of a type.
pub type Of = fn() -> &'static Shape;

/// The JSON form of a type.
#[derive(Debug)]
pub enum Shape {
    /// Any JSON value.
    Any,
    /// A value that is checked in one piece.
    Leaf(fn(&RawValue) -> Result<(), serde_json::Error>),
    /// `null` or what is inside.
    Nullable(Of),
    /// A list of items of one shape.
    List(Of),
    /// An object whose members all have one shape.
    Map(Of),
    /// An object with known members.
    Object(&'static [Part]),
    /// Objects that are told apart by a tag.
    Tagged(Variants),
    /// Objects that are told apart by the members which they must have.
    FirstObject {
        /// The union and its branches, in words.
        expected: &'static str,
        /// For each branch the members that it must have.
        branches: &'static [(&'static [&'static str], Of)],
    },
    /// Values that are told apart by trying.
    FirstValue {
        /// The union and its branches, in words.
        expected: &'static str,
        /// For each branch the form that it has from outside.
        branches: &'static [(Form, Of)],
    },
}

/// The variants of a union with a tag.
#[derive(Debug)]
pub struct Variants {
    /// The name of the member that is the tag.
    pub tag: &'static str,
    /// The known values of the tag, and what stands beside them; one that nothing stands
    /// beside has the shape of `()`.
    pub known: &'static [(&'static str, Of)],
    /// The variant without a tag.
    pub default: Option<Of>,
    /// Whether that is also tried when the tag has an unknown value.
    pub takes_unknown: bool,
}

/// A member of an object, or a union whose members are among the object's.
#[derive(Clone, Copy, Debug)]
pub struct Part {
    /// The name on the wire; of a union its tag.
    pub(super) name: &'static str,
    pub(super) of: Of,
    /// Absence is an error.
    pub(super) required: bool,
    /// An invalid value is left out.
    pub(super) lenient: bool,
    /// Invalid items are left out.
    pub(super) items: bool,
    /// `null` means the default.
    pub(super) nullable: bool,
    /// What it has are members of the object itself.
    pub(super) flattened: bool,
}

impl Part {
    /// A member that must be there.
    #[must_use]
    pub const fn required(name: &'static str, of: Of) -> Self {
        Self {
            name,
            of,
            required: true,
            lenient: false,
            items: false,
            nullable: false,
            flattened: false,
        }
    }

    /// A member whose absence means the default.
    #[must_use]
    pub const fn optional(name: &'static str, of: Of) -> Self {
        Self {
            required: false,
            ..Self::required(name, of)
        }
    }

    /// The same, where an invalid value is left out with a report.
    #[must_use]
    pub const fn or_default(self) -> Self {
        Self {
            lenient: true,
            ..self
        }
    }

    /// The same, where each invalid item is left out with a report.
    #[must_use]
    pub const fn valid_items(self) -> Self {
        Self {
            items: true,
            ..self
        }
    }

    /// The same, where `null` means the default.
    #[must_use]
    pub const fn or_null(self) -> Self {
        Self {
            nullable: true,
            ..self
        }
    }

    /// The same, of a union whose members are among the object's. An optional one is absent
    /// when its tag is absent or `null`.
    #[must_use]
    pub const fn flattened(self) -> Self {
        Self {
            flattened: true,
            ..self
        }
    }
}

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
    pub(super) fn has(self, raw: &RawValue) -> bool {
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

/// Gives a type the shape of another.
#[doc(hidden)]
#[macro_export]
macro_rules! __acp_shape_of {
    ($name:ident, $ty:ty) => {
        impl $crate::runtime::Shaped for $name {
            fn shape() -> &'static $crate::runtime::Shape {
                <$ty as $crate::runtime::Shaped>::shape()
            }
        }
    };
}

/// Gives a newtype the JSON form of what is in it.
#[doc(hidden)]
#[macro_export]
macro_rules! __acp_wrapper {
    ($name:ident, $ty:ty) => {
        impl $crate::runtime::serde::Serialize for $name {
            fn serialize<S: $crate::runtime::serde::Serializer>(
                &self,
                serializer: S,
            ) -> ::core::result::Result<S::Ok, S::Error> {
                $crate::runtime::serde::Serialize::serialize(&self.0, serializer)
            }
        }

        impl<'de> $crate::runtime::serde::Deserialize<'de> for $name {
            fn deserialize<D: $crate::runtime::serde::Deserializer<'de>>(
                deserializer: D,
            ) -> ::core::result::Result<Self, D::Error> {
                <$ty as $crate::runtime::serde::Deserialize>::deserialize(deserializer).map(Self)
            }
        }

        $crate::__acp_shape_of!($name, $ty);
    };
}

/// Gives the shape of a union by the values of its tag, each with what stands beside it.
/// After `or` comes the variant without a tag; after `otherwise` one that also takes what
/// has an unknown tag.
#[doc(hidden)]
#[macro_export]
macro_rules! __acp_tagged_union {
    ($name:ident [$tag:literal] { $($key:literal: $ty:ty),* $(,)? }) => {
        $crate::__acp_tagged_union!(@ $name [$tag] None, false, { $($key: $ty),* });
    };
    ($name:ident [$tag:literal] or $default:ident { $($key:literal: $ty:ty),* $(,)? }) => {
        $crate::__acp_tagged_union!(
            @ $name [$tag] Some(<$default as $crate::runtime::Shaped>::shape), false,
            { $($key: $ty),* }
        );
    };
    ($name:ident [$tag:literal] otherwise $default:ident { $($key:literal: $ty:ty),* $(,)? }) => {
        $crate::__acp_tagged_union!(
            @ $name [$tag] Some(<$default as $crate::runtime::Shaped>::shape), true,
            { $($key: $ty),* }
        );
    };
    (@ $name:ident [$tag:literal] $default:expr, $takes:literal, { $($key:literal: $ty:ty),* }) => {
        impl $crate::runtime::Shaped for $name {
            fn shape() -> &'static $crate::runtime::Shape {
                const SHAPE: &$crate::runtime::Shape =
                    &$crate::runtime::Shape::Tagged($crate::runtime::Variants {
                        tag: $tag,
                        known: &[$(($key, <$ty as $crate::runtime::Shaped>::shape)),*],
                        default: $default,
                        takes_unknown: $takes,
                    });
                SHAPE
            }
        }

        $crate::__acp_deserialize_with!($name, $crate::runtime::tagged);

        impl $crate::runtime::Members for $name {
            #[inline]
            fn write<W: $crate::runtime::MemberWriter>(
                &self,
                out: &mut W,
            ) -> ::core::result::Result<(), W::Error> {
                $crate::runtime::write_tagged_members(self, out)
            }
        }

        impl $crate::runtime::serde::Serialize for $name {
            fn serialize<S: $crate::runtime::serde::Serializer>(
                &self,
                serializer: S,
            ) -> ::core::result::Result<S::Ok, S::Error> {
                $crate::runtime::write_tagged(self, serializer)
            }
        }
    };
}

/// Implements the decoding of a union of objects without a tag: each variant with its
/// payload and the members that this must have.
#[doc(hidden)]
#[macro_export]
macro_rules! __acp_object_union {
    ($name:ident { $($variant:ident: $ty:ty = [$($member:literal),*]),* $(,)? }) => {
        impl $crate::runtime::Shaped for $name {
            fn shape() -> &'static $crate::runtime::Shape {
                const SHAPE: &$crate::runtime::Shape = &$crate::runtime::Shape::FirstObject {
                    expected: concat!(stringify!($name), " (", stringify!($($variant),*), ")"),
                    branches: &[$((
                        &[$($member),*],
                        <$ty as $crate::runtime::Shaped>::shape,
                    )),*],
                };
                SHAPE
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

        impl $crate::runtime::Members for $name {
            #[inline]
            fn write<W: $crate::runtime::MemberWriter>(
                &self,
                out: &mut W,
            ) -> ::core::result::Result<(), W::Error> {
                match self {
                    $(Self::$variant(payload) => {
                        $crate::runtime::Members::write(payload, out)
                    })*
                }
            }
        }

        impl $crate::runtime::serde::Serialize for $name {
            fn serialize<S: $crate::runtime::serde::Serializer>(
                &self,
                serializer: S,
            ) -> ::core::result::Result<S::Ok, S::Error> {
                match self {
                    $(Self::$variant(payload) => {
                        $crate::runtime::serde::Serialize::serialize(payload, serializer)
                    })*
                }
            }
        }
    };
}

/// Implements the decoding of a union of any values without a tag: each variant with its
/// payload and the form of its JSON. A variant whose form is `Null` has no payload.
#[doc(hidden)]
#[macro_export]
macro_rules! __acp_value_union {
    (@read $variant:ident Null) => {
        |raw| $crate::runtime::read_raw(raw).map(|()| Self::$variant)
    };
    (@read $variant:ident $form:ident) => {
        |raw| $crate::runtime::read_raw(raw).map(Self::$variant)
    };
    ($name:ident { $($variant:ident: $ty:ty = $form:ident),* $(,)? }) => {
        impl $crate::runtime::Shaped for $name {
            fn shape() -> &'static $crate::runtime::Shape {
                const SHAPE: &$crate::runtime::Shape = &$crate::runtime::Shape::FirstValue {
                    expected: concat!(stringify!($name), " (", stringify!($($variant),*), ")"),
                    branches: &[$((
                        $crate::runtime::Form::$form,
                        <$ty as $crate::runtime::Shaped>::shape,
                    )),*],
                };
                SHAPE
            }
        }

        impl<'de> $crate::runtime::serde::Deserialize<'de> for $name {
            fn deserialize<D: $crate::runtime::serde::Deserializer<'de>>(
                deserializer: D,
            ) -> ::core::result::Result<Self, D::Error> {
                $crate::runtime::first_value_of(
                    deserializer,
                    concat!(stringify!($name), " (", stringify!($($variant),*), ")"),
                    &[$((
                        $crate::runtime::Form::$form,
                        $crate::__acp_value_union!(@read $variant $form),
                    )),*],
                )
            }
        }
    };
}
