//! The agent's slash commands.

use std::collections::BTreeMap;
use std::sync::Arc;

use acp_sdk::v1::{AvailableCommand, AvailableCommandInput, SessionId};
use acp_server::Session;
use axum::Json;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::{IntoParams, ToSchema};

use super::body::Object;
use super::failure::Failure;
use super::query::Parameters;
use super::state::Rest;
use super::turns::prompt;
use crate::agents::ServedAgent;
use crate::caller::Caller;

/// Which session's.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct OfSession {
    /// Only what this session offers, which is opened for it. Default: what the sessions in memory
    /// offer.
    #[param(value_type = String, required = false)]
    session_id: Option<String>,
    /// Only what the sessions in memory of the agent with this name offer. Default: of all agents.
    #[param(value_type = String, required = false)]
    agent: Option<String>,
}

/// The command of a path, for the document.
#[derive(IntoParams)]
#[into_params(parameter_in = Path)]
#[expect(dead_code, reason = "for the document")]
pub(super) struct CommandPath {
    /// The command, without the slash
    name: String,
}

/// Slash commands.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct CommandList {
    commands: Vec<Command>,
}

/// A slash command.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Command {
    /// The name, without the slash.
    name: String,
    description: String,
    /// What follows the name: one text, if the command takes any.
    args: Vec<Argument>,
    /// `project`, `user` or `builtin`, where the agent says who has defined it; otherwise the name that
    /// the agent announces.
    source: String,
}

/// What an agent says of a command in `_meta["acp-sdk"]`.
#[derive(Debug, Default, Deserialize)]
struct Origin {
    source: Option<String>,
    /// `shell`: the agent splits what follows the name as a shell does.
    arguments: Option<String>,
}

impl Origin {
    fn of(command: &AvailableCommand) -> Self {
        let ours = command.meta.as_ref().and_then(|meta| meta.get("acp-sdk"));
        ours.unwrap_or_default()
    }
}

/// What follows the name of a command.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Argument {
    /// `input`.
    name: String,
    description: String,
}

/// How a command is invoked.
#[derive(Debug, Default, Deserialize, ToSchema)]
pub(super) struct Invocation {
    #[schema(value_type = String, required = true)]
    session_id: Option<String>,
    /// Follow the name, each after a blank; in quotes where they need them and the agent takes them off.
    #[schema(value_type = Vec<String>)]
    args: Option<Value>,
    /// Follow as `name=value`, each after a blank.
    #[schema(value_type = std::collections::HashMap<String, String>)]
    kwargs: Option<Value>,
}

/// A command that waits for its turn, or has begun it.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Invoked {
    /// The events of the turn have it.
    message_id: String,
    /// The session\'s last event before the turn. As `Last-Event-ID` it opens a stream of the turn\'s events.
    last_event_id: u64,
    name: String,
    /// The prompt.
    rendered: String,
}

pub(super) async fn list_commands(
    State(rest): State<Rest>,
    caller: Caller,
    Parameters(query): Parameters<OfSession>,
) -> Result<Json<CommandList>, Failure> {
    let mut commands = BTreeMap::new();
    for (agent, session) in rest.offering(&caller, &query).await? {
        for command in session.settings().available_commands() {
            commands
                .entry(command.name.clone())
                .or_insert_with(|| shown(command.clone(), agent.announced_name()));
        }
    }
    Ok(Json(CommandList {
        commands: commands.into_values().collect(),
    }))
}

pub(super) async fn invoke_command(
    State(rest): State<Rest>,
    caller: Caller,
    name: Result<Path<String>, PathRejection>,
    Object(invocation): Object<Invocation>,
) -> Result<(StatusCode, Json<Invoked>), Failure> {
    let id = invocation.session_id;
    let id = id.ok_or_else(|| Failure::bad_request("missing_session_id"))?;
    let args = match invocation.args {
        None => Vec::new(),
        Some(Value::Array(args)) => args,
        Some(_) => return Err(Failure::bad_request("args_must_be_list")),
    };
    let kwargs = match invocation.kwargs {
        None => Map::new(),
        Some(Value::Object(kwargs)) => kwargs,
        Some(_) => return Err(Failure::bad_request("kwargs_must_be_object")),
    };
    let id = SessionId::from(id);
    rest.record(&id).await?;
    let session = rest.open(&caller, &id).await?;
    let unknown = || Failure::not_found("command_not_found");
    let Path(name) = name.map_err(|_| unknown())?;
    let settings = session.settings();
    let mut commands = settings.available_commands().iter();
    let Some(command) = commands.find(|command| command.name == name) else {
        return Err(unknown().name(name));
    };
    let rendered = render(command, &args, &kwargs);
    let queued = prompt(&session, vec![rendered.clone().into()], None, None).await?;
    let invoked = Invoked {
        message_id: queued.prompt.message_id().to_string(),
        last_event_id: queued.last_event_id,
        name,
        rendered,
    };
    Ok((StatusCode::ACCEPTED, Json(invoked)))
}

impl Rest {
    /// Returns the sessions whose offers are asked for, with their agents.
    ///
    /// # Errors
    ///
    /// As [`open`](Self::open) and [`chosen`](Self::chosen).
    pub(super) async fn offering(
        &self,
        caller: &Caller,
        query: &OfSession,
    ) -> Result<Vec<(Arc<ServedAgent>, Session)>, Failure> {
        let Some(id) = &query.session_id else {
            let agents = self.chosen(caller, query.agent.as_deref())?.into_iter();
            let sessions = agents.flat_map(|agent| {
                let open = agent.server().open_sessions().into_iter();
                open.map(move |session| (agent.clone(), session))
            });
            return Ok(sessions.collect());
        };
        let id = SessionId::from(id.as_str());
        let agent = self.record(&id).await?.agent;
        Ok(vec![(agent, self.open(caller, &id).await?)])
    }
}

/// The command with its input as the user would type it.
fn render(command: &AvailableCommand, args: &[Value], kwargs: &Map<String, Value>) -> String {
    let splits = Origin::of(command).arguments.as_deref() == Some("shell");
    let text = |value: &Value| match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let args = args.iter().map(text);
    let kwargs = kwargs
        .iter()
        .map(|(key, value)| format!("{key}={}", text(value)));
    let mut rendered = format!("/{}", command.name);
    for word in args.chain(kwargs) {
        rendered.push(' ');
        match splits {
            true => rendered.push_str(&quoted(word)),
            false => rendered.push_str(&word),
        }
    }
    rendered
}

/// The word that a shell reads as this text.
fn quoted(word: String) -> String {
    let special = |c: char| c.is_whitespace() || matches!(c, '\'' | '"' | '\\');
    match word.is_empty() || word.contains(special) {
        true => format!("'{}'", word.replace('\'', r"'\''")),
        false => word,
    }
}

fn shown(command: AvailableCommand, agent: &str) -> Command {
    let source = Origin::of(&command).source;
    let args = match command.input {
        Some(AvailableCommandInput::Unstructured(input)) => vec![Argument {
            name: "input".to_owned(),
            description: input.hint,
        }],
        _ => Vec::new(),
    };
    Command {
        name: command.name,
        description: command.description,
        args,
        source: source.unwrap_or_else(|| agent.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use acp_sdk::Meta;
    use serde_json::json;

    use super::*;

    fn command(ours: &Value) -> AvailableCommand {
        AvailableCommand::new("sum", "Sums").with_meta(Meta::new().with("acp-sdk", ours))
    }

    #[test]
    fn a_command_is_rendered_as_it_would_be_typed() {
        let render = |ours: Value, args: Value, kwargs: Value| {
            let command = command(&ours);
            render(
                &command,
                args.as_array().unwrap(),
                kwargs.as_object().unwrap(),
            )
        };
        assert_eq!(render(json!({}), json!([]), json!({})), "/sum");
        assert_eq!(
            render(json!(1), json!(["a b", 1, true]), json!({ "n": [1] })),
            "/sum a b 1 true n=[1]"
        );
        assert_eq!(
            render(json!({}), json!([]), json!({ "x": "y" })),
            "/sum x=y"
        );
        assert_eq!(
            render(
                json!({ "arguments": "shell" }),
                json!(["a b", "it's", "", 1, "c"]),
                json!({ "x": "y z" })
            ),
            r"/sum 'a b' 'it'\''s' '' 1 c 'x=y z'"
        );
    }

    #[test]
    fn the_source_of_a_command_is_what_the_agent_says() {
        let source = |ours: Value| shown(command(&ours), "agent").source;
        assert_eq!(source(json!({ "source": "project" })), "project");
        assert_eq!(source(json!({})), "agent");
        assert_eq!(source(json!({ "source": 1 })), "agent");
    }
}
