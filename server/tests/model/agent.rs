//! The agent of the model: what it does follows from the text of its prompt.

use std::time::Duration;

use acp_sdk::v1::*;
use acp_sdk::{HandlerError, HandlerResult, Patch};
use acp_server::{AgentInfo, Error, Handler, Opening, Settings, Turn};

use crate::dice::Dice;

/// The modes of its sessions; the first is the default.
pub const MODES: [&str; 3] = ["ask", "code", "plan"];

pub struct Agent;

/// Returns the text of a prompt: who sent it, its number, and the seed of what it does.
pub fn text(name: &str, number: u64, seed: u64) -> String {
    format!("{name}:{number} {seed}")
}

impl Handler for Agent {
    type State = ();

    fn info(&self) -> AgentInfo {
        AgentInfo::default().steering()
    }

    async fn open(&self, (): &mut (), _: &Opening) -> HandlerResult<Settings> {
        tokio::task::yield_now().await;
        let modes = MODES.iter().map(|mode| SessionMode::new(*mode, *mode));
        let modes = SessionModeState::new(MODES[0], modes.collect());
        Ok(Settings::new().modes(modes))
    }

    async fn prompt(&self, (): &mut (), turn: Turn) -> HandlerResult<StopReason> {
        let text = turn.prompt_text();
        let seed = text.rsplit_once(' ').map_or("0", |(_, seed)| seed);
        let mut dice = Dice::new(seed.parse()?);
        let steps = dice.roll(12);
        for step in 0..steps {
            // Not by the dice: what is said meanwhile changes nothing else.
            if let Ok(Some(input)) = turn.steered_now().await {
                turn.send_text(format!("heard {}", input.text())).await?;
            }
            match act(&turn, &mut dice, &format!("{text} #{step}")).await {
                // One that does not listen.
                Err(Error::Cancelled) if seed.ends_with('9') => {
                    std::future::pending::<()>().await;
                }
                acted => acted?,
            }
        }
        match dice.roll(8) {
            0 => Err(HandlerError::internal(format!("{text} has failed"))),
            1 => Ok(StopReason::Refusal),
            _ => Ok(StopReason::EndTurn),
        }
    }
}

async fn act(turn: &Turn, dice: &mut Dice, text: &str) -> acp_server::Result<()> {
    match dice.roll(16) {
        0 | 1 => tokio::task::yield_now().await,
        2 => {
            let time = Duration::from_millis(dice.roll(30));
            tokio::time::sleep(time).await;
        }
        3 => turn.send_thought(text).await?,
        4 => {
            let mode = MODES[dice.pick(MODES.len())];
            turn.set_mode(mode).await?;
        }
        5 => {
            let mut info = SessionInfoUpdate::new();
            info.title = Patch::Value(text.to_owned());
            turn.send(SessionUpdate::SessionInfoUpdate(info)).await?;
        }
        6 | 7 => {
            let call = turn.tool_call(text, ToolKind::Execute).await?;
            tokio::task::yield_now().await;
            // Without an end it fails.
            if dice.roll(4) > 0 {
                turn.ask_permission(&call).await?;
            }
            if dice.roll(4) > 0 {
                call.complete("").await?;
            }
        }
        8 => turn.send_text(text.repeat(1 + dice.pick(20))).await?,
        _ => turn.send_text(text).await?,
    }
    Ok(())
}
