//! The agents behind one set of endpoints.

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use acp_sdk::text::agent_name;
use acp_server::{Access, Server};
use axum::Router;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path as UrlPath, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use axum::routing::{MethodRouter, any};

use super::failure::Failure;

/// The agents behind one set of endpoints, each with a [`Server`] and a store of its own. The first is
/// the default.
///
/// `/acp` is the default agent, `/acp/NAME` each of them, and so is `/rpc`. REST finds the agent of a
/// session by its id, and new sessions may name one.
///
/// A [`Server`] alone becomes one agent with the name that it announces.
///
/// ```no_run
/// use acp_reference_agent::Reference;
/// use acp_server::Server;
/// use acp_server_remote::{Agents, ServedAgent};
///
/// # fn example() -> Result<Agents, acp_server_remote::AgentsError> {
/// let coder = ServedAgent::new("coder", Server::new(Reference)).description("Writes code".to_owned());
/// Agents::new([coder, ServedAgent::new("reviewer", Server::new(Reference))])
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Agents(Arc<Vec<Arc<ServedAgent>>>);

/// One of several [`Agents`].
#[derive(Clone)]
#[must_use]
pub struct ServedAgent {
    name: String,
    description: Option<String>,
    directory: Option<PathBuf>,
    server: Server,
}

/// Why agents cannot be served together.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AgentsError {
    /// There is none.
    #[error("expected at least one agent")]
    None,
    /// A name that cannot be part of a path.
    #[error("the agent name {0:?} cannot be used: expected 1 to 64 letters, digits, `_` and `-`")]
    Name(String),
    /// Two agents have one name.
    #[error("two agents have the name {0:?}; upper and lower case are the same")]
    Twice(String),
}

/// No agent has a name.
#[derive(Debug)]
pub(crate) struct UnknownAgent {
    name: String,
    known: String,
}

impl fmt::Display for UnknownAgent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, known } = self;
        write!(f, "no agent has the name {name:?}. The names are: {known}")
    }
}

impl ServedAgent {
    /// Creates an agent with a name: 1 to 64 letters, digits, `_` and `-`.
    pub fn new(name: impl Into<String>, server: Server) -> Self {
        Self {
            name: name.into(),
            description: None,
            directory: None,
            server,
        }
    }

    /// Sets what the agent is for.
    pub fn description(mut self, description: impl Into<Option<String>>) -> Self {
        self.description = description.into();
        self
    }

    /// Sets the working directory of sessions that name none (default: the server's).
    pub fn directory(mut self, directory: impl Into<Option<PathBuf>>) -> Self {
        self.directory = directory.into();
        self
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn described(&self) -> Option<&str> {
        self.description.as_deref()
    }

    /// Returns the working directory of sessions that name none.
    ///
    /// # Errors
    ///
    /// When it is the server's, and that does not exist any more.
    pub fn session_directory(&self) -> io::Result<String> {
        let directory = match &self.directory {
            Some(directory) => directory.clone(),
            None => std::env::current_dir()?,
        };
        Ok(directory.to_string_lossy().into_owned())
    }

    /// Returns the sessions of the agent.
    #[must_use]
    pub fn server(&self) -> &Server {
        &self.server
    }

    /// Returns whether it requires a login of clients with these rights.
    pub(crate) fn requires_login(&self, access: &Access) -> bool {
        self.server.info().requires_login(access)
    }

    /// Returns the name that the agent announces.
    pub(crate) fn announced_name(&self) -> &str {
        &self.server.info().implementation.name
    }

    fn has_path(&self) -> bool {
        agent_name::check(&self.name).is_ok()
    }
}

impl fmt::Debug for ServedAgent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServedAgent")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

impl From<Server> for Agents {
    fn from(server: Server) -> Self {
        let name = server.info().implementation.name.clone();
        Self(Arc::new(vec![Arc::new(ServedAgent::new(name, server))]))
    }
}

impl Agents {
    /// Creates the agents of an endpoint; the first is the default.
    ///
    /// # Errors
    ///
    /// When there is none, or a name cannot be used, or is that of two.
    pub fn new(agents: impl IntoIterator<Item = ServedAgent>) -> Result<Self, AgentsError> {
        let agents: Vec<_> = agents.into_iter().map(Arc::new).collect();
        if agents.is_empty() {
            return Err(AgentsError::None);
        }
        for (index, agent) in agents.iter().enumerate() {
            if !agent.has_path() {
                return Err(AgentsError::Name(agent.name.clone()));
            }
            let mut earlier = agents.iter().take(index);
            if earlier.any(|earlier| earlier.name.eq_ignore_ascii_case(&agent.name)) {
                return Err(AgentsError::Twice(agent.name.clone()));
            }
        }
        Ok(Self(Arc::new(agents)))
    }

    pub(crate) fn iter(&self) -> std::slice::Iter<'_, Arc<ServedAgent>> {
        self.0.iter()
    }

    /// Returns whether there are several, so that things need their agent's name.
    pub(crate) fn are_several(&self) -> bool {
        self.0.len() > 1
    }

    /// Returns the agent of requests that name none: the first.
    #[must_use]
    pub fn default_agent(&self) -> &Arc<ServedAgent> {
        // There is always one.
        &self.0[0]
    }

    /// Returns the agent with a name; without one, the default.
    ///
    /// # Errors
    ///
    /// With the names that exist.
    pub(crate) fn named(&self, name: Option<&str>) -> Result<&Arc<ServedAgent>, UnknownAgent> {
        let Some(name) = name else {
            return Ok(self.default_agent());
        };
        let found = self.iter().find(|agent| agent.name == name);
        found.ok_or_else(|| {
            let known: Vec<_> = self.iter().map(|agent| agent.name()).collect();
            UnknownAgent {
                name: name.to_owned(),
                known: known.join(", "),
            }
        })
    }

    /// Mounts the methods of each agent at `path/NAME`, and those of the default at `path` too. They are
    /// given the server and the path. Other names are answered with 404.
    pub(crate) fn mount(
        &self,
        path: &str,
        mut methods: impl FnMut(&Server, &str) -> MethodRouter,
    ) -> Router {
        let mut router = Router::new();
        for (index, agent) in self.iter().enumerate() {
            let named = agent.has_path().then(|| format!("{path}/{}", agent.name));
            let methods = methods(&agent.server, named.as_deref().unwrap_or(path));
            if index == 0 {
                router = router.route(path, methods.clone());
            }
            if let Some(named) = named {
                router = router.route(&named, methods);
            }
        }
        let other = any(unknown).with_state(self.clone());
        router.route(&format!("{path}/{{agent}}"), other)
    }
}

async fn unknown(
    State(agents): State<Agents>,
    name: Result<UrlPath<String>, PathRejection>,
) -> Response {
    // A path that is no text names no agent.
    let name = name.map(|UrlPath(name)| name).unwrap_or_default();
    let message = match agents.named(Some(&name)) {
        Err(unknown) => unknown.to_string(),
        // Its name is no part of a path.
        Ok(_) => "the only agent is at the path before the name".to_owned(),
    };
    let refusal = Failure::new(StatusCode::NOT_FOUND, "agent_not_found");
    refusal.message(message).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;
    use acp_reference_agent::Reference;

    fn agents(names: &[&str]) -> Result<Agents, AgentsError> {
        let agent = |name: &&str| ServedAgent::new(*name, Server::new(Reference));
        Agents::new(names.iter().map(agent))
    }

    #[tokio::test]
    async fn names_are_parts_of_paths_and_unique() {
        assert!(agents(&["a", "B-2", "c_d"]).is_ok());
        assert_eq!(agents(&[]).unwrap_err(), AgentsError::None);
        assert_eq!(
            agents(&["a", "b", "A"]).unwrap_err(),
            AgentsError::Twice("A".to_owned())
        );
        let long = "x".repeat(65);
        for name in ["", "a/b", "a b", "..", "{a}", "é", &long] {
            let refused = agents(&["a", name]).unwrap_err();
            assert_eq!(refused, AgentsError::Name(name.to_owned()));
        }
    }

    #[tokio::test]
    async fn the_first_is_the_default() {
        let agents = agents(&["a", "b"]).unwrap();
        let named = |name| agents.named(name).map(|agent| agent.name());
        assert_eq!(named(None).unwrap(), "a");
        assert_eq!(named(Some("b")).unwrap(), "b");
        let unknown = named(Some("c")).unwrap_err().to_string();
        assert!(
            unknown.contains("\"c\"") && unknown.ends_with("are: a, b"),
            "{unknown}"
        );
    }
}
