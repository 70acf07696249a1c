//! Transcodes values from one serde format to another.
//!
//! It turns JSON text into other formats, and other formats or serde's buffers into JSON text.

use std::cell::Cell;
use std::fmt;

use serde_core::de::{DeserializeSeed, Error as _, MapAccess, SeqAccess, Visitor};
use serde_core::ser::{Error as _, SerializeMap, SerializeSeq};
use serde_core::{Deserializer, Serialize, Serializer, de};

/// The deepest nesting, as in the strict reader.
const MAX_DEPTH: u8 = 128;

/// Writes the value of `from` to `to`.
///
/// # Errors
/// Fails when the input is invalid or nests too deeply, or the output cannot express it.
pub(super) fn transcode<'de, D: Deserializer<'de>, S: Serializer>(
    from: D,
    to: S,
) -> Result<S::Ok, S::Error> {
    Source::new(from, 0).serialize(to)
}

/// A visitor that writes what it visits to a serializer.
pub(super) struct Transcoder<S> {
    to: S,
    depth: u8,
}

impl<S> Transcoder<S> {
    pub(super) fn new(to: S) -> Self {
        Self { to, depth: 0 }
    }

    fn deeper<E: de::Error>(&self) -> Result<u8, E> {
        match self.depth {
            MAX_DEPTH => Err(E::custom("nested too deeply")),
            depth => Ok(depth + 1),
        }
    }
}

/// Visitor methods for scalars.
macro_rules! pieces {
    ($($visit:ident($type:ty) => $serialize:ident,)*) => {
        $(fn $visit<E: de::Error>(self, value: $type) -> Result<S::Ok, E> {
            self.to.$serialize(value).map_err(E::custom)
        })*
    };
}

impl<'de, S: Serializer> Visitor<'de> for Transcoder<S> {
    type Value = S::Ok;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value that JSON can express")
    }

    pieces! {
        visit_bool(bool) => serialize_bool,
        visit_i64(i64) => serialize_i64,
        visit_i128(i128) => serialize_i128,
        visit_u64(u64) => serialize_u64,
        visit_u128(u128) => serialize_u128,
        visit_f64(f64) => serialize_f64,
        visit_char(char) => serialize_char,
        visit_str(&str) => serialize_str,
        visit_bytes(&[u8]) => serialize_bytes,
    }

    fn visit_none<E: de::Error>(self) -> Result<S::Ok, E> {
        self.visit_unit()
    }

    fn visit_unit<E: de::Error>(self) -> Result<S::Ok, E> {
        self.to.serialize_unit().map_err(E::custom)
    }

    fn visit_some<D: Deserializer<'de>>(self, from: D) -> Result<S::Ok, D::Error> {
        from.deserialize_any(self)
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, from: D) -> Result<S::Ok, D::Error> {
        from.deserialize_any(self)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<S::Ok, A::Error> {
        let depth = self.deeper()?;
        let list = self.to.serialize_seq(seq.size_hint());
        let mut list = list.map_err(A::Error::custom)?;
        while let Some(()) = seq.next_element_seed(Item(&mut list, depth))? {}
        list.end().map_err(A::Error::custom)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<S::Ok, A::Error> {
        self.object(None, map)
    }
}

impl<S: Serializer> Transcoder<S> {
    /// Writes an object whose first name may already have been read.
    pub(super) fn object<'de, A: MapAccess<'de>>(
        self,
        first: Option<&str>,
        mut map: A,
    ) -> Result<S::Ok, A::Error> {
        let depth = self.deeper()?;
        let count = map
            .size_hint()
            .map(|rest| rest + usize::from(first.is_some()));
        let mut object = self.to.serialize_map(count).map_err(A::Error::custom)?;
        if let Some(name) = first {
            object.serialize_key(name).map_err(A::Error::custom)?;
            map.next_value_seed(Value(&mut object, depth))?;
        }
        while let Some(()) = map.next_key_seed(Key(&mut object, depth))? {
            map.next_value_seed(Value(&mut object, depth))?;
        }
        object.end().map_err(A::Error::custom)
    }
}

/// Seeds that write an item, a key or a value while reading it.
macro_rules! parts {
    ($($name:ident: $output:ident $write:ident,)*) => {
        $(struct $name<'a, S>(&'a mut S, u8);

        impl<'de, S: $output> DeserializeSeed<'de> for $name<'_, S> {
            type Value = ();

            fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
                let part = Source::new(from, self.1);
                self.0.$write(&part).map_err(D::Error::custom)
            }
        })*
    };
}

parts! {
    Item: SerializeSeq serialize_element,
    Key: SerializeMap serialize_key,
    Value: SerializeMap serialize_value,
}

/// A value that is read while it is written.
struct Source<D> {
    from: Cell<Option<D>>,
    depth: u8,
}

impl<D> Source<D> {
    fn new(from: D, depth: u8) -> Self {
        Self {
            from: Cell::new(Some(from)),
            depth,
        }
    }
}

impl<'de, D: Deserializer<'de>> Serialize for Source<D> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let Some(from) = self.from.take() else {
            return Err(S::Error::custom("a value can be transcoded only once"));
        };
        let depth = self.depth;
        from.deserialize_any(Transcoder { to, depth })
            .map_err(S::Error::custom)
    }
}
