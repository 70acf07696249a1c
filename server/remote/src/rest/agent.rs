//! The server and its agent: health, versions, models, tools.

use acp_sdk::v1::{SessionConfigKind, SessionConfigOption};
use axum::Json;
use axum::extract::State;
use serde::Serialize;
use utoipa::ToSchema;

use super::commands::OfSession;
use super::failure::Failure;
use super::query::Parameters;
use super::state::Rest;
use crate::caller::Caller;
use crate::health::Health;

/// The agents of a server.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct AgentList {
    /// The first is the default.
    agents: Vec<Agent>,
}

/// An agent.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Agent {
    /// Its name at this server: in paths such as `/acp/NAME`, in `agent` of new sessions and lists.
    name: String,
    /// What it is for.
    description: Option<String>,
    /// The working directory of sessions that name none.
    cwd: String,
    /// The name that it announces.
    announced_name: String,
    /// The title that it announces, for people.
    title: Option<String>,
    /// The version that it announces.
    version: String,
    /// Whether it requires a login, which this interface does not have.
    login_required: bool,
    /// Whether prompts may have images.
    images: bool,
    /// Whether prompts may have audio.
    audio: bool,
    /// Whether prompts may have the content of files.
    embedded_context: bool,
}

/// A server and its agent, the default one.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ServerInfo {
    /// Of the agent.
    version: String,
    /// The model that all sessions in memory use, if they use the same.
    model: Option<String>,
    /// The name of the agent.
    provider: String,
    /// Empty: agents of this protocol do not name their tools.
    tools: Vec<String>,
    /// The working directory of sessions that name none.
    cwd: String,
    /// The title of the agent, for people.
    title: Option<String>,
}

/// The models that can be chosen.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Providers {
    active: ActiveModel,
    available: Vec<AvailableModel>,
}

/// The model in use.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ActiveModel {
    /// The name of the agent.
    provider: String,
    /// `null` if there is none, or sessions use different ones.
    model: Option<String>,
}

/// A model that can be chosen, by `model` in `POST /sessions`.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub(super) struct AvailableModel {
    /// The value to choose it by.
    name: String,
    /// For people.
    title: String,
    /// `true`: the agent offers it.
    configured: bool,
}

/// Tools of agents.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ToolList {
    tools: Vec<ListedTool>,
    /// The agents that do not tell which tools they have, as most do.
    untold: Vec<String>,
}

/// A tool.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ListedTool {
    name: String,
    description: String,
    /// The name of its agent at this server.
    agent: String,
}

pub(super) async fn health(State(rest): State<Rest>) -> Json<Health> {
    Json(Health::of(rest.agents()))
}

pub(super) async fn server_info(
    State(rest): State<Rest>,
    caller: Caller,
) -> Result<Json<ServerInfo>, Failure> {
    let models = rest.models(&caller, &OfSession::default()).await?;
    let default = rest.agents().default_agent();
    let agent = &default.server().info().implementation;
    Ok(Json(ServerInfo {
        version: agent.version.clone(),
        model: models.active.model,
        provider: agent.name.clone(),
        tools: Vec::new(),
        cwd: rest.directory(default)?,
        title: agent.title.clone(),
    }))
}

pub(super) async fn list_agents(
    State(rest): State<Rest>,
    caller: Caller,
) -> Result<Json<AgentList>, Failure> {
    let agents = rest.agents().iter().map(|agent| {
        let info = &agent.server().info();
        Ok(Agent {
            name: agent.name().to_owned(),
            description: agent.described().map(str::to_owned),
            cwd: rest.directory(agent)?,
            announced_name: info.implementation.name.clone(),
            title: info.implementation.title.clone(),
            version: info.implementation.version.clone(),
            login_required: agent.requires_login(&caller.access),
            images: info.prompt.image,
            audio: info.prompt.audio,
            embedded_context: info.prompt.embedded_context,
        })
    });
    let agents = agents.collect::<Result<_, Failure>>()?;
    Ok(Json(AgentList { agents }))
}

pub(super) async fn list_providers(
    State(rest): State<Rest>,
    caller: Caller,
    Parameters(query): Parameters<OfSession>,
) -> Result<Json<Providers>, Failure> {
    Ok(Json(rest.models(&caller, &query).await?))
}

pub(super) async fn list_tools(State(rest): State<Rest>) -> Json<ToolList> {
    let (mut tools, mut untold) = (Vec::new(), Vec::new());
    for agent in rest.agents().iter() {
        let name = agent.name().to_owned();
        let Some(told) = &agent.server().info().tools else {
            untold.push(name);
            continue;
        };
        tools.extend(told.iter().map(|tool| ListedTool {
            name: tool.name.clone(),
            description: tool.description.clone(),
            agent: name.clone(),
        }));
    }
    Json(ToolList { tools, untold })
}

impl Rest {
    async fn models(&self, caller: &Caller, query: &OfSession) -> Result<Providers, Failure> {
        let (mut current, mut available) = (Vec::new(), Vec::new());
        for (_, session) in self.offering(caller, query).await? {
            let options = session.settings().shown(true).unwrap_or_default();
            for option in options
                .into_iter()
                .filter(SessionConfigOption::selects_model)
            {
                let SessionConfigKind::Select(select) = option.kind else {
                    continue;
                };
                let value = select.current_value.to_string();
                if !current.contains(&value) {
                    current.push(value);
                }
                for model in select.choices() {
                    let model = AvailableModel {
                        name: model.value.to_string(),
                        title: model.name.clone(),
                        configured: true,
                    };
                    if !available.contains(&model) {
                        available.push(model);
                    }
                }
            }
        }
        let model = current.pop().filter(|_| current.is_empty());
        let provider = self.agents().default_agent().announced_name().to_owned();
        Ok(Providers {
            active: ActiveModel { provider, model },
            available,
        })
    }
}
