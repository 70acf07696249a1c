//! Agents of version 1 with one defect each.

mod messages;
mod sessions;
mod tools;
mod turns;

use crate::connection::Fault;

pub(crate) static AGENTS: [&[Fault]; 4] = [
    messages::MESSAGES,
    sessions::SESSIONS,
    turns::TURNS,
    tools::TOOLS,
];
