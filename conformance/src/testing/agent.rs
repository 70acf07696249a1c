//! A test of an agent.

use std::ffi::OsString;
use std::sync::Arc;
use std::time::Duration;

use super::{Test, names};
use crate::Result;
use crate::harness::{Conditions, Env, Profile, Unresponsive};
use crate::report::{Document, KnownFinding, Rerun, RunInfo};
use crate::requirements::Choice;
use crate::suite::{self, Options};
use crate::target::Target;
use crate::wire::{Schema, Version};
use crate::workdir::Workdir;

/// A test of an agent, to be run by [`assert_conformant`](crate::assert_conformant).
///
/// The checks say what their [`Profile`] has: a sentence to be answered, one that makes
/// a tool call, and so on. An agent that does not understand English needs its own
/// words with [`prompt`](Self::prompt); what no word leads to is inconclusive.
#[derive(Clone, Debug)]
pub struct AgentTest {
    target: Target,
    profile: Profile,
    protocol: Version,
    options: Options,
    known: Vec<KnownFinding>,
    strict: bool,
    timeout: Duration,
    turn_timeout: Duration,
}

impl AgentTest {
    /// An agent in Rust. `make` is called for every connection, of which there are many
    /// at once; what must outlive one, such as stored sessions, it hands to each.
    ///
    /// It may be an agent of any version that `acp_sdk::serve` serves; which one the suite
    /// speaks to it is for [`protocol`](Self::protocol) to say.
    #[cfg(unix)]
    #[must_use]
    pub fn new<V, A>(make: impl Fn() -> A + Send + Sync + 'static) -> Self
    where
        A: acp_sdk::IntoAgent<V> + Send,
        A::Client: Send,
    {
        Self::of(Target::within(make))
    }

    /// Wraps the agent's service by a layer, such as that of an extension. The layer that is
    /// added first is the outermost. No effect on a command.
    #[cfg(unix)]
    #[must_use]
    pub fn layer(mut self, layer: impl acp_sdk::service::Layer) -> Self {
        self.target.layer(Arc::new(layer));
        self
    }

    /// An agent that is a command with its arguments, started anew for every connection.
    ///
    /// ```no_run
    /// # use acp_conformance::{AgentTest, assert_conformant};
    /// assert_conformant(AgentTest::command(["target/debug/my-agent", "--acp"]));
    /// ```
    ///
    /// In a test of the package that the binary belongs to, `env!("CARGO_BIN_EXE_my-agent")`
    /// is its path.
    #[must_use]
    pub fn command<S: Into<OsString>>(words: impl IntoIterator<Item = S>) -> Self {
        let words = words.into_iter().map(Into::into);
        Self::of(Target::command(words.collect()))
    }

    fn of(target: Target) -> Self {
        Self {
            target,
            profile: Profile::unknown_agent(),
            protocol: Version::V1,
            options: Options {
                choice: Choice::default(),
                jobs: 4,
                tries_setup: true,
                adapts_timeout: true,
                adapts_turn_timeout: true,
                takes_words: true,
                ..Options::default()
            },
            known: Vec::new(),
            strict: false,
            timeout: Duration::from_secs(5),
            turn_timeout: Duration::from_secs(60),
        }
    }

    /// The version of the protocol to test; version 1 unless it is said.
    ///
    /// ```no_run
    /// # use acp_conformance::{AgentTest, assert_conformant, wire::Version};
    /// let agent = AgentTest::command(["target/debug/my-agent", "--acp"]);
    /// assert_conformant(agent.protocol(Version::V2));
    /// ```
    #[must_use]
    pub fn protocol(mut self, version: Version) -> Self {
        self.protocol = version;
        self
    }

    /// What is said to the agent, all of it.
    #[must_use]
    pub fn profile(mut self, profile: Profile) -> Self {
        self.profile = profile;
        self.options.takes_words = false;
        self
    }

    /// What is said to the agent for one purpose: `hello` is to be answered with text,
    /// `slow` to run until it is cancelled, `tool` to make a tool call; [`Profile`] has
    /// the other words.
    #[must_use]
    pub fn prompt(mut self, word: impl Into<String>, text: impl Into<String>) -> Self {
        self.profile.set_prompt(word, text);
        self
    }

    /// Authenticates by this method before it opens sessions.
    #[must_use]
    pub fn auth_method(mut self, id: impl Into<String>) -> Self {
        self.profile.auth_method = Some(id.into());
        self
    }

    /// Runs only these requirements, areas or tiers.
    #[must_use]
    pub fn only<S: Into<String>>(mut self, list: impl IntoIterator<Item = S>) -> Self {
        self.options.choice.only.extend(names(list));
        self
    }

    /// Leaves these requirements, areas or tiers out.
    #[must_use]
    pub fn skip<S: Into<String>>(mut self, list: impl IntoIterator<Item = S>) -> Self {
        self.options.choice.skip.extend(names(list));
        self
    }

    /// Accepts a finding: it stays in the report and does not decide.
    #[must_use]
    pub fn known(mut self, id: impl Into<String>, reason: impl Into<String>) -> Self {
        self.known.push(KnownFinding::new(id, reason));
        self
    }

    /// Lets requirements of the tiers `derived` and `should` decide, too.
    #[must_use]
    pub fn strict(mut self) -> Self {
        self.strict = true;
        self
    }

    /// How long an answer may take (default 5 s, or 5 times what the first session took, at most
    /// 30 s).
    #[must_use]
    pub fn timeout(mut self, limit: Duration) -> Self {
        self.timeout = limit;
        self.options.adapts_timeout = false;
        self
    }

    /// How long a prompt turn or the start of a session may take (default 60 s, or 5 times what the
    /// first turn took, at most 600 s).
    #[must_use]
    pub fn turn_timeout(mut self, limit: Duration) -> Self {
        self.turn_timeout = limit;
        self.options.adapts_turn_timeout = false;
        self
    }

    /// How many connections are open at once (default 4).
    #[must_use]
    pub fn jobs(mut self, jobs: usize) -> Self {
        self.options.jobs = jobs;
        self
    }
}

impl Test for AgentTest {
    fn run(self) -> Result<Document> {
        let workdir = Workdir::new()?;
        let env = Arc::new(Env {
            conditions: Conditions {
                allow_privileged: self.profile.allow_privileged,
                cleans_up: true,
                ..Conditions::default()
            },
            target: self.target,
            profile: self.profile,
            schema: Schema::of(self.protocol)?,
            folder: workdir.path().to_owned(),
            timeout: self.timeout,
            turn_timeout: self.turn_timeout,
            quiet: Duration::from_millis(100),
            unresponsive: Unresponsive::default(),
        });
        let report = suite::run(&env, &self.options, |_, _| {})?;
        let setting = RunInfo {
            strict: self.strict,
            choice: &self.options.choice,
            again: Rerun::Test,
        };
        let mut report = Document::of_agent(&report, &setting);
        report.accept(&self.known);
        Ok(report)
    }
}
