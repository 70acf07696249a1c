//! What generated code is written against. Placeholder of the connection's part.

pub use crate::json::*;

mod stub;
pub use stub::*;
