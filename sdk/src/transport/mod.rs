//! Transports: byte streams with framing, whole messages, and where both come from.

#[cfg(all(feature = "stdio", unix))]
mod blocking;
mod buffer;
mod channel;
mod content_length;
mod duplex;
mod framing;
mod lines;
mod message;
mod oversized;
#[cfg(feature = "stdio")]
mod peek;
#[cfg(feature = "sockets")]
mod socket;
#[cfg(feature = "stdio")]
mod stdio;
mod stream;
#[cfg(all(feature = "sockets", unix))]
mod unix;

pub use channel::{ChannelTransport, channel};
pub use duplex::duplex;
pub use framing::Framing;
pub(crate) use framing::{Frame, FrameDecoder, with_headers};
pub use message::{MessageTransport, Transport, push_line};
pub(crate) use message::{Reader, TransportKind, Writer};
pub(crate) use oversized::Oversized;
#[cfg(feature = "stdio")]
pub use peek::FirstMessage;
#[cfg(feature = "sockets")]
pub use socket::{Listener, RunningListener, connect_tcp, serve_tcp};
#[cfg(all(feature = "sockets", unix))]
pub use socket::{connect_unix, serve_unix};
#[cfg(feature = "stdio")]
pub(crate) use stdio::{peek_stdio, stdio};
