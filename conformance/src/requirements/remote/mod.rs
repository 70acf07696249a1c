//! The remote transport: HTTP with server-sent events, and WebSocket.
//!
//! These rows are run at a URL alone. They speak to the server in bytes of their own, beside the
//! connections of all other rows. What the proposal of the transport demands with MUST is of the
//! tier `must`; its other sentences, and those of the standards that it builds on, are `derived`;
//! what it leaves open is `info`.

mod access;
mod ending;
mod frames;
mod limits;
mod posts;
mod resume;
mod streams;
mod websocket;

use super::NamedCheck;

/// The checks of all files.
pub(super) const CHECKS: &[&[NamedCheck]] = &[
    posts::CHECKS,
    streams::CHECKS,
    resume::CHECKS,
    ending::CHECKS,
    access::CHECKS,
    limits::CHECKS,
    websocket::CHECKS,
    frames::CHECKS,
];
