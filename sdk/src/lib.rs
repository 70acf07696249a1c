//! Typed Rust for the Agent Client Protocol.

extern crate self as acp_sdk;

mod json;
pub mod runtime;

/// Protocol version 1: types, traits and typed callers, generated from its schema.
pub mod v1 {
    include!(concat!(env!("OUT_DIR"), "/v1.rs"));
}
