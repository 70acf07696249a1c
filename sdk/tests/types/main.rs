//! What generated types promise: nothing lost, leniency reported, exact paths.

mod facts;
mod formats;
mod forward;
mod hand_written;
mod leniency;
mod paths;
mod presence;
mod roundtrip;
// The proposals make some types larger.
#[cfg(not(feature = "unstable"))]
mod sizes;
mod surface;
#[cfg(feature = "unstable")]
mod unstable;
#[cfg(feature = "v2")]
mod v2;

use acp_sdk::runtime::{self, DecodeError, Described};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// Reads `text` and gives the value with the paths of what was dropped.
fn read<T: DeserializeOwned + Described>(text: &str) -> (T, Vec<String>) {
    let mut dropped = Vec::new();
    let value = runtime::decode(text, &mut |leniency| dropped.push(leniency.path));
    (
        value.unwrap_or_else(|error| panic!("{error} in {text}")),
        dropped,
    )
}

/// Reads `text`, which must be valid: nothing may be dropped.
fn valid<T: DeserializeOwned + Described>(text: &str) -> T {
    let (value, dropped) = read(text);
    assert!(dropped.is_empty(), "dropped {dropped:?} of {text}");
    value
}

/// The error of reading `text`.
fn error<T: DeserializeOwned + Described + std::fmt::Debug>(text: &str) -> DecodeError {
    runtime::decode::<T>(text, &mut |_| {}).expect_err("the text should be refused")
}

/// Reads and writes `text`, and compares the two as values and, for the order of
/// members, as text without spaces.
fn same<T: DeserializeOwned + Described + Serialize>(text: &str) {
    let value: T = valid(text);
    assert_eq!(tree(&json(&value)), tree(text));
}

fn json<T: Serialize>(value: &T) -> String {
    serde_json::to_string(value).expect("the value has a JSON form")
}

fn tree(text: &str) -> Value {
    serde_json::from_str(text).expect("the text is JSON")
}
