//! JSON as the protocol's types read and write it.
//!
//! [`from_str`] reads what arrives on the wire, with the leniency that the protocol's schema
//! declares; reading a type with serde directly is strict. [`encode`] writes.
//!
//! [`Json`] and [`Meta`] hold JSON of free content as text, so that numbers of any size, the
//! order of members and nesting of any depth survive. Every type is read from JSON text. Where
//! serde buffers a value (`flatten`, `untagged`, internally tagged enums), and in formats other
//! than JSON, it is first made a [`serde_json::Value`]: numbers beyond 64 bits lose precision, the
//! order of members can change, and a second flattened field also gets the members of the first.
//!
//! A type written by hand travels in messages when it implements serde's traits and
//! [`Described`]:
//!
//! ```
//! use acp_sdk::json::{Described, TypeDescriptor};
//!
//! #[derive(serde::Deserialize, serde::Serialize)]
//! enum Command {
//!     Stop,
//!     Say(String),
//! }
//!
//! impl Described for Command {
//!     fn descriptor() -> &'static TypeDescriptor {
//!         &TypeDescriptor::Any
//!     }
//! }
//!
//! let command: Command = acp_sdk::json::from_str(r#"{"Say":"hello"}"#)?;
//! # assert!(matches!(command, Command::Say(text) if text == "hello"));
//! # Ok::<(), acp_sdk::json::DecodeError>(())
//! ```

// Two passes decode a text. The strict pass reads it by `reader`. Only when it fails does `decode`
// run the lenient pass: it goes through the text by the type's descriptor, applies and reports
// leniency, and finds the JSON Pointer of what it cannot accept. What it writes, the strict pass
// reads.

mod decode;
mod described;
mod descriptor;
mod errors;
mod extension;
mod integer;
mod joinable;
mod length;
mod macros;
mod map;
mod meta;
mod object;
mod patch;
mod reader;
mod scan;
#[cfg(feature = "schemars")]
mod schemas;
mod setter;
mod string_types;
mod tagged;
mod value;
mod writer;

#[cfg(test)]
mod tests;

pub use self::decode::{DecodeError, Leniency, from_str, from_str_reporting};
// Called by the connection, benchmarks and tests.
pub(crate) use self::decode::decode_or;
#[doc(hidden)]
pub use self::decode::{decode, decode_leniently, decode_result};
pub use self::described::Described;
pub(crate) use self::descriptor::DescribedMember;
pub use self::descriptor::TypeDescriptor;
pub use self::joinable::{CoalescingRule, JoinableText};
pub use self::length::encoded_len;
pub use self::map::Map;
pub use self::meta::Meta;
pub use self::patch::Patch;
pub use self::reader::TextPattern;
pub(crate) use self::reader::{StrictError, read_members, read_text};
pub use self::setter::{IntoOption, OfOption, OfValue};
pub use self::tagged::UnknownVariant;
pub use self::value::Json;
pub(crate) use self::writer::{Encode, encode_raw};
#[doc(hidden)]
pub use self::writer::{EncodeError, encode};
pub use serde_json::value::RawValue;

/// What generated code calls. It may change with any release.
#[doc(hidden)]
pub mod codegen {
    pub use serde_core as serde;

    pub use super::decode::{deserialize, read_raw};
    pub use super::descriptor::{DescriptorFn, Field, JsonKind, TaggedVariants};
    pub use super::extension::{payload_of, variant_of};
    pub use super::object::{
        Members, Omissible, read_member, read_nullable_member, required_member, skip_member,
        write_member, write_object, write_optional, write_variant,
    };
    pub use super::reader::{
        Object, OpenObject, Position, Reader, StrictError, read_object_union, read_value_union,
    };
    #[cfg(feature = "schemars")]
    pub use super::schemas::{References, Schemas, schemars};
    pub use super::tagged::{TaggedUnion, VariantReader, read_tagged_union};
    pub use super::value::json_literal;
    pub use crate::__acp_json_schemas as json_schemas;
    pub use crate::{
        __acp_described as described, __acp_integer as integer, __acp_members as members,
        __acp_object_union as object_union, __acp_string_enum as string_enum,
        __acp_string_id as string_id, __acp_tagged_union as tagged_union,
        __acp_value_union as value_union, __acp_wrapper as wrapper,
    };
}

/// Replaces the macro of the feature `schemars` by an error that names the feature.
#[cfg(not(feature = "schemars"))]
#[doc(hidden)]
#[macro_export]
macro_rules! __acp_json_schemas {
    ($($tokens:tt)*) => {
        compile_error!("`json_schemas` needs the feature `schemars` of acp-sdk");
    };
}
