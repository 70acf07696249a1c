//! The generated types by the name of their definition.

use acp_sdk::runtime::{DecodeError, Described, Leniency, decode, decode_leniently, encode};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// What became of a value: as it is written again, and what was dropped.
pub(crate) type Outcome = Result<(String, Vec<Leniency>), DecodeError>;

/// A type behind functions, so that the tests are compiled once for all.
pub(crate) struct Type {
    pub(crate) name: &'static str,
    /// In bytes, without what is on the heap.
    pub(crate) size: usize,
    /// Reads as a connection does: strictly, and if that fails with leniency.
    pub(crate) read: fn(&str) -> Outcome,
    /// Reads with leniency from the start, which must make no difference.
    pub(crate) read_lenient: fn(&str) -> Outcome,
    /// Reads and writes as the official type of that name does.
    pub(crate) official: fn(&str) -> Result<String, String>,
    /// The schema that `schemars` gives for it, with what it refers to.
    #[cfg(feature = "schemars")]
    pub(crate) schema: fn() -> serde_json::Value,
}

/// A list of types by their definitions: of a version of the protocol, and the official ones
/// of the same names.
macro_rules! types {
    ($list:ident: $ours:ident, $theirs:ident: $($name:ident)*) => {
        const $list: &[$crate::types::Type] = &[$($crate::types::Type {
            name: stringify!($name),
            size: size_of::<$ours::$name>(),
            read: $crate::types::read::<$ours::$name>,
            read_lenient: $crate::types::read_lenient::<$ours::$name>,
            official: $crate::types::official::<$theirs::$name>,
            #[cfg(feature = "schemars")]
            schema: $crate::schemas::of::<$ours::$name>,
        }),*];
    };
}
pub(crate) use types;

pub(crate) fn read<T: DeserializeOwned + Described + Serialize>(text: &str) -> Outcome {
    let mut dropped = Vec::new();
    let value = decode::<T>(text, &mut |leniency| dropped.push(leniency))?;
    let written = written(&value);
    let mut sent = Vec::new();
    encode(&value, &mut sent).expect("a value has a JSON form");
    assert_eq!(
        String::from_utf8(sent).as_ref(),
        Ok(&written),
        "as a connection writes it"
    );
    Ok((written, dropped))
}

pub(crate) fn read_lenient<T: DeserializeOwned + Described + Serialize>(text: &str) -> Outcome {
    let value = decode_leniently::<T>(text, &mut |_| {})?;
    Ok((written(&value), Vec::new()))
}

pub(crate) fn official<T: DeserializeOwned + Serialize>(text: &str) -> Result<String, String> {
    let value: T = serde_json::from_str(text).map_err(|error| error.to_string())?;
    Ok(written(&value))
}

fn written<T: Serialize>(value: &T) -> String {
    serde_json::to_string(value).expect("a value has a JSON form")
}
