//! Descriptors of scalars, lists, maps and options.

use serde_core::de::DeserializeOwned;
use serde_json::value::RawValue;

use super::descriptor::{Described, TypeDescriptor};
use crate::json::{Json, Map, Meta, Patch, reader};

/// Checks a scalar with serde.
fn check<T: DeserializeOwned>(raw: &RawValue) -> Result<(), serde_json::Error> {
    match reader::read::<T>(raw.get()) {
        Ok(_) => Ok(()),
        // The message is that of serde_json.
        Err(_) => serde_json::from_str::<T>(raw.get()).map(drop),
    }
}

macro_rules! leaves {
    ($inline:ident: $($type:ty),*) => {
        $(impl Described for $type {
            #[inline($inline)]
            fn descriptor() -> &'static TypeDescriptor {
                &TypeDescriptor::Scalar(check::<$type>)
            }
        })*
    };
}

// Every check compiles two readers. Those of the protocol's own types are compiled once, here;
// the others where they are used.
leaves!(never: (), bool, String, f64, i32, i64, u16, u32, u64, Meta);
leaves!(always: f32, i8, i16, i128, u8, u128, serde_json::Value);

impl Described for Json {
    fn descriptor() -> &'static TypeDescriptor {
        &TypeDescriptor::Any
    }
}

impl<T: Described> Described for Box<T> {
    fn descriptor() -> &'static TypeDescriptor {
        T::descriptor()
    }
}

impl<T: Described> Described for Option<T> {
    fn descriptor() -> &'static TypeDescriptor {
        const { &TypeDescriptor::Nullable(T::descriptor) }
    }
}

impl<T: Described> Described for Patch<T> {
    fn descriptor() -> &'static TypeDescriptor {
        const { &TypeDescriptor::Nullable(T::descriptor) }
    }
}

impl<T: Described> Described for Vec<T> {
    fn descriptor() -> &'static TypeDescriptor {
        const { &TypeDescriptor::List(T::descriptor) }
    }
}

impl<T: Described> Described for Map<T> {
    fn descriptor() -> &'static TypeDescriptor {
        const { &TypeDescriptor::Map(T::descriptor) }
    }
}
