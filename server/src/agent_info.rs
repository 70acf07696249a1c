//! What an agent advertises of itself.

use acp_sdk::Meta;
use acp_sdk::v1::{AuthMethod, Implementation, McpCapabilities, PromptCapabilities};
use serde::{Deserialize, Serialize};

/// What an agent advertises in `initialize`.
///
/// ```
/// use acp_sdk::v1::{AuthMethodAgent, PromptCapabilities};
/// use acp_server::AgentInfo;
///
/// let info = AgentInfo::new("my-agent", env!("CARGO_PKG_VERSION"))
///     .title("My agent")
///     .prompt(PromptCapabilities::new().with_image(true).with_embedded_context(true))
///     .auth_method(AuthMethodAgent::new("login", "Log in in the browser"))
///     .require_auth();
/// assert!(info.auth_required);
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct AgentInfo {
    /// Name, title and version. Default: the name of the program.
    pub implementation: Implementation,
    /// Content of prompts besides text and links (default: none). Prompts with other content are
    /// refused with -32602.
    pub prompt: PromptCapabilities,
    /// Transports of MCP servers besides stdio (default: none).
    pub mcp: McpCapabilities,
    /// Whether the agent connects to MCP servers over stdio (default: no). Version 2 announces it;
    /// clients of version 1 assume it of every agent.
    pub mcp_stdio: bool,
    /// Methods to authenticate the user (default: none).
    pub auth_methods: Vec<AuthMethod>,
    /// Whether sessions need an authenticated user from the start (default: no). After `logout`
    /// they do in any case, except those that the client is attached to: what runs goes on.
    pub auth_required: bool,
    /// Whether turns take input while they run: the handler calls [`Turn::steered`](crate::Turn::steered)
    /// (default: no).
    pub steering: bool,
    /// Whether turns can be undone and redone, by [`Handler::undo`](crate::Handler::undo) (default: no).
    pub undo: bool,
    /// The tools that the agent itself has (default: it does not tell). Clients find them in `initialize`,
    /// in `agentCapabilities._meta["acp-sdk"].tools`.
    pub tools: Option<Vec<ToolInfo>>,
    /// Whether a prompt can limit its turn by `_meta["acp-sdk"]`: `maxSteps`, the requests to the model, and
    /// `allowedTools`, the names of the tools that there are (default: no).
    pub turn_limits: bool,
    /// Whether users can log out (default: if there are methods to authenticate).
    pub logout: Option<bool>,
    /// `_meta` of the capabilities (default: none). The member `acp-sdk` is the server's.
    pub meta: Option<Meta>,
    /// Prompts by purpose, which `initialize` names in `_meta["acp-conformance"].prompts`, so that
    /// `acp-conformance` knows what to say to an agent that understands no English (default: none).
    pub test_prompts: Vec<(String, String)>,
}

/// A tool of an agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolInfo {
    /// Its name for the model.
    pub name: String,
    /// What it does.
    pub description: String,
}

impl AgentInfo {
    /// Creates the information from a name and a version.
    pub fn new(name: impl Into<String>, version: impl Into<String>) -> Self {
        Self {
            implementation: Implementation::new(name, version),
            prompt: PromptCapabilities::default(),
            mcp: McpCapabilities::default(),
            mcp_stdio: false,
            auth_methods: Vec::new(),
            auth_required: false,
            steering: false,
            undo: false,
            tools: None,
            turn_limits: false,
            logout: None,
            meta: None,
            test_prompts: Vec::new(),
        }
    }

    /// Names the tools of the agent.
    #[must_use]
    pub fn tools(mut self, tools: impl IntoIterator<Item = ToolInfo>) -> Self {
        self.tools = Some(tools.into_iter().collect());
        self
    }

    /// Declares that prompts can limit their turns.
    #[must_use]
    pub fn turn_limits(mut self) -> Self {
        self.turn_limits = true;
        self
    }

    /// Sets the title that people read.
    #[must_use]
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.implementation = self.implementation.with_title(title);
        self
    }

    /// Sets the kinds of content that prompts may have.
    #[must_use]
    pub fn prompt(mut self, capabilities: PromptCapabilities) -> Self {
        self.prompt = capabilities;
        self
    }

    /// Sets the transports of MCP servers besides stdio.
    #[must_use]
    pub fn mcp(mut self, capabilities: McpCapabilities) -> Self {
        self.mcp = capabilities;
        self
    }

    /// Announces that the agent connects to MCP servers over stdio. Clients of version 2 send none
    /// otherwise, and are refused with -32602 if they do.
    #[must_use]
    pub fn mcp_stdio(mut self) -> Self {
        self.mcp_stdio = true;
        self
    }

    /// Adds a method to authenticate.
    #[must_use]
    pub fn auth_method(mut self, method: impl Into<AuthMethod>) -> Self {
        self.auth_methods.push(method.into());
        self
    }

    /// Adds the prompt with which a test makes the agent do something: `hello` is to be answered with
    /// text, `slow` to run until it is cancelled, `tool` to make a tool call. `{folder}` in a text
    /// stands for the working directory.
    #[must_use]
    pub fn test_prompt(mut self, word: impl Into<String>, text: impl Into<String>) -> Self {
        self.test_prompts.push((word.into(), text.into()));
        self
    }

    /// Declares that turns take input while they run, by [`Turn::steered`](crate::Turn::steered). Without
    /// it, input for a turn is refused.
    #[must_use]
    pub fn steering(mut self) -> Self {
        self.steering = true;
        self
    }

    /// Declares that turns can be undone and redone, by [`Handler::undo`](crate::Handler::undo).
    #[must_use]
    pub fn undo(mut self) -> Self {
        self.undo = true;
        self
    }

    /// Requires an authenticated user for sessions: before `authenticate`, a client can neither
    /// list nor open, close or delete one. REST, which has no login, is for read-only tokens then.
    #[must_use]
    pub fn require_auth(mut self) -> Self {
        self.auth_required = true;
        self
    }
}

impl AgentInfo {
    /// Returns whether a client with this access must log in before it uses sessions. Who may only
    /// read cannot log in: what was said before needs no login.
    #[doc(hidden)]
    #[must_use]
    pub fn requires_login(&self, access: &crate::Access) -> bool {
        self.auth_required && access.may_write()
    }

    pub(crate) fn offers_logout(&self) -> bool {
        self.logout.unwrap_or(!self.auth_methods.is_empty())
    }
}

impl Default for AgentInfo {
    fn default() -> Self {
        let program = std::env::current_exe().ok();
        let name = program
            .as_deref()
            .and_then(|path| path.file_stem()?.to_str());
        Self::new(name.unwrap_or("agent"), "0.0.0")
    }
}
