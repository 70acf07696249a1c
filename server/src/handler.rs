//! What the author of an agent writes.

use acp_sdk::Json;
use acp_sdk::v1::{
    AgentContext, AuthMethod, AuthMethodId, Implementation, McpCapabilities, PromptCapabilities,
    StopReason,
};

use crate::{HandlerResult, Session, Settings, Turn};

/// An agent, as far as it differs from others: what it does with a prompt.
///
/// Sessions, queues, cancellation, history and the promises of the protocol are the
/// [`Runtime`](crate::Runtime)'s. Everything but [`prompt`](Self::prompt) has a default.
pub trait Handler: Send + Sync + 'static {
    /// Answers a prompt. One at a time is answered in a session; sessions run side by side.
    ///
    /// # Errors
    ///
    /// Becomes the error of the request, unless the turn was cancelled.
    fn prompt(&self, turn: Turn) -> impl Future<Output = HandlerResult<StopReason>> + Send;

    /// What the agent tells of itself in `initialize`.
    fn profile(&self) -> Profile {
        Profile::default()
    }

    /// A session becomes active: it is new, or has been loaded or resumed after it was closed.
    /// Returns what can be set in it, at the defaults; the runtime puts back what was changed
    /// in the session. Calls of this and of [`close`](Self::close) for a session alternate.
    ///
    /// # Errors
    ///
    /// Becomes the error of the request.
    fn open(&self, session: &Session) -> impl Future<Output = HandlerResult<Settings>> + Send {
        let _ = session;
        async { Ok(Settings::new()) }
    }

    /// A session is no longer active: it has been closed or deleted. No turn is running in it.
    /// When the connection ends, the handler is dropped instead.
    fn close(&self, session: &Session) -> impl Future<Output = ()> + Send {
        let _ = session;
        async {}
    }

    /// Authenticates the user with a method of the [profile](Self::profile).
    ///
    /// # Errors
    ///
    /// Becomes the error of the request; the user is not authenticated then.
    fn authenticate(
        &self,
        method: &AuthMethodId,
    ) -> impl Future<Output = HandlerResult<()>> + Send {
        let _ = method;
        async { Ok(()) }
    }

    /// Forgets the credentials.
    ///
    /// # Errors
    ///
    /// Becomes the error of the request; the user is still authenticated then.
    fn logout(&self) -> impl Future<Output = HandlerResult<()>> + Send {
        async { Ok(()) }
    }

    /// Answers a request that the protocol does not define.
    ///
    /// # Errors
    ///
    /// Becomes the error of the request.
    fn ext_request(
        &self,
        cx: &AgentContext,
        method: &str,
        params: Option<Json>,
    ) -> impl Future<Output = HandlerResult<Json>> + Send {
        let _ = (cx, params);
        let error = acp_sdk::HandlerError::method_not_found(method);
        async { Err(error) }
    }

    /// Handles a notification that the protocol does not define.
    fn ext_notification(
        &self,
        cx: &AgentContext,
        method: &str,
        params: Option<Json>,
    ) -> impl Future<Output = ()> + Send {
        let _ = (cx, method, params);
        async {}
    }
}

/// What an agent tells of itself.
///
/// ```
/// use acp_sdk::v1::{AuthMethodAgent, PromptCapabilities};
/// use acp_server::Profile;
///
/// let profile = Profile::new("my-agent", env!("CARGO_PKG_VERSION"))
///     .title("My agent")
///     .prompt(PromptCapabilities::new().with_image(true).with_embedded_context(true))
///     .auth_method(AuthMethodAgent::new("login", "Log in in the browser"))
///     .require_auth();
/// assert!(profile.auth_required);
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Profile {
    /// Name, title and version. By default the name is that of the program.
    pub info: Implementation,
    /// What prompts may contain besides text and links. Nothing by default; the runtime
    /// refuses prompts with other content.
    pub prompt: PromptCapabilities,
    /// Which MCP servers besides those on stdio the agent can use. None by default.
    pub mcp: McpCapabilities,
    /// How the user can authenticate. Not at all by default.
    pub auth_methods: Vec<AuthMethod>,
    /// Whether sessions need an authenticated user from the start. They do after a logout in
    /// any case.
    pub auth_required: bool,
}

impl Profile {
    /// A profile with this name and version, and all else at its default.
    pub fn new(name: impl Into<String>, version: impl Into<String>) -> Self {
        Self {
            info: Implementation::new(name, version),
            prompt: PromptCapabilities::default(),
            mcp: McpCapabilities::default(),
            auth_methods: Vec::new(),
            auth_required: false,
        }
    }

    /// The same with a title for people to read.
    #[must_use]
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.info = self.info.with_title(title);
        self
    }

    /// The same with these kinds of content in prompts.
    #[must_use]
    pub fn prompt(mut self, capabilities: PromptCapabilities) -> Self {
        self.prompt = capabilities;
        self
    }

    /// The same with these transports of MCP servers.
    #[must_use]
    pub fn mcp(mut self, capabilities: McpCapabilities) -> Self {
        self.mcp = capabilities;
        self
    }

    /// The same with one more way to authenticate.
    #[must_use]
    pub fn auth_method(mut self, method: impl Into<AuthMethod>) -> Self {
        self.auth_methods.push(method.into());
        self
    }

    /// The same, and sessions need an authenticated user.
    #[must_use]
    pub fn require_auth(mut self) -> Self {
        self.auth_required = true;
        self
    }
}

impl Default for Profile {
    fn default() -> Self {
        let program = std::env::current_exe().ok();
        let name = program
            .as_deref()
            .and_then(|path| path.file_stem()?.to_str());
        Self::new(name.unwrap_or("agent"), "0.0.0")
    }
}
