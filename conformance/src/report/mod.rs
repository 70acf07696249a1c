//! Reports of a run: for people, and for machines.

mod json;
mod text;

pub use self::json::{Document, Listed};
pub use self::text::{list, text};
