//! Conversions of updates, requests and responses.

mod questions;
mod requests;
mod updates;

use acp_sdk::convert::{Convert, convert_logged};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// Deserializes a message of an agent of version 2.
fn read<T: DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).unwrap()
}

fn written<T: Serialize>(value: &T) -> Value {
    serde_json::to_value(value).unwrap()
}

/// Converts a message that has a form in the other version.
fn converted<A: Convert<B>, B>(value: A) -> B {
    convert_logged(value).unwrap()
}
