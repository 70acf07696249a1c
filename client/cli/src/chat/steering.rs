//! Input for the running turn: `/steer TEXT`.

use std::time::Duration;

use acp_client::{Error, Result, Steered};

use super::Failure;
use super::running::Steering;
use super::style::Colour;
use super::talk::Talk;

/// Time after the end of a turn in which the agent is to answer what the turn has not taken.
const LATE: Duration = Duration::from_secs(1);

impl Talk<'_> {
    /// Sends what was typed to the turn, if the agent takes it. Otherwise it is for later.
    pub(super) fn steer(&mut self, text: String, steering: &mut Steering) {
        if self.session.can_steer() {
            return steering.send(&self.session, text);
        }
        let line = "the agent takes no input during turns; it is sent after the turn";
        self.not_taken(text, line);
    }

    /// Shows the answer to input. What the turn has taken is an event, and shown there.
    pub(super) fn steered(&mut self, text: String, steered: Result<Steered>) {
        match steered {
            Ok(Steered::Injected) => {}
            Ok(Steered::Queued) => {
                let line = format!("  a turn of its own: {text}");
                let shown = self.view.dim(&line);
                self.screen.print(&shown);
            }
            Ok(_) => {
                let line = "the turn has not taken the input; it is sent after the turn";
                self.not_taken(text, line);
            }
            Err(error) => {
                let line = format!("{}; it is sent after the turn", explained(&error));
                self.not_taken(text, &line);
            }
        }
    }

    fn not_taken(&mut self, text: String, line: &str) {
        let shown = self.view.note(Colour::Yellow, line);
        self.screen.print(&shown);
        self.queued.push_back(text);
    }

    /// Waits for the answers that follow the end of a turn.
    pub(super) async fn end_steering(&mut self, mut steering: Steering) -> Result<(), Failure> {
        let late = async {
            while let Some((text, steered)) = steering.next().await {
                self.steered(text, steered);
            }
        };
        // An agent that does not answer.
        let _ = tokio::time::timeout(LATE, late).await;
        for text in steering.take_unanswered() {
            self.not_taken(text, "the agent has not answered whether it took the input");
        }
        Ok(self.screen.flush().await?)
    }
}

fn explained(error: &Error) -> String {
    let lines = crate::exit::explained(error);
    lines.into_iter().next().unwrap_or_default()
}
