//! Messages out of the schema: valid but unusual ones, which an agent must accept,
//! and ones with a single violation, which it must refuse or tolerate and survive.
//!
//! The same seed yields the same messages. Working directories, sessions and
//! servers are filled in so that the agent starts and touches nothing beyond what a
//! prompt does. A failure is tried again on a connection of its own and shrunk.

mod case;
mod error;
mod random;
mod run;
mod sample;

pub use self::error::FuzzError;
pub use self::run::run;

/// The result of a run.
#[derive(Clone, Debug)]
pub struct Report {
    /// Messages sent.
    pub sent: u64,
    /// Requests that succeeded.
    pub accepted: u64,
    /// Requests that were refused as they should be.
    pub refused: u64,
    /// What the agent failed, each reason once.
    pub failures: Vec<Broken>,
    /// Failures for a reason that is among these already.
    pub repeated: u64,
    /// Whether it was interrupted before all were sent.
    pub interrupted: bool,
}

/// A message that an agent does not deal with as it must.
#[derive(Clone, Debug)]
pub struct Broken {
    /// What is wrong.
    pub reason: String,
    /// What the message is: what was done to a valid one.
    pub done: String,
    /// Whether it fails on a connection of its own too; then it is shrunk.
    pub alone: bool,
    /// The connection, one record a line; the last ones.
    pub transcript: Vec<String>,
}

impl Report {
    /// The report for a terminal.
    #[must_use]
    pub fn text(&self, seed: u64) -> String {
        let Self {
            sent,
            accepted,
            refused,
            failures,
            repeated,
            interrupted,
        } = self;
        let mut text = String::new();
        for (number, failure) in (1..).zip(failures) {
            let how = match failure.alone {
                true => "shrunk; the whole connection",
                false => "only after what was sent before; the end of the connection",
            };
            text.push_str(&format!("{number}. {}\n", failure.reason));
            text.push_str(&format!("   message: {}\n   {how}:\n", failure.done));
            for line in &failure.transcript {
                text.push_str(&format!("   {line}\n"));
            }
        }
        text.push_str(&format!(
            "seed {seed}: {sent} messages sent, {accepted} accepted, {refused} refused as they should be, {} failures",
            failures.len()
        ));
        if *repeated > 0 {
            text.push_str(&format!(", and {repeated} for the same reasons"));
        }
        text.push('\n');
        if *interrupted {
            text.push_str("incomplete: the run was interrupted\n");
        }
        text
    }
}
