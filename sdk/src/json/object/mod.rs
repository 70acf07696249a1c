//! Structs as objects. The macro `members!` makes a descriptor, `Deserialize` and `Serialize`
//! from a table with a line per member.
//!
//! It expands to far less code than derives: all structs share one function per kind of member.
//! This keeps compile times low.

mod write;

pub use self::write::{
    Members, Omissible, write_member, write_object, write_optional, write_variant,
};
use super::described::Described;
use super::reader::{Reader, StrictError};

/// Reads the value of a member into `slot`.
///
/// # Errors
/// Fails when the value is invalid, or a duplicate.
pub fn read_member<T: Described>(
    reader: &mut Reader<'_>,
    slot: &mut Option<T>,
) -> Result<(), StrictError> {
    if slot.is_some() {
        return Err(StrictError::INVALID);
    }
    *slot = Some(T::read(reader)?);
    Ok(())
}

/// Reads as [`read_member`] does; `null` means the default.
///
/// # Errors
/// Fails as [`read_member`] does.
pub fn read_nullable_member<T: Described + Default>(
    reader: &mut Reader<'_>,
    slot: &mut Option<T>,
) -> Result<(), StrictError> {
    if slot.is_some() {
        return Err(StrictError::INVALID);
    }
    *slot = Some(Option::<T>::read(reader)?.unwrap_or_default());
    Ok(())
}

/// Skips the value of a member that the type does not read here.
///
/// # Errors
/// Fails when the input is invalid.
pub fn skip_member(reader: &mut Reader<'_>) -> Result<(), StrictError> {
    reader.skip()
}

/// Returns the value of a required member.
///
/// # Errors
/// Fails when the member is missing.
#[inline]
pub fn required_member<T>(slot: Option<T>) -> Result<T, StrictError> {
    slot.ok_or(StrictError::INVALID)
}

/// Implements a struct as an object from a table of its members: field, name, type, presence and
/// leniency. A `flattened` field is a union or a map in the same object. Its members are read
/// again from the start, without those of the other fields.
#[doc(hidden)]
#[macro_export]
macro_rules! __acp_members {
    ($name:ident { $(
        $field:ident $member:literal: $ty:ty =
        $presence:ident $(($default:expr))? $(+ $leniency:ident)*
    ),* $(,)? }) => {
        $crate::__acp_described!(
            $name,
            {
                const FIELDS: &[$crate::runtime::Field] = &[$(
                    $crate::runtime::Field::$presence(
                        $member,
                        <$ty as $crate::runtime::Described>::descriptor,
                    )$(.$leniency())*
                ),*];
                &$crate::runtime::TypeDescriptor::Object(FIELDS)
            },
            object |reader, object| {
                #[allow(non_camel_case_types, reason = "its variants are named as the fields are")]
                enum __Member { $($field),* }

                #[allow(unreachable_patterns, reason = "flattened fields may have equal names")]
                fn member(name: &str) -> usize {
                    match name {
                        $($member => __Member::$field as usize,)*
                        _ => usize::MAX,
                    }
                }

                let mut object = object;
                let start = reader.position(object);
                $(let mut $field: ::core::option::Option<$ty> = ::core::option::Option::None;)*
                while let ::core::option::Option::Some(at) =
                    reader.next_member(&mut object, member)?
                {
                    match at {
                        $(at if at == __Member::$field as usize => $crate::__acp_members!(
                            @read (reader, &mut $field) $($leniency)*
                        ),)*
                        _ => $crate::runtime::skip_member(reader)?,
                    }
                }
                // Of the flattened fields only the tags have names; each hides its own alone.
                let hides = |name: &str| match member(name) {
                    $(at if at == __Member::$field as usize => $crate::__acp_members!(
                        @is_own $($leniency)*
                    ),)*
                    _ => false,
                };
                let _ = (start, hides);
                ::core::result::Result::Ok(Self {
                    $($field: $crate::__acp_members!(
                        @take ($presence $member, $field $(, $default)?)
                        (start, reader, hides) $($leniency)*
                    ),)*
                })
            }
        );

        impl $crate::runtime::Members for $name {
            #[inline]
            fn write<__M: $crate::runtime::serde::ser::SerializeMap>(
                &self,
                out: &mut __M,
            ) -> ::core::result::Result<(), __M::Error> {
                $($crate::__acp_members!(
                    @write (out, $member, &self.$field) $presence $(($default))? $($leniency)*
                );)*
                let _ = out;
                ::core::result::Result::Ok(())
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
        $crate::runtime::write_member($out, $member, $value)?
    };
    (@read $arguments:tt) => { $crate::runtime::read_member $arguments? };
    (@read ($reader:ident, $slot:expr) flattened $($leniency:ident)*) => {
        {
            let _ = $slot;
            $crate::runtime::skip_member($reader)?
        }
    };
    (@read $arguments:tt or_null $($leniency:ident)*) => {
        $crate::runtime::read_nullable_member $arguments?
    };
    (@read $arguments:tt $other:ident $($leniency:ident)*) => {
        $crate::__acp_members!(@read $arguments $($leniency)*)
    };
    (@is_own flattened $($leniency:ident)*) => { false };
    (@is_own $($leniency:ident)*) => { true };
    (@take (required $member:literal, $slot:ident)
        ($start:ident, $reader:ident, $hides:ident) flattened $($leniency:ident)*
    ) => {
        $start.read($reader, $hides)?
    };
    (@take (optional $member:literal, $slot:ident)
        ($start:ident, $reader:ident, $hides:ident) flattened $($leniency:ident)*
    ) => {
        $start.read_optional($reader, $member, $hides)?
    };
    (@take (required $member:literal, $slot:ident) $again:tt $($leniency:ident)*) => {
        $crate::runtime::required_member($slot)?
    };
    (@take (optional $member:literal, $slot:ident) $again:tt $($leniency:ident)*) => {
        $slot.unwrap_or_default()
    };
    (@take (optional $member:literal, $slot:ident, $default:expr) $again:tt
        $($leniency:ident)*
    ) => {
        $slot.unwrap_or_else($default)
    };
}
