//! How bytes become messages, and where they come from.

mod buffer;
mod content_length;
mod framing;
mod lines;
mod stdio;

pub use framing::Framing;
pub(crate) use framing::{Frame, Frames, with_headers};
pub(crate) use stdio::stdio;
