//! The client that the suite plays towards the remote transport: every request, header and frame is
//! the check's own.
//!
//! A [`Server`] is what is behind the URL, a [`Connection`] one that `initialize` has opened over
//! HTTP, a [`WebSocket`] one over WebSocket. Every request travels on a socket of its own, over
//! HTTP/1.1, so that no check disturbs another. Nothing is waited for without a limit.

mod arrivals;
mod connection;
mod http;
mod server;
mod websocket;

pub(crate) use self::connection::{Connection, is_answer, unknown_notification};
pub(crate) use self::http::{Events, Reply, Response, initialize, unanswered};
pub(crate) use self::server::{Server, over_http, over_websocket};
pub(crate) use self::websocket::{WebSocket, refused_upgrade};
pub(crate) use crate::transport::{Frame, Item, Opcode};
