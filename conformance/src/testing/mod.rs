//! The suite for `cargo test`: one call in a test of an agent or a client in Rust.
//!
//! What is tested needs no binary: an [`AgentTest`] takes a function that makes an
//! `impl Agent`, a [`ClientTest`] one that drives an agent. Commands in any language
//! are tested as well.
//!
//! ```
//! use acp_conformance::{AgentTest, assert_conformant};
//! use acp_server::{Handler, HandlerResult, Link, Server, Turn};
//! use acp_sdk::v1::StopReason;
//!
//! struct Echo;
//!
//! impl Handler for Echo {
//!     type State = ();
//!
//!     async fn prompt(&self, _: &mut (), turn: Turn) -> HandlerResult<StopReason> {
//!         turn.send_text(turn.prompt_text()).await?;
//!         Ok(StopReason::EndTurn)
//!     }
//! }
//!
//! // In a `#[test]`; the whole suite without `only`.
//! let agent = || Server::new(Echo).connection(Link::Stdio);
//! assert_conformant(AgentTest::new(agent).only(["initialization"]));
//! ```
//!
//! With the feature `v2`, an agent may also be an `acp_sdk::v2::Agent`, or an `acp_sdk::MultiVersion`, and
//! a client may use `acp_sdk::v2`; [`AgentTest::protocol`] and [`ClientTest::protocol`] say
//! which version is tested.

mod agent;
mod client;
#[cfg(test)]
mod tests;

use std::io::Write as _;

pub use self::agent::AgentTest;
pub use self::client::ClientTest;
use crate::Result;
use crate::report::{self, Conformity, Document, Outcome, Tally};

/// What can be held against the protocol: an [`AgentTest`] or a [`ClientTest`].
pub trait Test {
    /// Runs the suite.
    ///
    /// # Errors
    /// When the suite cannot do its work: what is tested does not start, or nothing has
    /// the name of what was to be run.
    fn run(self) -> Result<Document>;
}

/// Runs the suite, and panics with the failures when what is tested breaks a requirement that decides,
/// when a step that the others depend on is impossible, or when nothing at all was found to be obeyed.
///
/// A requirement that was inconclusive is no failure: when it passes, one line on standard error says
/// how much was not exercised. [`Test::run`] yields the report to look at.
///
/// # Panics
/// When the test fails, or the suite cannot do its work.
#[track_caller]
pub fn assert_conformant(test: impl Test) {
    let report = match test.run() {
        Ok(report) => report,
        Err(error) => panic!("the suite could not do its work: {error}"),
    };
    let is_blocked = report.root_cause.is_some();
    if report.verdict == Conformity::NotConformant || is_blocked {
        panic!("{}", shown(report::failures_text(&report)));
    }
    if report.with(Outcome::Pass).next().is_none() {
        panic!("nothing was decided\n{}", shown(report::text(&report)));
    }
    if let Some(line) = not_exercised(&report) {
        // Nobody may read it.
        let _ = writeln!(std::io::stderr(), "acp-conformance: {line}");
    }
}

/// The text of a report, or why there is none.
fn shown(text: Result<String>) -> String {
    text.unwrap_or_else(|error| error.to_string())
}

/// Says how much of the table a run that passed has not exercised; `None` if all was.
fn not_exercised(report: &Document) -> Option<String> {
    let all = Tally::of(&report.requirements);
    let missing = all.inconclusive + all.skip;
    let whole = missing + all.pass + all.fail;
    (missing > 0).then(|| {
        format!(
            "{} passes; {missing} of {whole} requirements were not exercised: {} inconclusive, {} skipped",
            report.name, all.inconclusive, all.skip
        )
    })
}

/// Owned names.
fn names<S: Into<String>>(names: impl IntoIterator<Item = S>) -> impl Iterator<Item = String> {
    names.into_iter().map(Into::into)
}
