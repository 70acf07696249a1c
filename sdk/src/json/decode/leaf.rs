//! The shapes of what the types are made of: scalars, lists, maps, options.

use serde_core::de::DeserializeOwned;
use serde_json::value::RawValue;

use super::shape::{Shape, Shaped};
use crate::json::{Json, Map, Meta, Patch, reader};

/// Checks a value that serde reads in one piece.
fn check<T: DeserializeOwned>(raw: &RawValue) -> Result<(), serde_json::Error> {
    match reader::read::<T>(raw.get()) {
        Ok(_) => Ok(()),
        // serde_json comes second, for it has words for what is wrong.
        Err(_) => serde_json::from_str::<T>(raw.get()).map(drop),
    }
}

macro_rules! leaves {
    ($inline:ident: $($type:ty),*) => {
        $(impl Shaped for $type {
            #[inline($inline)]
            fn shape() -> &'static Shape {
                &Shape::Leaf(check::<$type>)
            }
        })*
    };
}

// A check is a reader of its own, twice: of the types that the protocol has it is compiled here
// and nowhere else, of the others where they are used.
leaves!(never: (), bool, String, f64, i32, i64, u16, u32, u64, Meta);
leaves!(always: f32, i8, i16, i128, u8, u128, serde_json::Value);

impl Shaped for Json {
    fn shape() -> &'static Shape {
        &Shape::Any
    }
}

impl<T: Shaped> Shaped for Box<T> {
    fn shape() -> &'static Shape {
        T::shape()
    }
}

impl<T: Shaped> Shaped for Option<T> {
    fn shape() -> &'static Shape {
        const { &Shape::Nullable(T::shape) }
    }
}

impl<T: Shaped> Shaped for Patch<T> {
    fn shape() -> &'static Shape {
        const { &Shape::Nullable(T::shape) }
    }
}

impl<T: Shaped> Shaped for Vec<T> {
    fn shape() -> &'static Shape {
        const { &Shape::List(T::shape) }
    }
}

impl<T: Shaped> Shaped for Map<T> {
    fn shape() -> &'static Shape {
        const { &Shape::Map(T::shape) }
    }
}
