//! Tests of the lenient pass with descriptors of their own.

mod lists;
mod members;
mod unions;

use super::lenient::LenientReader;
use super::{DecodeError, Leniency};
use crate::json::Described;
use crate::json::descriptor::{DescriptorFn, Field, TypeDescriptor};

/// Repairs `text`, which must be accepted. Returns the output, and of each report the path
/// and the reason.
fn repaired(text: &str, descriptor: &TypeDescriptor) -> (String, Vec<String>) {
    let repaired =
        LenientReader::repair(text, descriptor).unwrap_or_else(|error| panic!("{error} in {text}"));
    let written = repaired.text.clone();
    let mut reports = Vec::new();
    repaired.report(&mut |Leniency { path, reason }| reports.push(format!("{path}: {reason}")));
    (written, reports)
}

/// Repairs `text`, of which nothing may be dropped. Returns the output.
fn whole(text: &str, descriptor: &TypeDescriptor) -> String {
    let (written, reports) = repaired(text, descriptor);
    assert!(reports.is_empty(), "dropped {reports:?} of {text}");
    written
}

/// Returns the path and message of the error for `text`.
fn refused(text: &str, descriptor: &TypeDescriptor) -> String {
    match LenientReader::repair(text, descriptor) {
        Ok(repaired) => panic!("{text} became {}", repaired.text),
        Err(DecodeError { path, message }) => format!("{path}: {message}"),
    }
}

const TEXT: DescriptorFn = String::descriptor;
const NUMBER: DescriptorFn = u8::descriptor;
const NUMBERS: DescriptorFn = Vec::<u8>::descriptor;

/// An object with a text that must be there and a number that may be dropped.
fn entry() -> &'static TypeDescriptor {
    const FIELDS: &[Field] = &[
        Field::required("name", TEXT),
        Field::optional("count", NUMBER).or_default(),
    ];
    &TypeDescriptor::Object(FIELDS)
}
