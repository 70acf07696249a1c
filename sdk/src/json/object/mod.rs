//! Structs as objects. The macro `members!` makes a descriptor, `Deserialize` and `Serialize`
//! from a table with a line per member.
//!
//! It expands to far less code than derives: all structs share one visitor and one function per
//! kind of member. This keeps compile times low.

mod write;

use std::fmt;
use std::marker::PhantomData;

use serde_core::de::{
    Deserialize, DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, Visitor,
};

pub use self::write::{MemberWriter, Members, Omissible, write_object, write_optional};

/// A struct that is read member by member. The macro `members!` implements it.
pub trait Object<'de>: Sized {
    /// Name of the struct.
    const NAME: &'static str;
    /// Names of its members on the wire.
    const MEMBERS: &'static [&'static str];

    /// Returns the index of a member in [`MEMBERS`](Self::MEMBERS), or a larger number.
    fn member(name: &str) -> usize;

    /// Reads the members.
    ///
    /// # Errors
    /// Fails when they are invalid.
    fn read<A: MapAccess<'de>>(map: A) -> Result<Self, A::Error>;
}

/// Deserializes a struct.
///
/// # Errors
/// Fails when the input is not an object with the members of the struct.
pub fn read_object<'de, T: Object<'de>, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<T, D::Error> {
    deserializer.deserialize_struct(T::NAME, T::MEMBERS, ObjectVisitor(PhantomData))
}

struct ObjectVisitor<T>(PhantomData<T>);

impl<'de, T: Object<'de>> Visitor<'de> for ObjectVisitor<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "struct {}", T::NAME)
    }

    #[inline]
    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<T, A::Error> {
        T::read(map)
    }
}

/// Returns the index of the next member, as [`Object::member`] counts them.
///
/// # Errors
/// Fails when the input is invalid.
#[inline]
pub fn next_member<'de, T: Object<'de>, A: MapAccess<'de>>(
    map: &mut A,
) -> Result<Option<usize>, A::Error> {
    map.next_key_seed(NameOf::<T>(PhantomData))
}

/// Reads the name of a member of `T`.
struct NameOf<T>(PhantomData<T>);

impl<'de, T: Object<'de>> DeserializeSeed<'de> for NameOf<T> {
    type Value = usize;

    #[inline]
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<usize, D::Error> {
        deserializer.deserialize_identifier(self)
    }
}

impl<'de, T: Object<'de>> Visitor<'de> for NameOf<T> {
    type Value = usize;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }

    #[inline]
    fn visit_str<E>(self, name: &str) -> Result<usize, E> {
        Ok(T::member(name))
    }
}

/// Reads the value of the member `name` into `slot`.
///
/// # Errors
/// Fails when the value is invalid, or a duplicate.
pub fn read_member<'de, T: Deserialize<'de>, A: MapAccess<'de>>(
    map: &mut A,
    name: &'static str,
    slot: &mut Option<T>,
) -> Result<(), A::Error> {
    if slot.is_some() {
        return Err(A::Error::duplicate_field(name));
    }
    *slot = Some(map.next_value()?);
    Ok(())
}

/// Reads as [`read_member`] does; `null` means the default.
///
/// # Errors
/// Fails as [`read_member`] does.
pub fn read_nullable_member<'de, T: Deserialize<'de> + Default, A: MapAccess<'de>>(
    map: &mut A,
    name: &'static str,
    slot: &mut Option<T>,
) -> Result<(), A::Error> {
    if slot.is_some() {
        return Err(A::Error::duplicate_field(name));
    }
    *slot = Some(map.next_value::<Option<T>>()?.unwrap_or_default());
    Ok(())
}

/// Skips the value of an unknown member.
///
/// # Errors
/// Fails when the input is invalid.
pub fn skip_member<'de, A: MapAccess<'de>>(map: &mut A) -> Result<(), A::Error> {
    map.next_value::<IgnoredAny>().map(drop)
}

/// Returns the value of a required member.
///
/// # Errors
/// Fails when the member is missing.
#[inline]
pub fn required_member<T, E: serde_core::de::Error>(
    name: &'static str,
    slot: Option<T>,
) -> Result<T, E> {
    slot.ok_or_else(|| E::missing_field(name))
}

/// Implements a struct as an object from a table of its members: field, name, type, presence and
/// leniency. A struct marked `shared`, whose object also holds a union or a map, gets no
/// `Deserialize`. Type parameters start with underscores, because a type may have any other name.
#[doc(hidden)]
#[macro_export]
macro_rules! __acp_members {
    ($name:ident { $(
        $field:ident $member:literal: $ty:ty =
        $presence:ident $(($default:expr))? $(+ $leniency:ident)*
    ),* $(,)? }) => {
        $crate::__acp_members!(@written $name {
            $($field $member: $ty = $presence $(($default))? $(+ $leniency)*),*
        });

        $crate::__acp_deserialize_with!($name, $crate::runtime::read_object);

        const _: () = {
            #[allow(non_camel_case_types, reason = "its variants are named as the fields are")]
            enum __Member { $($field),* }

            impl<'de> $crate::runtime::Object<'de> for $name {
                const NAME: &'static str = stringify!($name);
                const MEMBERS: &'static [&'static str] = &[$($member),*];

                fn member(name: &str) -> usize {
                    match name {
                        $($member => __Member::$field as usize,)*
                        _ => usize::MAX,
                    }
                }

                fn read<__A: $crate::runtime::serde::de::MapAccess<'de>>(
                    mut map: __A,
                ) -> ::core::result::Result<Self, __A::Error> {
                    $(let mut $field: ::core::option::Option<$ty> = ::core::option::Option::None;)*
                    while let ::core::option::Option::Some(member) =
                        $crate::runtime::next_member::<Self, __A>(&mut map)?
                    {
                        match member {
                            $(at if at == __Member::$field as usize => $crate::__acp_members!(
                                @read (&mut map, $member, &mut $field) $($leniency)*
                            ),)*
                            _ => $crate::runtime::skip_member(&mut map)?,
                        }
                    }
                    ::core::result::Result::Ok(Self {
                        $($field: $crate::__acp_members!(
                            @take $presence $member, $field $(, $default)?
                        ),)*
                    })
                }
            }
        };
    };
    ($name:ident shared { $($members:tt)* }) => {
        $crate::__acp_members!(@written $name { $($members)* });
    };
    (@written $name:ident { $(
        $field:ident $member:literal: $ty:ty =
        $presence:ident $(($default:expr))? $(+ $leniency:ident)*
    ),* $(,)? }) => {
        impl $crate::runtime::Described for $name {
            fn descriptor() -> &'static $crate::runtime::TypeDescriptor {
                const FIELDS: &[$crate::runtime::Field] = &[$(
                    $crate::runtime::Field::$presence(
                        $member,
                        <$ty as $crate::runtime::Described>::descriptor,
                    )$(.$leniency())*
                ),*];
                &$crate::runtime::TypeDescriptor::Object(FIELDS)
            }
        }

        impl $crate::runtime::Members for $name {
            #[inline]
            fn write<W: $crate::runtime::MemberWriter>(
                &self,
                out: &mut W,
            ) -> ::core::result::Result<(), W::Error> {
                $($crate::__acp_members!(
                    @write (out, $member, &self.$field) $presence $(($default))? $($leniency)*
                );)*
                let _ = out;
                ::core::result::Result::Ok(())
            }
        }

        impl $crate::runtime::serde::Serialize for $name {
            fn serialize<S: $crate::runtime::serde::Serializer>(
                &self,
                serializer: S,
            ) -> ::core::result::Result<S::Ok, S::Error> {
                $crate::runtime::write_object(self, stringify!($name), serializer)
            }
        }
    };
    (@write ($out:ident, $member:literal, $value:expr)
        $presence:ident flattened $($leniency:ident)*
    ) => {
        $crate::runtime::Members::write($value, $out)?
    };
    (@write $arguments:tt required $($leniency:ident)*) => {
        $crate::__acp_members!(@always $arguments)
    };
    (@write $arguments:tt optional ($default:expr) $($leniency:ident)*) => {
        $crate::__acp_members!(@always $arguments)
    };
    (@write $arguments:tt optional $($leniency:ident)*) => {
        $crate::runtime::write_optional $arguments?
    };
    (@always ($out:ident, $member:literal, $value:expr)) => {
        $crate::runtime::MemberWriter::member($out, $member, $value)?
    };
    (@read $arguments:tt) => { $crate::runtime::read_member $arguments? };
    (@read $arguments:tt or_null $($leniency:ident)*) => {
        $crate::runtime::read_nullable_member $arguments?
    };
    (@read $arguments:tt $other:ident $($leniency:ident)*) => {
        $crate::__acp_members!(@read $arguments $($leniency)*)
    };
    (@take required $member:literal, $slot:ident) => {
        $crate::runtime::required_member($member, $slot)?
    };
    (@take optional $member:literal, $slot:ident) => { $slot.unwrap_or_default() };
    (@take optional $member:literal, $slot:ident, $default:expr) => {
        $slot.unwrap_or_else($default)
    };
}
