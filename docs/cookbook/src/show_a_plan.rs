use acp_sdk::v1::{PlanEntry, PlanEntryPriority, PlanEntryStatus, StopReason};
use acp_server::{Handler, HandlerResult, Turn};

const STEPS: [&str; 3] = ["Read the code", "Change it", "Run the tests"];

pub struct Planner;

impl Handler for Planner {
    type State = ();

    async fn prompt(&self, _: &mut (), turn: Turn) -> HandlerResult<StopReason> {
        for done in 0..=STEPS.len() {
            let entries = STEPS.iter().enumerate().map(|(at, step)| {
                let status = match at {
                    at if at < done => PlanEntryStatus::Completed,
                    at if at == done => PlanEntryStatus::InProgress,
                    _ => PlanEntryStatus::Pending,
                };
                PlanEntry::new(*step, PlanEntryPriority::Medium, status)
            });
            turn.set_plan(entries.collect()).await?;
            // The work of step `done` goes here.
        }
        Ok(StopReason::EndTurn)
    }
}
