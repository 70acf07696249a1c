//! An agent whose prompts are words.

use acp_sdk::v1::*;
use acp_server::{AgentInfo, Error, Handler, HandlerResult, Opening, Server, Settings, Turn};
use serde_json::json;

pub struct Words;

pub fn server() -> Server {
    Server::new(Words)
}

impl Handler for Words {
    type State = ();

    fn info(&self) -> AgentInfo {
        AgentInfo::default().steering().mcp_stdio()
    }

    async fn open(&self, (): &mut (), _: &Opening) -> HandlerResult<Settings> {
        let modes = vec![
            SessionMode::new("ask", "Ask"),
            SessionMode::new("code", "Code"),
        ];
        let web = SessionConfigOption::new("web", "Web", SessionConfigBoolean::new(false));
        Ok(Settings::new()
            .modes(SessionModeState::new("ask", modes))
            .option(web)
            .commands(vec![AvailableCommand::new("go", "Goes")]))
    }

    async fn prompt(&self, (): &mut (), turn: Turn) -> HandlerResult<StopReason> {
        match turn.prompt_text().as_str() {
            "wait" => turn.cancelled().await,
            "linger" => {
                turn.cancelled().await;
                for _ in 0..2_000 {
                    turn.send_text("a").await?;
                }
            }
            "steer" => {
                let input = turn.steered().await?;
                turn.send_text(format!("You said {}.", input.text()))
                    .await?;
            }
            "fail" => return Err(Error::failed("no model").into()),
            "ask" => {
                let call = turn.tool_call("Look around", ToolKind::Read).await?;
                match turn.ask_permission(&call).await?.is_allowed() {
                    true => call.complete("Seen.").await?,
                    false => call.reject().await?,
                }
            }
            "ask nothing" => {
                let call = turn.tool_call("Look around", ToolKind::Read).await?;
                turn.ask_permission_with(&call, vec![]).await?;
            }
            "form" => {
                let schema = json!({"properties": {"color": {"type": "string"}}});
                let schema: ElicitationSchema = serde_json::from_value(schema)?;
                let asked = turn.elicit("Which color?", schema).await?;
                let values = asked.accepted().unwrap_or_default();
                turn.send_text(serde_json::to_string(&values)?).await?;
            }
            "child" => {
                let child = turn.child("Find it").await?;
                child.send_task("Where is it?").await?;
                let call = child.tool_call("Look around", ToolKind::Read).await?;
                match turn.ask_permission(&call).await?.is_allowed() {
                    true => call.complete("Seen.").await?,
                    false => call.reject().await?,
                }
                child.send_text("In ").await?;
                child.send_text("a.rs.").await?;
                child.end(StopReason::EndTurn).await?;
                turn.send_text("It is in a.rs.").await?;
            }
            "child waits" => {
                let child = turn.child("Find it").await?;
                let call = child.tool_call("Look around", ToolKind::Read).await?;
                turn.cancelled().await;
                child.send_text("Stopped.").await?;
                drop((child, call));
            }
            "raw" => {
                for text in ["a", "b"] {
                    let chunk = ContentChunk::new(TextContent::new(text));
                    turn.send(SessionUpdate::AgentMessageChunk(chunk)).await?;
                }
            }
            "all" => {
                turn.send_thought("Hm.").await?;
                let entry =
                    PlanEntry::new("Edit", PlanEntryPriority::High, PlanEntryStatus::Pending);
                turn.set_plan(vec![entry]).await?;
                let mut call = turn.tool_call("Edit a", ToolKind::Edit).await?;
                call.add_diff("/w/a", Some("1\n"), "2\n").await?;
                call.complete("Done.").await?;
                turn.set_mode("code").await?;
                turn.send_text("First.").await?;
                turn.send_text("Second.").await?;
            }
            text => turn.send_text(text).await?,
        }
        Ok(StopReason::EndTurn)
    }
}
