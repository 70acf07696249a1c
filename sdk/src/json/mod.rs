//! JSON as generated types see it: lossless values, decoding with exact error
//! paths, and the small impls that every generated type shares.
//!
//! Decoding has two passes. The strict one is serde, which streams from `reader`. Only
//! when it fails does [`decode()`] run the second one: a walk through the raw text along the
//! [`Shape`] of the type, which applies the leniency that the schema declares, reports each
//! use of it, and knows the JSON Pointer of what it cannot accept. What it lets through is a
//! text that the strict pass takes.
//!
//! Generated code reaches all of this as `acp_sdk::runtime`.

mod decode;
mod integer;
mod map;
mod meta;
mod object;
mod patch;
mod raw_value;
mod reader;
mod scan;
#[cfg(feature = "schemars")]
mod schemas;
mod tagged;
mod text;
mod transcode;
mod value;
mod writer;

#[cfg(test)]
mod tests;

pub use serde_core as serde;
pub use serde_json::value::RawValue;

pub(crate) use self::decode::Name;
pub use self::decode::{
    DecodeError, Form, Kept, Leniency, Of, Part, Shape, Shaped, Variants, decode, decode_leniently,
    decode_result, first_object_of, first_value_of, object, read_raw,
};
pub use self::map::Map;
pub use self::meta::Meta;
pub use self::object::{
    MemberWriter, Members, Object, Omissible, next_member, read_member, read_nullable_member,
    read_object, required_member, skip_member, write_object, write_optional,
};
pub use self::patch::Patch;
#[cfg(feature = "schemars")]
pub use self::schemas::{References, Schemas, schemars};
pub use self::tagged::{
    Branch, Tagged, UnknownVariant, VariantWriter, tagged, write_tagged, write_tagged_members,
};
pub use self::text::text;
pub use self::value::Json;
pub(crate) use self::writer::{Encode, encode_raw};
pub use self::writer::{EncodeError, encode};
pub use crate::__acp_json_schemas as json_schemas;
pub use crate::{
    __acp_deserialize_with as deserialize_with, __acp_integer as integer, __acp_members as members,
    __acp_object_union as object_union, __acp_shape_of as shape_of,
    __acp_string_enum as string_enum, __acp_string_id as string_id,
    __acp_tagged_union as tagged_union, __acp_value_union as value_union, __acp_wrapper as wrapper,
};

/// In place of the macro of that name, so that the error says what is missing.
#[cfg(not(feature = "schemars"))]
#[doc(hidden)]
#[macro_export]
macro_rules! __acp_json_schemas {
    ($($tokens:tt)*) => {
        compile_error!("`json_schemas` needs the feature `schemars` of acp-sdk");
    };
}
