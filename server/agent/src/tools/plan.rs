//! The plan that the user sees.

use acp_sdk::v1::{PlanEntry, PlanEntryPriority, PlanEntryStatus, ToolKind};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::{Call, Tool, ToolError};

#[derive(Deserialize, JsonSchema)]
struct Plan {
    /// All steps, those that are done included.
    steps: Vec<Step>,
}

#[derive(Deserialize, JsonSchema)]
struct Step {
    /// What is to be done.
    text: String,
    /// How far it is.
    status: Status,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Status {
    Pending,
    InProgress,
    Completed,
}

/// Entries of one plan.
const MOST: usize = 100;

/// Returns the tool `plan`: the steps of a longer task, which the user sees.
#[must_use]
pub fn plan() -> Tool {
    let description = "Shows the user the steps of a task of several steps. Call it again with all steps when one \
        of them is begun or done.";
    Tool::new("plan", description, |plan: Plan, call: Call| async move {
        if plan.steps.len() > MOST {
            return Err(ToolError::failed(format!(
                "a plan has at most {MOST} steps"
            )));
        }
        let entries = plan.steps.into_iter().map(|step| {
            let status = match step.status {
                Status::Pending => PlanEntryStatus::Pending,
                Status::InProgress => PlanEntryStatus::InProgress,
                Status::Completed => PlanEntryStatus::Completed,
            };
            PlanEntry::new(step.text, PlanEntryPriority::Medium, status)
        });
        call.turn().set_plan(entries.collect()).await?;
        Ok("The user sees the plan.")
    })
    .kind(ToolKind::Think)
    .shown(|_| "Plan".to_owned(), |_| Vec::new())
}
