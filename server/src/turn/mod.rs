//! One prompt being answered: what a handler can say, show, ask and do.
//!
//! Everything that a handler sends goes through [`Turn`] and the guards made from it. They
//! keep the promises that the protocol wants of an agent:
//!
//! - what the client did not offer is never used: the call fails with [`Missing`](crate::Error);
//! - nothing is sent once the turn is over: the call fails with [`Over`](crate::Error);
//! - in a cancelled turn nothing is asked any more: the call fails with [`Cancelled`](crate::Error);
//! - no tool call stays open and no terminal unreleased, however the handler ends.

mod core;
mod elicitation;
mod permission;
mod run;
mod settings;
mod terminal;
mod tool_call;

pub(crate) use self::core::{About, Core, forgotten};
pub use elicitation::UrlElicitation;
pub use permission::Decision;
pub(crate) use run::run;
pub use terminal::{Exit, Terminal};
pub use tool_call::ToolCall;

use std::sync::Arc;

use acp_sdk::Meta;
use acp_sdk::v1::{
    AvailableCommand, AvailableCommandsUpdate, ClientHandle, ContentBlock, CreateTerminalRequest,
    ElicitationAction, ElicitationSchema, PermissionOption, Plan, PlanEntry, PromptRequest,
    ReadTextFileRequest, SessionConfigOption, SessionInfoUpdate, SessionUpdate, ToolCallLocation,
    ToolKind, UsageUpdate, WriteTextFileRequest,
};

use crate::session::{Session, Voice};
use crate::{Capability, Result};

/// A prompt and the way to answer it.
///
/// When the turn is cancelled, the handler's future is dropped where it waits, after the
/// [grace](crate::Runtime::grace) that the runtime allows it. Whatever must be done then
/// belongs into the drop of a value that the future holds.
///
/// A tool call that changes a file, and one that runs a command:
///
/// ```
/// use acp_sdk::v1::{StopReason, ToolKind};
/// use acp_server::{Capability, Result, Turn};
///
/// async fn prompt(turn: Turn) -> Result<StopReason> {
///     let old = turn.read_file("Cargo.toml").await?;
///     let new = old.replace("2021", "2024");
///     let mut edit = turn.tool_call("Raise the edition", ToolKind::Edit).await?;
///     edit.diff("Cargo.toml", Some(&old), &new).await?;
///     if !turn.ask_permission(&edit).await?.is_allowed() {
///         edit.reject().await?;
///         return Ok(StopReason::EndTurn);
///     }
///     turn.write_file("Cargo.toml", new).await?;
///     edit.complete("").await?;
///     if turn.offers(Capability::Terminal) {
///         let mut check = turn.tool_call("cargo check", ToolKind::Execute).await?;
///         let terminal = turn.terminal("cargo", ["check"]).await?;
///         check.terminal(&terminal).await?;
///         match terminal.wait().await? {
///             exit if exit.is_success() => check.complete("").await?,
///             exit => check.fail(exit.to_string()).await?,
///         }
///     }
///     Ok(StopReason::EndTurn)
/// }
/// ```
///
/// Spec: <https://agentclientprotocol.com/protocol/v1/prompt-turn>
#[derive(Debug)]
pub struct Turn {
    core: Arc<Core>,
    prompt: Vec<ContentBlock>,
    meta: Option<Meta>,
}

impl Turn {
    pub(crate) fn new(core: Arc<Core>, request: PromptRequest) -> Self {
        Self {
            core,
            prompt: request.prompt,
            meta: request.meta,
        }
    }

    /// What the user said.
    #[must_use]
    pub fn prompt(&self) -> &[ContentBlock] {
        &self.prompt
    }

    /// What the client attached to the prompt, such as a trace context.
    ///
    /// Spec: <https://agentclientprotocol.com/protocol/v1/extensibility#the-meta-field>
    #[must_use]
    pub fn meta(&self) -> Option<&Meta> {
        self.meta.as_ref()
    }

    /// The text blocks of the prompt, a line feed between them.
    #[must_use]
    pub fn prompt_text(&self) -> String {
        let texts: Vec<&str> = self
            .prompt
            .iter()
            .filter_map(|block| match block {
                ContentBlock::Text(text) => Some(text.text.as_str()),
                _ => None,
            })
            .collect();
        texts.join("\n")
    }

    /// The session that the prompt belongs to.
    #[must_use]
    pub fn session(&self) -> &Session {
        &self.core.session
    }

    /// Whether the client can do this.
    #[must_use]
    pub fn offers(&self, capability: Capability) -> bool {
        self.core.offers(capability)
    }

    /// The config options with their current values, as this client may see them.
    #[must_use]
    pub fn config_options(&self) -> Vec<SessionConfigOption> {
        let booleans = self.offers(Capability::BooleanOptions);
        self.session()
            .set(|settings| settings.shown(booleans))
            .unwrap_or_default()
    }

    /// Waits until the turn is cancelled.
    pub async fn cancelled(&self) {
        self.core.cancel.cancelled().await;
    }

    /// Whether the turn has been cancelled.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.core.cancel.is_cancelled()
    }

    /// Says something: text that is added to the agent's message. A long one is sent in several
    /// pieces, for some clients take no long lines.
    ///
    /// # Errors
    ///
    /// [`Error::Over`](crate::Error::Over) after the turn; else when the connection or the store fails. So it is
    /// for everything here that only tells the client something.
    pub async fn text(&self, text: impl Into<String>) -> Result<()> {
        self.core.say_text(Voice::Agent, text.into()).await
    }

    /// Adds content of any kind to the agent's message.
    ///
    /// # Errors
    ///
    /// As [`text`](Self::text).
    pub async fn content(&self, block: ContentBlock) -> Result<()> {
        self.core.say(Voice::Agent, block).await
    }

    /// Thinks aloud.
    ///
    /// # Errors
    ///
    /// As [`text`](Self::text).
    pub async fn thought(&self, text: impl Into<String>) -> Result<()> {
        self.core.say_text(Voice::Thought, text.into()).await
    }

    /// Shows the plan in full; it replaces the one shown before.
    ///
    /// # Errors
    ///
    /// As [`text`](Self::text).
    pub async fn plan(&self, entries: Vec<PlanEntry>) -> Result<()> {
        self.update(SessionUpdate::Plan(Plan::new(entries))).await
    }

    /// Announces a tool call, pending for now.
    ///
    /// # Errors
    ///
    /// As [`text`](Self::text).
    pub async fn tool_call(&self, title: impl Into<String>, kind: ToolKind) -> Result<ToolCall> {
        ToolCall::announce(&self.core, title.into(), kind, Vec::new()).await
    }

    /// Announces a tool call with the places in files that it touches.
    ///
    /// # Errors
    ///
    /// As [`text`](Self::text).
    pub async fn tool_call_at(
        &self,
        title: impl Into<String>,
        kind: ToolKind,
        locations: Vec<ToolCallLocation>,
    ) -> Result<ToolCall> {
        ToolCall::announce(&self.core, title.into(), kind, locations).await
    }

    /// Asks the user to allow a tool call, this once or not. A call that is allowed is
    /// [started](ToolCall::start).
    ///
    /// # Errors
    ///
    /// [`Error::Cancelled`](crate::Error::Cancelled) when the turn is, also by the answer; else when the client refuses
    /// the request or answers with what was not offered.
    pub async fn ask_permission(&self, call: &ToolCall) -> Result<Decision> {
        permission::ask(&self.core, call, permission::once()).await
    }

    /// Asks the user to allow a tool call, with options of your own.
    ///
    /// # Errors
    ///
    /// As [`ask_permission`](Self::ask_permission).
    pub async fn ask_permission_with(
        &self,
        call: &ToolCall,
        options: Vec<PermissionOption>,
    ) -> Result<Decision> {
        permission::ask(&self.core, call, options).await
    }

    /// Reads a text file through the client, which knows what the user has not saved. A
    /// relative path is taken from the session's working directory.
    ///
    /// # Errors
    ///
    /// [`Error::Missing`](crate::Error::Missing) if the client does not read files, [`Error::Cancelled`](crate::Error::Cancelled) when the turn
    /// is, else the client's error. So it is for everything here that asks the client for
    /// something.
    pub async fn read_file(&self, path: &str) -> Result<String> {
        self.core.needs(Capability::ReadTextFile)?;
        let request = ReadTextFileRequest::new(self.session().id(), self.session().resolve(path));
        let reading = self.core.client.read_text_file(request);
        Ok(self.core.unless_cancelled(reading).await?.content)
    }

    /// Writes a text file through the client. A relative path is taken from the session's
    /// working directory.
    ///
    /// # Errors
    ///
    /// As [`read_file`](Self::read_file).
    pub async fn write_file(&self, path: &str, content: impl Into<String>) -> Result<()> {
        self.core.needs(Capability::WriteTextFile)?;
        let path = self.session().resolve(path);
        let request = WriteTextFileRequest::new(self.session().id(), path, content);
        let writing = self.core.client.write_text_file(request);
        self.core.unless_cancelled(writing).await?;
        Ok(())
    }

    /// Starts a command in a terminal of the client, in the session's working directory. There
    /// is no shell: the command is a program, and each argument stands for itself.
    ///
    /// # Errors
    ///
    /// As [`read_file`](Self::read_file).
    pub async fn terminal<A: Into<String>>(
        &self,
        command: &str,
        arguments: impl IntoIterator<Item = A>,
    ) -> Result<Terminal> {
        let arguments = arguments.into_iter().map(Into::into).collect();
        let request = CreateTerminalRequest::new(self.session().id(), command)
            .with_args(arguments)
            .with_cwd(self.session().cwd());
        self.terminal_with(request).await
    }

    /// Starts a command in a terminal, with all that can be said about it.
    ///
    /// # Errors
    ///
    /// As [`read_file`](Self::read_file).
    pub async fn terminal_with(&self, request: CreateTerminalRequest) -> Result<Terminal> {
        Terminal::create(&self.core, request).await
    }

    /// Asks the user to fill in a form. Never for secrets: those need
    /// [`elicit_url`](Self::elicit_url).
    ///
    /// # Errors
    ///
    /// As [`read_file`](Self::read_file).
    pub async fn elicit(
        &self,
        message: impl Into<String>,
        form: ElicitationSchema,
    ) -> Result<ElicitationAction> {
        elicitation::form(&self.core, message.into(), form).await
    }

    /// Asks the user to open a URL and do something there.
    ///
    /// # Errors
    ///
    /// As [`read_file`](Self::read_file).
    pub async fn elicit_url(
        &self,
        message: impl Into<String>,
        url: impl Into<String>,
    ) -> Result<UrlElicitation> {
        elicitation::url(&self.core, message.into(), url.into()).await
    }

    /// Tells how much of the context is used, and the cost so far.
    ///
    /// # Errors
    ///
    /// As [`text`](Self::text).
    pub async fn usage(&self, usage: UsageUpdate) -> Result<()> {
        self.update(SessionUpdate::UsageUpdate(usage)).await
    }

    /// Tells which slash commands there are from now on. Those that are there from the
    /// beginning belong into [`Settings::commands`](crate::Settings::commands).
    ///
    /// # Errors
    ///
    /// As [`text`](Self::text).
    pub async fn commands(&self, commands: Vec<AvailableCommand>) -> Result<()> {
        let update = AvailableCommandsUpdate::new(commands);
        self.update(SessionUpdate::AvailableCommandsUpdate(update))
            .await
    }

    /// Gives the session a title, which `session/list` shows from the end of the turn on.
    ///
    /// # Errors
    ///
    /// As [`text`](Self::text).
    pub async fn title(&self, title: impl Into<String>) -> Result<()> {
        let title = title.into();
        let update = SessionInfoUpdate::new().with_title(title.as_str());
        self.update(SessionUpdate::SessionInfoUpdate(update))
            .await?;
        self.session().set_title(Some(title));
        Ok(())
    }

    /// Sends any update: those that have no method here, or with members that it leaves out. A
    /// tool call that is announced like this and not finished fails at the end of the turn. An
    /// update of the mode or of the commands changes the session's.
    ///
    /// # Errors
    ///
    /// [`Error::Missing`](crate::Error::Missing) when the client must offer something for this update and does not;
    /// else as [`text`](Self::text).
    pub async fn update(&self, update: SessionUpdate) -> Result<()> {
        self.core.update(&update).await
    }

    /// An id that nothing else in the session has or had, such as `compaction-7`.
    #[must_use]
    pub fn next_id(&self, kind: &str) -> String {
        self.session().next_id(kind)
    }

    /// The client, for calls that have no method here. Nothing is checked on this way.
    #[must_use]
    pub fn client(&self) -> &ClientHandle {
        &self.core.client
    }
}
