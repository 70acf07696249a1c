//! Checks as data: the steps of a row, which need no Rust.
//!
//! [`verbs`] has their language; [`file`] reads them, [`run`] and [`turns`] perform them, and [`words`] says
//! what they do.

mod file;
mod run;
mod turns;
mod verbs;
mod words;

use serde_json::Value;

use self::verbs::Step;

/// The steps of a row.
#[derive(Debug)]
pub struct Steps {
    /// As they stand in the file.
    written: &'static [Value],
    steps: Vec<Step>,
}

impl Steps {
    /// Returns each step as it stands in the file.
    pub fn lines(&self) -> impl Iterator<Item = String> {
        self.written.iter().map(words::inline)
    }
}
