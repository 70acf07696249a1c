//! Reports of a run: for people, and for machines.
//!
//! A run against an agent or a client becomes a [`Document`]; every format is made from
//! it, and it can be read back. What stands in it may come from anybody, so every format
//! escapes it.

pub mod compare;
mod document;
mod escape;
mod html;
mod junit;
mod list;
mod markdown;
mod page;
mod read;
mod tally;
#[cfg(test)]
mod tests;
mod text;

pub use self::document::{Again, Document, Entry, Messages, SCHEMA, Setting, VERSION, Word};
pub use self::html::html_report;
pub use self::junit::junit;
pub use self::list::{Listed, list};
pub use self::markdown::markdown_report;
pub use self::read::read;
pub use self::tally::Tally;
pub use self::text::text;
