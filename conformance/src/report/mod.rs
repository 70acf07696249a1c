//! Reports of a run: for people, and for machines.
//!
//! A run against an agent or a client becomes a [`Document`]; every format is made from
//! it, and it can be read back. What stands in it may come from anybody, so every format
//! escapes it.

mod badge;
pub mod compare;
mod date;
mod document;
mod escape;
mod filters;
mod hints;
mod html;
mod junit;
mod known;
mod list;
mod markdown;
mod page;
mod pages;
mod read;
mod tally;
#[cfg(test)]
mod tests;
mod text;

pub use self::badge::{badge_for, is_badge};
use self::document::CANCEL_TIMES;
pub use self::document::{
    Conformity, Document, Entry, MOST_UNDECIDED, Messages, Outcome, Rerun, RunInfo, SCHEMA, VERSION,
};
pub use self::html::html_report;
pub use self::junit::junit;
pub use self::known::{KnownFinding, Stale};
pub use self::list::{Listed, list};
pub use self::markdown::markdown_report;
pub use self::pages::{AreaPage, area_pages};
pub use self::read::read;
pub use self::tally::Tally;
pub use self::text::{failures_text, text};
