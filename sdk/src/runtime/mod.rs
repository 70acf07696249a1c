//! What generated code is written against. Placeholder of the connection's part.

pub use ::serde;
pub use ::serde_json::value::RawValue;

pub use crate::json::{
    Branch, Decode, DecodeError, Form, FromJson, FromObject, Json, Leniency, Map, Meta, Object,
    Patch, Tagged, UnknownVariant, decode, default_on_null, first_of, json, object, tagged,
    tagged_object, text, value_of,
};
pub use crate::{
    __acp_deserialize_with as deserialize_with, __acp_integer as integer,
    __acp_object_union as object_union, __acp_string_enum as string_enum,
    __acp_string_id as string_id, __acp_tagged_union as tagged_union, __acp_value as value,
    __acp_value_union as value_union,
};

mod stub;
pub use stub::*;
