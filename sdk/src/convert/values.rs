//! Conversions of values that are no objects and no unions.

use super::{Convert, Losses};
use crate::json::Map;
use crate::{ErrorCode, Json, Meta, RequestId, RpcError};

/// Implements the conversion of types that both versions have.
macro_rules! same {
    ($($ty:ty),*) => {$(
        impl Convert<$ty> for $ty {
            fn convert(self, _: &mut Losses) -> Option<$ty> {
                Some(self)
            }
        }
    )*};
}

same!(
    String, bool, f64, i32, i64, u16, u32, u64, Json, Meta, RequestId, ErrorCode, RpcError
);

/// Implements the conversion of one type of integers to another.
macro_rules! number {
    ($($from:ty => $to:ty),*) => {$(
        impl Convert<$to> for $from {
            fn convert(self, losses: &mut Losses) -> Option<$to> {
                let number = self.try_into().ok();
                number.or_else(|| losses.none("beyond the numbers of the other version"))
            }
        }
    )*};
}

number!(i64 => u64, u64 => i64, i64 => u32, u32 => i64);

impl<A: Convert<B>, B> Convert<Vec<B>> for Vec<A> {
    fn convert(self, losses: &mut Losses) -> Option<Vec<B>> {
        let mut list = Vec::with_capacity(self.len());
        for (index, item) in self.into_iter().enumerate() {
            losses.within_item(index, |losses| item.convert_into(&mut list, losses));
        }
        Some(list)
    }
}

impl<A: Convert<B>, B> Convert<Map<B>> for Map<A> {
    fn convert(self, losses: &mut Losses) -> Option<Map<B>> {
        let mut members = Vec::with_capacity(self.len());
        for (name, value) in self {
            let token = name.replace('~', "~0").replace('/', "~1");
            let value = losses.within(&token, |losses| value.convert(losses));
            members.extend(value.map(|value| (name, value)));
        }
        Some(Map::from_distinct(members))
    }
}
