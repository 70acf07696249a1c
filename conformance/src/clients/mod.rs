//! Clients under test: the suite plays the agent.
//!
//! A client is a command that launches an agent; the suite gives it one of its own.
//! That agent acts a [`Scenario`] and records all messages; when the
//! client has ended, the checks inspect the recording. Nothing but the agent's standard
//! input and output connects the two, so any client can be tested that can launch a given
//! agent.

mod act;
mod assertions;
mod between;
mod choices;
mod commands;
mod control_channel;
mod handshake;
mod ids;
mod launch;
mod offers;
mod pages;
mod played;
mod questions;
#[cfg(all(unix, feature = "remote"))]
pub mod remote;
mod requests;
mod robustness;
pub(crate) mod rules;
mod run;
mod scenarios;
mod scripted_agent;
mod services;
mod table;
#[cfg(unix)]
mod terminal;
mod v2;
#[cfg(unix)]
mod within;

pub use self::act::act;
pub use self::between::filter;
pub use self::launch::ClientEnv;
pub use self::offers::Offers;
pub use self::played::Played;
pub use self::run::{Report, play, run};
pub use self::scenarios::{SCENES, Scenario, Start};
pub use self::table::{ClientRequirement, all, of, of_remote, scenarios};
#[cfg(unix)]
pub use self::terminal::on_terminal;
#[cfg(unix)]
pub use self::within::{Interrupt, Launched, Within};
