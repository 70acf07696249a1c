use std::io;
use std::path::Path;

use acp_agent::Agent;
use acp_agent::model::{Model, Recorder, Replay};
use acp_server::Server;

/// Once, with the real model: writes down each request and its whole answer.
pub fn recording(model: impl Model, file: &Path) -> io::Result<Server> {
    Ok(Server::new(Agent::new(Recorder::create(model, file)?)))
}

/// In each test: the same agent, without a network and without cost.
pub fn replaying(file: &Path) -> io::Result<Server> {
    Ok(Server::new(Agent::new(Replay::open(file)?)))
}
