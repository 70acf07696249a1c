//! The walk by itself, along shapes made for it: what it writes, reports and refuses.

mod lists;
mod members;
mod unions;

use super::shape::{Of, Part, Shape, Shaped};
use super::walk::Walk;
use super::{DecodeError, Leniency};

/// Walks through `text`, which must be accepted: what was written, and of each report the path
/// and the reason.
fn repaired(text: &str, shape: &Shape) -> (String, Vec<String>) {
    let repaired = Walk::repair(text, shape).unwrap_or_else(|error| panic!("{error} in {text}"));
    let written = repaired.text.clone();
    let mut reports = Vec::new();
    repaired.report(&mut |Leniency { path, reason }| reports.push(format!("{path}: {reason}")));
    (written, reports)
}

/// Walks through `text`, of which nothing may be dropped: what was written.
fn whole(text: &str, shape: &Shape) -> String {
    let (written, reports) = repaired(text, shape);
    assert!(reports.is_empty(), "dropped {reports:?} of {text}");
    written
}

/// Walks through `text`, which must be refused: the path and what is wrong there.
fn refused(text: &str, shape: &Shape) -> String {
    match Walk::repair(text, shape) {
        Ok(repaired) => panic!("{text} became {}", repaired.text),
        Err(DecodeError { path, message }) => format!("{path}: {message}"),
    }
}

const TEXT: Of = String::shape;
const NUMBER: Of = u8::shape;
const NUMBERS: Of = Vec::<u8>::shape;

/// An object with a text that must be there and a number that may be dropped.
fn entry() -> &'static Shape {
    const PARTS: &[Part] = &[
        Part::required("name", TEXT),
        Part::optional("count", NUMBER).or_default(),
    ];
    &Shape::Object(PARTS)
}
