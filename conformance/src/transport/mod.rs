//! HTTP and WebSocket as bytes: addresses, sockets, frames and events.
//!
//! The suite shares it with no client or server that it judges. Messages of the protocol are the
//! business of `target`, requests with faults that of `remote`.

mod endpoint;
mod events;
mod frame;
mod tls;

pub use self::endpoint::{Endpoint, EndpointError};
pub(crate) use self::endpoint::{Socket, accepts_websocket};
pub(crate) use self::events::{EventParser, Item};
pub(crate) use self::frame::{Frame, Opcode};
