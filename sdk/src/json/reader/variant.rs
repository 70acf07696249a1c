//! Enums in the form of serde_json: the name of the variant, or an object with one member.

use serde_core::Deserialize;
use serde_core::de::{DeserializeSeed, EnumAccess, Unexpected, VariantAccess, Visitor};

use super::{Reader, StrictError};

impl<'de> Reader<'de> {
    pub(super) fn variant<V: Visitor<'de>>(&mut self, visitor: V) -> Result<V::Value, StrictError> {
        match self.next()? {
            b'"' => visitor.visit_enum(NameOnly(self)),
            b'{' => {
                self.enter()?;
                let mut value = visitor.visit_enum(WithContent(self));
                self.leave(b'}', &mut value);
                value
            }
            _ => Err(self.mismatch(&visitor)),
        }
    }
}

/// A variant given by its name alone.
pub(super) struct NameOnly<'r, 'de>(pub(super) &'r mut Reader<'de>);

impl<'de> EnumAccess<'de> for NameOnly<'_, 'de> {
    type Error = StrictError;
    type Variant = Self;

    fn variant_seed<V: DeserializeSeed<'de>>(
        self,
        seed: V,
    ) -> Result<(V::Value, Self), StrictError> {
        let name = seed.deserialize(&mut *self.0)?;
        Ok((name, self))
    }
}

impl<'de> VariantAccess<'de> for NameOnly<'_, 'de> {
    type Error = StrictError;

    fn unit_variant(self) -> Result<(), StrictError> {
        Ok(())
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, _: T) -> Result<T::Value, StrictError> {
        Err(without_content(&"newtype variant"))
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, _: V) -> Result<V::Value, StrictError> {
        Err(without_content(&"tuple variant"))
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        _: &'static [&'static str],
        _: V,
    ) -> Result<V::Value, StrictError> {
        Err(without_content(&"struct variant"))
    }
}

fn without_content(expected: &&str) -> StrictError {
    serde_core::de::Error::invalid_type(Unexpected::UnitVariant, expected)
}

/// A variant given by the only member of an object, after the opening brace.
struct WithContent<'r, 'de>(&'r mut Reader<'de>);

impl<'de> EnumAccess<'de> for WithContent<'_, 'de> {
    type Error = StrictError;
    type Variant = Self;

    fn variant_seed<V: DeserializeSeed<'de>>(
        self,
        seed: V,
    ) -> Result<(V::Value, Self), StrictError> {
        let name = seed.deserialize(&mut *self.0)?;
        self.0.expect(b':')?;
        Ok((name, self))
    }
}

impl<'de> VariantAccess<'de> for WithContent<'_, 'de> {
    type Error = StrictError;

    fn unit_variant(self) -> Result<(), StrictError> {
        Deserialize::deserialize(self.0)
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(
        self,
        seed: T,
    ) -> Result<T::Value, StrictError> {
        seed.deserialize(self.0)
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, StrictError> {
        self.0.seq(visitor)
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, StrictError> {
        self.0.map(visitor)
    }
}
