//! Several reports side by side: their results by area, where they differ, and what
//! of the protocol only some have exercised.
//!
//! The first report is what the last one is compared with, so that two runs of one agent are
//! shown as what became of it: regressions first, then what was fixed.
//!
//! Reports may come from different versions of the suite, or from runs of a part of it.
//! A requirement that is not in a report is `absent` there: it is neither passed nor
//! failed, is no difference by itself, and is listed apart.

mod change;
mod comparison;
mod notes;
mod rows;
#[cfg(test)]
mod tests;
mod view;

pub use self::change::Change;
pub use self::comparison::{
    Absent, AreaRow, Cell, Comparison, Difference, Listed, SCHEMA, Target, UseRow,
};
pub use self::view::{html_comparison, markdown_comparison, text_comparison};
