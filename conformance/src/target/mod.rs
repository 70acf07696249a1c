//! What is under test: an agent, started and spoken to in raw bytes.
//!
//! A [`Target`] says how an agent is started, a [`Link`] is one that runs. A link
//! yields the lines that the agent writes and takes bytes for it; neither ever
//! waits without a limit. Dropping it ends the agent and all its children: the end of its input,
//! `SIGTERM`, `SIGKILL`, as an editor does, because an agent that is killed leaves locks behind.

mod filter;
mod link;
mod process;
mod running;
mod tail;
#[cfg(all(unix, feature = "remote"))]
mod url;
pub(crate) mod v2;
#[cfg(unix)]
pub(crate) mod within;

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

pub use self::filter::{Filter, Passing, Rewrite, Rewriter, Tap, Until};
pub(crate) use self::link::Unended;
pub use self::link::{Event, Link};
use self::running::Behind;
#[cfg(test)]
pub(crate) use self::running::rewritten;
pub use self::running::{Applied, Traffic};
pub(crate) use self::tail::Tail;
use crate::Result;
#[cfg(all(unix, feature = "remote"))]
pub use crate::transport::{Endpoint, EndpointError};

/// An agent, and how it is started.
#[derive(Clone, Debug)]
pub struct Target {
    start: Start,
    filter: Option<Behind>,
}

/// How long an agent has to end, after the end of its input and again after `SIGTERM`. Half of it once
/// one has not ended in time.
const GRACE: Duration = Duration::from_secs(4);

#[derive(Clone, Debug)]
enum Start {
    Command(process::Launch),
    #[cfg(unix)]
    Within(within::Within),
    #[cfg(all(unix, feature = "remote"))]
    Url(Box<Endpoint>),
}

impl Target {
    /// An agent that is a command with its arguments, in the directory and environment of this
    /// process.
    #[must_use]
    pub fn command(command: Vec<OsString>) -> Self {
        Self {
            start: Start::Command(process::Launch::new(command, GRACE)),
            filter: None,
        }
    }

    /// Sets the directory in which a command is started; others have none.
    #[must_use]
    pub fn current_dir(mut self, folder: impl Into<PathBuf>) -> Self {
        if let Start::Command(launch) = &mut self.start {
            launch.folder = Some(folder.into());
        }
        self
    }

    /// Sets a variable in the environment of a command; others have none.
    #[must_use]
    pub fn env(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        if let Start::Command(launch) = &mut self.start {
            launch.env.push((name.into(), value.into()));
        }
        self
    }

    /// Sets how long a command has to end after the end of its input, and again after `SIGTERM`
    /// (default 4 s each). Then it is killed. Once a process has not ended in time, the next ones have half
    /// of it. With zero it is killed at once.
    #[must_use]
    pub fn grace(mut self, grace: Duration) -> Self {
        if let Start::Command(launch) = &mut self.start {
            launch.grace = grace;
        }
        self
    }

    /// Creates the target for an agent behind a URL. Its connections are not opened again when
    /// they are lost, so that the suite notices.
    #[cfg(all(unix, feature = "remote"))]
    #[must_use]
    pub fn url(endpoint: Endpoint) -> Self {
        Self {
            start: Start::Url(Box::new(endpoint)),
            filter: None,
        }
    }

    /// Returns whether messages travel by another transport than stdio.
    #[must_use]
    pub fn is_remote(&self) -> bool {
        match &self.start {
            #[cfg(all(unix, feature = "remote"))]
            Start::Url(_) => true,
            _ => false,
        }
    }

    /// Returns the agent behind a URL, if it is one.
    #[cfg(all(unix, feature = "remote"))]
    pub(crate) fn remote(&self) -> Option<&Endpoint> {
        match &self.start {
            Start::Url(agent) => Some(agent),
            _ => None,
        }
    }

    /// The reference agent of version 2 within this process, without a child. Its connections share
    /// the stored sessions.
    #[cfg(unix)]
    #[must_use]
    pub fn local_v2() -> Self {
        Self {
            start: Start::Within(within::Within::v2()),
            filter: None,
        }
    }

    /// The reference agent within this process, without a child. Its connections share the stored
    /// sessions, as processes share a disk. For tests: nothing that judges depends on a server.
    #[cfg(all(test, unix))]
    pub(crate) fn local() -> Self {
        let store = std::sync::Arc::new(acp_server::store::MemoryStore::new());
        Self::within(move || {
            let server = acp_reference_agent::Reference::server().store(store.clone());
            server.build().connection(acp_server::Link::Stdio)
        })
    }

    /// An agent within this process; `make` is called for every connection.
    #[cfg(unix)]
    #[must_use]
    pub fn within<V, A>(make: impl Fn() -> A + Send + Sync + 'static) -> Self
    where
        A: acp_sdk::IntoAgent<V> + Send,
        A::Client: Send,
    {
        Self {
            start: Start::Within(within::Within::new(make)),
            filter: None,
        }
    }

    /// Wraps the service of an agent within this process by a layer; a command has none.
    #[cfg(unix)]
    pub(crate) fn layer(&mut self, layer: std::sync::Arc<dyn acp_sdk::service::Layer>) {
        if let Start::Within(within) = &mut self.start {
            within.layer(layer);
        }
    }

    /// The same agent behind a filter that breaks it.
    #[must_use]
    pub fn behind(mut self, filter: impl Into<Rewrite>) -> Self {
        self.filter = Some(Behind::new(filter.into()));
        self
    }

    /// The same agent behind a filter that changes nothing and records what passes.
    #[must_use]
    pub fn recorded(mut self, traffic: &Traffic) -> Self {
        let mut behind = Behind::new(Rewrite::NOTHING);
        behind.traffic = Some(traffic.clone());
        self.filter = Some(behind);
        self
    }

    /// Returns what the filter has done so far, on all connections; `None` without a filter.
    #[must_use]
    pub fn applied(&self) -> Option<std::sync::Arc<Applied>> {
        self.filter.as_ref().map(|behind| behind.applied.clone())
    }

    /// The filter that it is behind tells which requests it leaves unanswered, so that
    /// nobody waits for what it has dropped.
    #[must_use]
    pub fn telling_losses(mut self) -> Self {
        if let Some(behind) = &mut self.filter {
            behind.tells_losses = true;
        }
        self
    }

    /// The command as a shell would take it, or the URL; empty for an agent within this process.
    #[must_use]
    pub fn command_line(&self) -> String {
        match &self.start {
            Start::Command(launch) => launch.command_line(),
            #[cfg(unix)]
            Start::Within(_) => String::new(),
            #[cfg(all(unix, feature = "remote"))]
            Start::Url(endpoint) => endpoint.url().to_owned(),
        }
    }

    /// Returns the directory in which the agent is started; `None` if it is not on this machine.
    pub(crate) fn directory(&self) -> Option<PathBuf> {
        let own = || std::env::current_dir().ok();
        match &self.start {
            Start::Command(launch) => launch.folder.clone().or_else(own),
            #[cfg(unix)]
            Start::Within(_) => own(),
            #[cfg(all(unix, feature = "remote"))]
            Start::Url(_) => None,
        }
    }

    /// Starts it.
    ///
    /// # Errors
    /// When the command cannot be started.
    pub fn start(&self) -> Result<Link> {
        match &self.start {
            Start::Command(launch) => process::start(launch, self.filter.clone()),
            #[cfg(unix)]
            Start::Within(within) => within.start(self.filter.clone()),
            #[cfg(all(unix, feature = "remote"))]
            Start::Url(agent) => url::start(agent, self.filter.clone()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_line_can_be_pasted() {
        let words = ["npx", "an agent", "--it's", ""].map(OsString::from);
        let line = Target::command(words.to_vec()).command_line();
        assert_eq!(line, r"npx 'an agent' '--it'\''s' ''");
    }
}
