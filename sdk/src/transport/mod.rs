//! How bytes become lines, and where they come from.

mod lines;
mod stdio;

pub(crate) use lines::{Line, LineBuffer};
pub(crate) use stdio::stdio;
