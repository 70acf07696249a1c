//! The tools of an agent, and the calls of one answer.

use std::panic::AssertUnwindSafe;

use acp_sdk::Json;
use acp_server::Turn;
use futures_util::{FutureExt, StreamExt};
use tokio::time::{Instant, sleep};

use super::call::SharedJournal;
use super::{Call, FileLocks, Output, Risk, Tool, ToolError, ToolOutcome};
use crate::agent::Mode;
use crate::model::{Definition, ToolUse};

/// Calls of one answer that run at the same time.
const PARALLEL: usize = 8;

/// Tools with different names.
#[derive(Clone, Debug, Default)]
pub struct ToolSet(Vec<Tool>);

impl ToolSet {
    /// Creates an empty set.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a tool, in place of one with the same name.
    pub fn add(&mut self, tool: Tool) {
        self.0
            .retain(|old| old.definition.name != tool.definition.name);
        self.0.push(tool);
    }

    /// Removes the tools that are not named.
    pub fn keep(&mut self, names: &[String]) {
        self.0.retain(|tool| names.contains(&tool.definition.name));
    }

    /// Returns the tool with a name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Tool> {
        self.iter().find(|tool| tool.definition.name == name)
    }

    /// Returns the tools in the order in which they were added.
    pub fn iter(&self) -> impl Iterator<Item = &Tool> {
        self.0.iter()
    }

    /// Returns the names, for people and models.
    pub(crate) fn names(&self) -> String {
        let names = self.iter().map(|tool| tool.definition.name.as_str());
        names.collect::<Vec<_>>().join(", ")
    }

    /// Returns what the model may call in a mode.
    pub(crate) fn offered(&self, mode: Mode) -> Vec<Definition> {
        let tools = self.iter().filter(|tool| mode.offers(tool.risk));
        tools.map(|tool| tool.definition.clone()).collect()
    }
}

impl FromIterator<Tool> for ToolSet {
    fn from_iter<I: IntoIterator<Item = Tool>>(tools: I) -> Self {
        let mut set = Self::new();
        tools.into_iter().for_each(|tool| set.add(tool));
        set
    }
}

/// What the calls of a turn share.
pub(crate) struct Run<'a> {
    pub(crate) turn: &'a Turn,
    pub(crate) mode: Mode,
    pub(crate) tools: &'a ToolSet,
    pub(crate) undo: Option<SharedJournal>,
    pub(crate) locks: FileLocks,
}

impl Run<'_> {
    /// Runs the tools that an answer calls, side by side. All of them are announced before the first one runs,
    /// so that the log shows which belong to one answer.
    ///
    /// # Errors
    ///
    /// [`acp_server::Error::Cancelled`] when the turn is cancelled, and what [`Turn::send`] fails with. Failures
    /// of tools are outputs.
    pub(crate) async fn all(&self, uses: Vec<ToolUse>) -> acp_server::Result<()> {
        let mut calls = Vec::with_capacity(uses.len());
        for used in uses {
            calls.push(self.announce(used).await?);
        }
        let running = calls.into_iter().map(|(used, call)| self.one(used, call));
        let mut running = futures_util::stream::iter(running).buffer_unordered(PARALLEL);
        loop {
            tokio::select! {
                biased;
                // What still runs is dropped, and its call has failed.
                () = self.turn.cancelled() => return Err(acp_server::Error::Cancelled),
                ended = running.next() => match ended {
                    Some(ended) => ended?,
                    None => return Ok(()),
                }
            }
        }
    }

    async fn announce(&self, used: ToolUse) -> acp_server::Result<(ToolUse, Call)> {
        let tool = self.tools.get(&used.name);
        let shown = tool
            .map(|tool| (tool.shown)(&used.arguments))
            .unwrap_or_default();
        let title = shown.title.unwrap_or_else(|| used.name.clone());
        let kind = tool.map_or(acp_sdk::v1::ToolKind::Other, |tool| tool.kind.clone());
        let input = Json::new(&used.arguments).map_err(acp_server::Error::failed)?;
        let call = self
            .turn
            .tool_call(title, kind)
            .name(&used.name)
            .raw_input(input);
        let call = shown
            .paths
            .iter()
            .fold(call, |call, path| call.location(path));
        let permitted = tool.is_none_or(|tool| self.mode.permits(tool.risk));
        let shared = (self.undo.clone(), self.locks.clone());
        let call = Call::new(self.turn.clone(), call.await?, permitted, shared);
        Ok((used, call))
    }

    async fn one(&self, used: ToolUse, call: Call) -> acp_server::Result<()> {
        let tool = match self.tools.get(&used.name) {
            Some(tool) if self.mode.offers(tool.risk) => tool,
            Some(_) => {
                let mode = self.mode.as_str();
                let reason = format!(
                    "the tool `{}` is not available in the mode `{mode}`",
                    used.name
                );
                return finish(&call, Err(ToolError::Failed(reason)), 0).await;
            }
            None => {
                let names = self.tools.names();
                let reason = format!("there is no tool `{}`; there are: {names}", used.name);
                return finish(&call, Err(ToolError::Failed(reason)), 0).await;
            }
        };
        let outcome = run(tool, used, &call).await;
        finish(&call, outcome, tool.most).await
    }
}

/// Runs a tool with its permission and its timeout.
async fn run(tool: &Tool, used: ToolUse, call: &Call) -> ToolOutcome {
    if !tool.asks_itself {
        call.permit().await?;
    }
    call.start().await?;
    let running = (tool.function)(used.arguments, call.clone());
    let mut running = std::pin::pin!(AssertUnwindSafe(running).catch_unwind());
    let mut waits = call.waits();
    let mut left = tool.timeout;
    loop {
        let from = Instant::now();
        let is_waiting = *waits.borrow_and_update() > 0;
        tokio::select! {
            biased;
            outcome = &mut running => {
                return outcome.unwrap_or_else(|panic| {
                    let reason = panic_text(&*panic);
                    tracing::error!(tool = used.name, reason, "a tool panicked");
                    Err(ToolError::failed(format!("the tool panicked: {reason}")))
                });
            }
            // The call has the sender as long as it runs.
            Ok(()) = waits.changed() => {
                if !is_waiting {
                    left = left.saturating_sub(from.elapsed());
                }
            }
            () = sleep(left), if !is_waiting => {
                let seconds = tool.timeout.as_secs_f32();
                return Err(ToolError::failed(format!("the tool did not end within {seconds} s")));
            }
        }
    }
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no text")
}

/// Ends a call with what its tool has returned.
async fn finish(call: &Call, outcome: ToolOutcome, most: usize) -> acp_server::Result<()> {
    let (output, shown) = match outcome {
        Ok(output) => {
            let output = output.limited(most);
            let shown = output.text();
            (output, shown)
        }
        Err(ToolError::Failed(reason)) => (Output::error(reason.as_str()), reason),
        Err(ToolError::Rejected) => {
            let told = "The user does not allow this call. Do not try it again in another way.";
            (Output::error(told), "Rejected by the user.".to_owned())
        }
        Err(ToolError::Cancelled) => return Err(acp_server::Error::Cancelled),
    };
    call.end(&output, &shown).await
}

/// Whether a mode asks, and what it leaves out.
impl Mode {
    /// Returns whether tools of this risk exist in the mode.
    fn offers(self, risk: Risk) -> bool {
        self != Self::Plan || risk == Risk::Reads
    }

    /// Returns whether the user need not be asked.
    fn permits(self, risk: Risk) -> bool {
        match risk {
            Risk::Reads => true,
            Risk::Edits => self == Self::Code,
            Risk::Acts => false,
        }
    }
}
