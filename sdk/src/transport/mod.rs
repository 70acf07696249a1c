//! How bytes become messages, and where they come from.

#[cfg(unix)]
mod blocking;
mod buffer;
mod content_length;
mod duplex;
mod framing;
mod lines;
mod socket;
mod stdio;
#[cfg(unix)]
mod unix;

pub use duplex::duplex;
pub use framing::Framing;
pub(crate) use framing::{Frame, Frames, with_headers};
pub use socket::{Listener, connect_tcp, serve_tcp};
#[cfg(unix)]
pub use socket::{connect_unix, serve_unix};
pub(crate) use stdio::stdio;
