//! How generated types of each form are described, read and written.

/// Implements `Described` and `Deserialize` from a descriptor and how the type is read. `object`:
/// the type is read from the members of an object, and serialized by its `Members`.
#[doc(hidden)]
#[macro_export]
macro_rules! __acp_described {
    ($name:ident, $descriptor:expr, object |$reader:ident, $object:ident| $read:expr) => {
        impl $crate::runtime::Object for $name {
            fn read_members(
                $reader: &mut $crate::runtime::Reader<'_>,
                $object: $crate::runtime::OpenObject<'_>,
            ) -> ::core::result::Result<Self, $crate::runtime::StrictError> {
                $read
            }
        }

        impl $crate::runtime::serde::Serialize for $name {
            fn serialize<S: $crate::runtime::serde::Serializer>(
                &self,
                serializer: S,
            ) -> ::core::result::Result<S::Ok, S::Error> {
                $crate::runtime::write_object(self, serializer)
            }
        }

        $crate::__acp_described!($name, $descriptor, |reader| {
            let object = reader.open()?;
            <Self as $crate::runtime::Object>::read_members(reader, object)
        });
    };
    ($name:ident, $descriptor:expr, |$reader:ident| $read:expr) => {
        impl $crate::runtime::Described for $name {
            fn descriptor() -> &'static $crate::runtime::TypeDescriptor {
                $descriptor
            }

            fn read(
                $reader: &mut $crate::runtime::Reader<'_>,
            ) -> ::core::result::Result<Self, $crate::runtime::StrictError> {
                $read
            }
        }

        impl<'de> $crate::runtime::serde::Deserialize<'de> for $name {
            fn deserialize<__D: $crate::runtime::serde::Deserializer<'de>>(
                deserializer: __D,
            ) -> ::core::result::Result<Self, __D::Error> {
                $crate::runtime::deserialize(deserializer)
            }
        }
    };
}

/// Implements a newtype with the JSON form of its content. `members`: that form is an object.
#[doc(hidden)]
#[macro_export]
macro_rules! __acp_wrapper {
    ($name:ident, $ty:ty, members) => {
        impl $crate::runtime::Members for $name {
            fn write<__M: $crate::runtime::serde::ser::SerializeMap>(
                &self,
                out: &mut __M,
            ) -> ::core::result::Result<(), __M::Error> {
                $crate::runtime::Members::write(&self.0, out)
            }
        }

        impl $crate::runtime::Object for $name {
            fn read_members(
                reader: &mut $crate::runtime::Reader<'_>,
                object: $crate::runtime::OpenObject<'_>,
            ) -> ::core::result::Result<Self, $crate::runtime::StrictError> {
                <$ty as $crate::runtime::Object>::read_members(reader, object).map(Self)
            }
        }

        $crate::__acp_wrapper!($name, $ty);
    };
    ($name:ident, $ty:ty) => {
        impl $crate::runtime::serde::Serialize for $name {
            fn serialize<S: $crate::runtime::serde::Serializer>(
                &self,
                serializer: S,
            ) -> ::core::result::Result<S::Ok, S::Error> {
                $crate::runtime::serde::Serialize::serialize(&self.0, serializer)
            }
        }

        $crate::__acp_described!(
            $name,
            <$ty as $crate::runtime::Described>::descriptor(),
            |reader| <$ty as $crate::runtime::Described>::read(reader).map(Self)
        );
    };
}

/// Implements a tagged union from its tag values and their payload types.
///
/// `or` names the variant without a tag; `otherwise` one that also accepts unknown tag values.
#[doc(hidden)]
#[macro_export]
macro_rules! __acp_tagged_union {
    ($name:ident [$tag:literal] { $($key:literal: $ty:ty),* $(,)? }) => {
        $crate::__acp_tagged_union!(@ $name [$tag] None, false, { $($key: $ty),* });
    };
    ($name:ident [$tag:literal] or $default:ident { $($key:literal: $ty:ty),* $(,)? }) => {
        $crate::__acp_tagged_union!(
            @ $name [$tag] Some(<$default as $crate::runtime::Described>::descriptor), false,
            { $($key: $ty),* }
        );
    };
    ($name:ident [$tag:literal] otherwise $default:ident { $($key:literal: $ty:ty),* $(,)? }) => {
        $crate::__acp_tagged_union!(
            @ $name [$tag] Some(<$default as $crate::runtime::Described>::descriptor), true,
            { $($key: $ty),* }
        );
    };
    (@ $name:ident [$tag:literal] $default:expr, $takes:literal, { $($key:literal: $ty:ty),* }) => {
        $crate::__acp_described!(
            $name,
            const {
                &$crate::runtime::TypeDescriptor::TaggedUnion($crate::runtime::TaggedVariants {
                    tag: $tag,
                    known: &[$(($key, <$ty as $crate::runtime::Described>::descriptor)),*],
                    default: $default,
                    takes_unknown: $takes,
                })
            },
            object |reader, object| $crate::runtime::read_tagged_union(reader, object)
        );
    };
}

/// Implements an untagged union of objects from the payloads and their required members.
#[doc(hidden)]
#[macro_export]
macro_rules! __acp_object_union {
    ($name:ident { $($variant:ident: $ty:ty = [$($member:literal),*]),* $(,)? }) => {
        $crate::__acp_described!(
            $name,
            const {
                &$crate::runtime::TypeDescriptor::ObjectUnion {
                    expected: concat!(stringify!($name), " (", stringify!($($variant),*), ")"),
                    branches: &[$((
                        &[$($member),*],
                        <$ty as $crate::runtime::Described>::descriptor,
                    )),*],
                }
            },
            object |reader, object| $crate::runtime::read_object_union(reader, object, &[$((
                &[$($member),*],
                <$ty as $crate::runtime::Described>::descriptor,
                |reader, object| {
                    <$ty as $crate::runtime::Object>::read_members(reader, object)
                        .map(Self::$variant)
                },
            )),*])
        );

        impl $crate::runtime::Members for $name {
            #[inline]
            fn write<__M: $crate::runtime::serde::ser::SerializeMap>(
                &self,
                out: &mut __M,
            ) -> ::core::result::Result<(), __M::Error> {
                match self {
                    $(Self::$variant(payload) => {
                        $crate::runtime::Members::write(payload, out)
                    })*
                }
            }
        }
    };
}

/// Implements the reading of an untagged union of values from the payloads and their kinds.
///
/// A variant of the kind `Null` has no payload.
#[doc(hidden)]
#[macro_export]
macro_rules! __acp_value_union {
    (@read $reader:ident $ty:ty, $variant:ident Null) => {
        <$ty as $crate::runtime::Described>::read($reader).map(|()| Self::$variant)
    };
    (@read $reader:ident $ty:ty, $variant:ident $form:ident) => {
        <$ty as $crate::runtime::Described>::read($reader).map(Self::$variant)
    };
    ($name:ident { $($variant:ident: $ty:ty = $form:ident),* $(,)? }) => {
        $crate::__acp_described!(
            $name,
            const {
                &$crate::runtime::TypeDescriptor::ValueUnion {
                    expected: concat!(stringify!($name), " (", stringify!($($variant),*), ")"),
                    branches: &[$((
                        $crate::runtime::JsonKind::$form,
                        <$ty as $crate::runtime::Described>::descriptor,
                    )),*],
                }
            },
            |reader| $crate::runtime::read_value_union(reader, &[$((
                $crate::runtime::JsonKind::$form,
                <$ty as $crate::runtime::Described>::descriptor,
                |reader| $crate::__acp_value_union!(@read reader $ty, $variant $form),
            )),*])
        );
    };
}
