use acp_sdk::v1::StopReason;
use acp_server::{Capability, Handler, HandlerResult, Turn};

pub struct Tester;

impl Handler for Tester {
    type State = ();

    async fn prompt(&self, _: &mut (), turn: Turn) -> HandlerResult<StopReason> {
        if !turn.offers(Capability::Terminal) {
            turn.send_text("Your editor has no terminal for me.")
                .await?;
            return Ok(StopReason::EndTurn);
        }
        let script = turn.prompt_text();
        // A tool call: it asks, shows the terminal, and ends with the exit code.
        let answer = match turn.run_command("sh", ["-c", script.as_str()]).await? {
            Some(run) if run.exit.is_success() => format!("It passed: {}", run.output),
            Some(run) => format!("It failed, {}: {}", run.exit, run.output),
            None => "I may not run it.".to_owned(),
        };
        turn.send_text(answer).await?;
        Ok(StopReason::EndTurn)
    }
}
