//! Clients under test: the suite plays the agent.
//!
//! A client is a command that launches an agent; the suite gives it one of its own.
//! That agent acts a [`Scene`] and writes down everything that is said; when the
//! client has ended, the requirements look at it. Nothing but the agent's standard
//! input and output connects the two, so any client can be tested that can be told
//! which agent to launch.

mod act;
mod between;
mod conduct;
mod handshake;
pub(crate) mod live;
mod look;
mod marks;
#[cfg(all(unix, feature = "remote"))]
pub mod remote;
mod run;
mod scenes;
mod second;
mod services;
mod stage;
mod table;
#[cfg(unix)]
mod within;

pub use self::act::act;
pub use self::between::filter;
pub use self::run::{ClientEnv, Played, Report, play, run};
pub use self::scenes::{SCENES, Scene, scenes};
pub(crate) use self::second::reference;
pub use self::table::{ClientRequirement, all, of, of_remote};
#[cfg(unix)]
pub use self::within::{Interrupt, Launched, Within};
