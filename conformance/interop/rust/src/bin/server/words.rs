//! What the first word of a prompt makes the agent do.

use std::time::Duration;

use agent_client_protocol::v1::ConnectionTo;
use agent_client_protocol::v1::schema::{
    ClientCapabilities, ContentBlock, ContentChunk, CreateTerminalRequest, PermissionOption,
    PermissionOptionKind, PromptRequest, ReadTextFileRequest, ReleaseTerminalRequest,
    RequestPermissionOutcome, RequestPermissionRequest, SessionId, SessionNotification,
    SessionUpdate, TerminalOutputRequest, TextContent, ToolCallUpdate, ToolCallUpdateFields,
    WaitForTerminalExitRequest, WriteTextFileRequest,
};
use agent_client_protocol::{Client, Error, Result};
use serde_json::{Value, json};

use crate::session::Session;

/// One turn: what it sends is kept for replay, but for `stream`.
struct Turn<'a> {
    client: &'a ConnectionTo<Client>,
    session: &'a Session,
    id: SessionId,
}

pub async fn follow(
    client: &ConnectionTo<Client>,
    able: &ClientCapabilities,
    session: &Session,
    request: PromptRequest,
) -> Result<()> {
    let turn = Turn {
        client,
        session,
        id: request.session_id,
    };
    let said = request.prompt.iter().cloned().map(ContentChunk::new);
    session
        .history
        .lock()
        .unwrap()
        .extend(said.map(SessionUpdate::UserMessageChunk));
    let text = match request.prompt.first() {
        Some(ContentBlock::Text(text)) => text.text.as_str(),
        _ => "",
    };
    let (word, rest) = text.split_once(' ').unwrap_or((text, ""));
    let offered = match word {
        "read" => able.fs.read_text_file,
        "write" => able.fs.write_text_file,
        "terminal" => able.terminal,
        _ => true,
    };
    if !offered {
        return turn.say(format!("The client does not offer what {word} needs."));
    }
    match word {
        "ping" => Ok(()),
        "think" => {
            turn.send(
                json!({"sessionUpdate": "agent_thought_chunk", "content": block("Let me think.")}),
            )?;
            turn.say("I have thought.")
        }
        "plan" => turn.send(json!({"sessionUpdate": "plan", "entries": [
            {"content": "Read", "status": "completed", "priority": "medium"},
            {"content": "Change", "status": "in_progress", "priority": "medium"},
        ]})),
        "tool" => turn.tool(),
        "permission" => turn.permission().await,
        "read" => {
            let read = ReadTextFileRequest::new(turn.id.clone(), rest);
            turn.say(client.send_request(read).block_task().await?.content)
        }
        "write" => {
            let (path, content) = rest.split_once(' ').unwrap_or((rest, ""));
            let write = WriteTextFileRequest::new(turn.id.clone(), path, content);
            client.send_request(write).block_task().await?;
            turn.say(format!("Wrote {path}"))
        }
        "terminal" => turn.terminal(rest).await,
        "slow" => {
            for tick in 0..300 {
                turn.say(format!("tick {tick}\n"))?;
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
            Ok(())
        }
        "fail" => Err(Error::internal_error().data("the prompt asked for a failure")),
        "stream" => turn.stream(rest.parse().unwrap_or(0)).await,
        _ => {
            for content in request.prompt {
                turn.keep(SessionUpdate::AgentMessageChunk(ContentChunk::new(content)))?;
            }
            Ok(())
        }
    }
}

fn block(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

impl Turn<'_> {
    fn fleeting(&self, update: SessionUpdate) -> Result<()> {
        self.client
            .send_notification(SessionNotification::new(self.id.clone(), update))
    }

    fn keep(&self, update: SessionUpdate) -> Result<()> {
        self.session.history.lock().unwrap().push(update.clone());
        self.fleeting(update)
    }

    fn send(&self, update: Value) -> Result<()> {
        self.keep(serde_json::from_value(update).map_err(Error::into_internal_error)?)
    }

    fn say(&self, text: impl Into<String>) -> Result<()> {
        let block = ContentBlock::Text(TextContent::new(text));
        self.keep(SessionUpdate::AgentMessageChunk(ContentChunk::new(block)))
    }

    fn tool(&self) -> Result<()> {
        let diff = json!({"type": "diff", "path": self.session.cwd.join("example.txt"),
            "oldText": "old\n", "newText": "new\n"});
        let content = json!([{"type": "content", "content": block("One line changed.")}, diff]);
        for mut step in [
            json!({"sessionUpdate": "tool_call", "title": "Edit example.txt", "kind": "edit", "status": "pending"}),
            json!({"sessionUpdate": "tool_call_update", "status": "in_progress"}),
            json!({"sessionUpdate": "tool_call_update", "status": "completed", "content": content}),
        ] {
            step["toolCallId"] = "call-1".into();
            self.send(step)?;
        }
        Ok(())
    }

    async fn permission(&self) -> Result<()> {
        self.send(
            json!({"sessionUpdate": "tool_call", "toolCallId": "call-2", "title": "Run a command",
            "kind": "execute", "status": "pending"}),
        )?;
        let options = vec![
            PermissionOption::new("allow", "Allow", PermissionOptionKind::AllowOnce),
            PermissionOption::new("reject", "Reject", PermissionOptionKind::RejectOnce),
        ];
        let call = ToolCallUpdate::new(
            "call-2",
            ToolCallUpdateFields::new().title("Run a command".to_owned()),
        );
        let asked = RequestPermissionRequest::new(self.id.clone(), call, options);
        let chosen = match self.client.send_request(asked).block_task().await?.outcome {
            RequestPermissionOutcome::Selected(selected) => selected.option_id.to_string(),
            _ => "cancelled".to_owned(),
        };
        let steps: &[_] = if chosen == "allow" {
            &["in_progress", "completed"]
        } else {
            &["failed"]
        };
        for status in steps {
            self.send(json!({"sessionUpdate": "tool_call_update", "toolCallId": "call-2", "status": status}))?;
        }
        self.say(format!("Permission: {chosen}"))
    }

    /// Runs a command in a terminal of the client and says what it printed.
    async fn terminal(&self, line: &str) -> Result<()> {
        let mut words = line.split_whitespace().map(str::to_owned);
        let create = CreateTerminalRequest::new(self.id.clone(), words.next().unwrap_or_default());
        let create = create.args(words.collect::<Vec<_>>());
        let terminal = self
            .client
            .send_request(create)
            .block_task()
            .await?
            .terminal_id;
        let wait = WaitForTerminalExitRequest::new(self.id.clone(), terminal.clone());
        let exit = self
            .client
            .send_request(wait)
            .block_task()
            .await?
            .exit_status
            .exit_code;
        let output = TerminalOutputRequest::new(self.id.clone(), terminal.clone());
        let output = self.client.send_request(output).block_task().await?.output;
        let release = ReleaseTerminalRequest::new(self.id.clone(), terminal);
        self.client.send_request(release).block_task().await?;
        self.say(format!("{output}exit code: {exit:?}"))
    }

    async fn stream(&self, count: u64) -> Result<()> {
        for number in 0..count {
            let text = format!("{number:08} the quick brown fox jumps over the lazy dog, and so");
            let block = ContentBlock::Text(TextContent::new(text));
            self.fleeting(SessionUpdate::AgentMessageChunk(ContentChunk::new(block)))?;
            // Sending does not wait: let the connection write.
            if number % 64 == 0 {
                tokio::task::yield_now().await;
            }
        }
        Ok(())
    }
}
