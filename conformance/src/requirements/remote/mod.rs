//! The remote transport: HTTP with server-sent events, and WebSocket.
//!
//! These rows are run at a URL alone. They speak to the server in bytes of their own, beside the
//! connections of all other rows. What the proposal of the transport demands with MUST is of the
//! tier `must`; its other sentences, and those of the standards that it builds on, are `should`;
//! what it leaves open is `info`.

mod access;
mod ending;
mod frames;
mod limits;
mod posts;
mod resume;
mod streams;
mod websocket;

use super::{Area, Requirement, area};

/// The area.
pub(crate) const AREA: Area = area("remote", &ROWS);

const TABLES: &[&[Requirement]] = &[
    posts::ROWS,
    streams::ROWS,
    resume::ROWS,
    ending::ROWS,
    access::ROWS,
    limits::ROWS,
    websocket::ROWS,
    frames::ROWS,
];

const ROWS: [Requirement; count(TABLES)] = joined(TABLES);

const fn count(tables: &[&[Requirement]]) -> usize {
    let (mut table, mut rows) = (0, 0);
    while table < tables.len() {
        rows += tables[table].len();
        table += 1;
    }
    rows
}

const fn joined<const N: usize>(tables: &[&[Requirement]]) -> [Requirement; N] {
    let mut rows = [tables[0][0]; N];
    let (mut table, mut row, mut all) = (0, 0, 0);
    while table < tables.len() {
        while row < tables[table].len() {
            rows[all] = tables[table][row];
            row += 1;
            all += 1;
        }
        row = 0;
        table += 1;
    }
    rows
}
