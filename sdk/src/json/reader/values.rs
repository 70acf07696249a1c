//! Types of the standard library and of this module: how they are described and read.

use super::object::{Object, OpenObject};
use super::{Reader, StrictError};
use crate::json::described::{Described, read};
use crate::json::descriptor::TypeDescriptor;
use crate::json::{Json, Map, Meta, Patch};

/// Checks a scalar.
fn check<T: Described>(text: &str) -> Result<(), serde_json::Error> {
    match read::<T>(text) {
        Ok(_) => Ok(()),
        // The message is that of serde_json.
        Err(_) => serde_json::from_str::<T>(text).map(drop),
    }
}

/// Implements `Described` for types that are checked as a whole.
macro_rules! scalars {
    ($($type:ty => |$reader:ident| $read:expr,)*) => {
        $(impl Described for $type {
            fn descriptor() -> &'static TypeDescriptor {
                &TypeDescriptor::Scalar(check::<$type>)
            }

            fn read($reader: &mut Reader<'_>) -> Result<Self, StrictError> {
                $read
            }
        })*
    };
}

scalars! {
    () => |reader| match reader.null()? {
        true => Ok(()),
        false => Err(StrictError::INVALID),
    },
    bool => |reader| match reader.next()? {
        b't' => reader.word("true").map(|()| true),
        _ => reader.word("false").map(|()| false),
    },
    String => |reader| reader.text().map(Into::into),
    f32 => |reader| reader.float().map(|number| number as f32),
    f64 => |reader| reader.float(),
    i8 => |reader| reader.integer(),
    i16 => |reader| reader.integer(),
    i32 => |reader| reader.integer(),
    i64 => |reader| reader.integer(),
    i128 => |reader| reader.integer(),
    u8 => |reader| reader.integer(),
    u16 => |reader| reader.integer(),
    u32 => |reader| reader.integer(),
    u64 => |reader| reader.integer(),
    u128 => |reader| reader.integer(),
    serde_json::Value => |reader| reader.parse(),
    Meta => |reader| match reader.value()? {
        text if text.starts_with('{') => Ok(Self::from_raw(super::raw(text).to_owned())),
        _ => Err(StrictError::INVALID),
    },
}

impl Described for Json {
    fn descriptor() -> &'static TypeDescriptor {
        &TypeDescriptor::Any
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, StrictError> {
        reader.value().map(|text| super::raw(text).into())
    }
}

impl<T: Described> Described for Box<T> {
    fn descriptor() -> &'static TypeDescriptor {
        T::descriptor()
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, StrictError> {
        T::read(reader).map(Self::new)
    }
}

impl<T: Described> Described for Option<T> {
    fn descriptor() -> &'static TypeDescriptor {
        const { &TypeDescriptor::Nullable(T::descriptor) }
    }

    #[inline]
    fn read(reader: &mut Reader<'_>) -> Result<Self, StrictError> {
        match reader.null()? {
            true => Ok(None),
            false => T::read(reader).map(Some),
        }
    }
}

impl<T: Described> Described for Patch<T> {
    fn descriptor() -> &'static TypeDescriptor {
        const { &TypeDescriptor::Nullable(T::descriptor) }
    }

    #[inline]
    fn read(reader: &mut Reader<'_>) -> Result<Self, StrictError> {
        match reader.null()? {
            true => Ok(Self::Null),
            false => T::read(reader).map(Self::Value),
        }
    }
}

impl<T: Described> Described for Vec<T> {
    fn descriptor() -> &'static TypeDescriptor {
        const { &TypeDescriptor::List(T::descriptor) }
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, StrictError> {
        let (mut items, mut first) = (Self::new(), true);
        if reader.next()? != b'[' {
            return Err(StrictError::INVALID);
        }
        reader.enter()?;
        while reader.more(b']', &mut first)? {
            items.push(T::read(reader)?);
        }
        reader.leave();
        Ok(items)
    }
}

impl<T: Described> Described for Map<T> {
    fn descriptor() -> &'static TypeDescriptor {
        const { &TypeDescriptor::Map(T::descriptor) }
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, StrictError> {
        let object = reader.open()?;
        Self::read_members(reader, object)
    }
}

impl<T: Described> Object for Map<T> {
    fn read_members(
        reader: &mut Reader<'_>,
        mut object: OpenObject<'_>,
    ) -> Result<Self, StrictError> {
        // A search per member would take quadratic time. Duplicates are removed at the end.
        let mut members: Vec<(String, T)> = Vec::new();
        while let Some(name) = reader.visible_name(&mut object)? {
            members.push((name.into(), T::read(reader)?));
        }
        Ok(Self::keep_last(members))
    }
}
