//! The Agent Client Protocol as data: the JSON Schema document and its method table.

mod document;
mod error;
mod protocol;

pub use self::document::Document;
pub use self::error::Error;
pub use self::protocol::{Kind, Method, Protocol, Side};

/// The document of protocol version 1.
pub const V1: &str = include_str!("../v1.json");
