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
mod from_run;
mod hints;
mod known;
mod list;
mod pages;
mod read;
mod render;
mod row_pages;
mod table;
mod tally;
#[cfg(test)]
mod tests;
mod verdict;
mod view;
mod words;

pub use self::badge::{badge_for, is_badge};
pub use self::document::{Conformity, Document, Entry, Outcome, SCHEMA, Stale, VERSION};
pub use self::from_run::{Rerun, RunInfo};
pub use self::known::KnownFinding;
pub use self::list::{Listed, list};
pub use self::pages::{AreaPage, area_pages};
pub use self::read::read;
pub use self::row_pages::RowPages;
pub use self::tally::Tally;
pub use self::verdict::MOST_UNDECIDED;
pub use self::view::{failures_text, html_report, junit, markdown_report, text};
pub use crate::suite::Messages;
