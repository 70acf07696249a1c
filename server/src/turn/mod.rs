//! One prompt being answered: what a handler can send, ask and do.
//!
//! Everything that a handler sends goes through [`Turn`] and the guards made from it. They
//! guarantee:
//!
//! - What no client offers is never asked of one: the call fails with
//!   [`Unsupported`](crate::Error), or is served on the agent's own machine where
//!   [`LocalTools`](crate::LocalTools) says so.
//! - Nothing is sent after the turn: the call fails with [`TurnEnded`](crate::Error).
//! - In a cancelled turn nothing is asked: the call fails with [`Cancelled`](crate::Error).
//! - No tool call stays open and no terminal unreleased, however the handler ends.

mod announcement;
mod child;
mod core;
mod effects;
mod elicitation;
#[cfg(feature = "schemars")]
mod form;
mod left_open;
mod local;
mod permission;
mod question;
mod run;
mod settings;
mod steering;
mod terminal;
mod tool_call;
mod unfinished;

pub use self::core::Role;
pub(crate) use self::core::{TurnCore, chunk, ends_message, push};
pub use announcement::NewToolCall;
pub use child::Child;
pub use effects::CommandOutput;
pub use elicitation::{Elicitation, FormValues, UrlElicitation};
pub(crate) use left_open::LeftOpen;
use local::Provider;
pub use permission::Decision;
pub(crate) use run::run;
pub use steering::OfferedInput;
pub use terminal::{Exit, Terminal};
pub use tool_call::ToolCall;

use std::sync::Arc;

use acp_sdk::v1::{
    AvailableCommand, AvailableCommandsUpdate, ClientHandle, ContentBlock,
    CreateElicitationRequest, CreateTerminalRequest, ElicitationSchema, PermissionOption, Plan,
    PlanEntry, ReadTextFileRequest, SessionConfigOption, SessionInfoUpdate, SessionUpdate,
    ToolCallId, ToolKind, UsageUpdate, WriteTextFileRequest,
};
use acp_sdk::{Json, Meta};

use crate::connection::Client;
use crate::event::RawUpdate;
use crate::event::TurnId;
use crate::session::{Ask, Reply};
use crate::{Capability, Error, Result, Session};

/// A prompt, and the functions to answer it. Clones belong to the same turn, and can be moved to
/// spawned tasks.
///
/// When the turn is cancelled, calls that wait for a client fail, and after the
/// [`cancel_deadline`](crate::Policies::cancel_deadline) the handler's future is dropped where it
/// waits. Release what the future holds in the `Drop` of a value.
///
/// A tool call that changes a file, and one that runs a command, each with the user's permission:
///
/// ```
/// use acp_sdk::v1::StopReason;
/// use acp_server::{Capability, Result, Turn};
///
/// async fn answer(turn: Turn) -> Result<StopReason> {
///     let old = turn.read_file("Cargo.toml").await?;
///     let new = old.replace("2021", "2024");
///     let edited = turn.edit_file("Cargo.toml", Some(&old), &new).await?;
///     if edited && turn.offers(Capability::Terminal) {
///         let check = turn.run_command("cargo", ["check"]).await?;
///         if let Some(check) = check.filter(|check| !check.exit.is_success()) {
///             turn.send_text(format!("It does not compile:\n{}", check.output)).await?;
///         }
///     }
///     Ok(StopReason::EndTurn)
/// }
/// ```
///
/// Spec: <https://agentclientprotocol.com/protocol/v1/prompt-turn>
#[derive(Clone, Debug)]
pub struct Turn {
    core: Arc<TurnCore>,
}

impl Turn {
    pub(crate) fn new(core: Arc<TurnCore>) -> Self {
        Self { core }
    }

    pub(crate) fn core(&self) -> &Arc<TurnCore> {
        &self.core
    }

    /// Returns the id, unique in the session.
    #[must_use]
    pub fn id(&self) -> TurnId {
        self.core.turn
    }

    /// Returns the prompt.
    #[must_use]
    pub fn prompt(&self) -> &[ContentBlock] {
        &self.core.prompt
    }

    /// Returns `_meta` of the prompt, such as a trace context.
    ///
    /// Spec: <https://agentclientprotocol.com/protocol/v1/extensibility#the-meta-field>
    #[must_use]
    pub fn meta(&self) -> Option<&Meta> {
        self.core.meta.as_ref()
    }

    /// Returns the text blocks of the prompt, with line feeds between them.
    #[must_use]
    pub fn prompt_text(&self) -> String {
        text_of(self.prompt())
    }

    /// Returns the session.
    #[must_use]
    pub fn session(&self) -> &Session {
        &self.core.session
    }

    /// Returns whether an attached client offers this, or the agent's own machine serves it
    /// ([`LocalTools`](crate::LocalTools)).
    #[must_use]
    pub fn offers(&self, capability: Capability) -> bool {
        self.core.offers(capability)
    }

    /// Returns the config options with their current values.
    #[must_use]
    pub fn config_options(&self) -> Vec<SessionConfigOption> {
        let state = self.session().state();
        state.settings.shown(true).unwrap_or_default()
    }

    /// Cancels the turn, as `session/cancel` does.
    #[doc(hidden)]
    pub fn cancel(&self) {
        self.core.cancel.cancel();
    }

    /// Sends that a tool call has failed, if it is open.
    #[doc(hidden)]
    pub fn fail_tool_call(&self, id: &ToolCallId) {
        self.core.call_dropped(id);
    }

    /// Waits until the turn is cancelled.
    pub async fn cancelled(&self) {
        self.core.cancel.cancelled().await;
    }

    /// Returns whether the turn has been cancelled.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.core.cancel.is_cancelled()
    }

    /// Adds text to the agent's message. Text of more than 32 KiB is sent in pieces, because some
    /// clients accept lines of 64 KiB only.
    ///
    /// Returns when the event has its number. Clients receive it when it is committed.
    ///
    /// # Errors
    ///
    /// [`Error::TurnEnded`](crate::Error::TurnEnded) after the turn, and
    /// [`Error::Store`](crate::Error::Store) when the store has failed in this turn. The same
    /// holds for all functions here that only send.
    pub async fn send_text(&self, text: impl Into<String>) -> Result<()> {
        self.core.send_text(Role::Agent, text.into()).await
    }

    /// Adds content of any kind to the agent's message.
    ///
    /// # Errors
    ///
    /// As [`send_text`](Self::send_text).
    pub async fn send_content(&self, block: ContentBlock) -> Result<()> {
        self.core.send_block(Role::Agent, block).await
    }

    /// Adds text to the agent's thoughts.
    ///
    /// # Errors
    ///
    /// As [`send_text`](Self::send_text).
    pub async fn send_thought(&self, text: impl Into<String>) -> Result<()> {
        self.core.send_text(Role::Thought, text.into()).await
    }

    /// Replaces the plan.
    ///
    /// # Errors
    ///
    /// As [`send_text`](Self::send_text).
    pub async fn set_plan(&self, entries: Vec<PlanEntry>) -> Result<()> {
        self.send(SessionUpdate::Plan(Plan::new(entries))).await
    }

    /// Announces a tool call with the status `pending`, when the result is awaited.
    ///
    /// Give it what the user needs to judge it, such as its [input](NewToolCall::raw_input).
    /// [`run_command`](Self::run_command) and [`edit_file`](Self::edit_file) are whole tool calls.
    ///
    /// # Errors
    ///
    /// As [`send_text`](Self::send_text).
    pub fn tool_call(&self, title: impl Into<String>, kind: ToolKind) -> NewToolCall {
        NewToolCall::new(&self.core, title.into(), kind)
    }

    /// Asks the user to allow a tool call once. A call that is allowed is
    /// [started](ToolCall::start).
    ///
    /// The client that prompted is asked. If it is gone, the other attached clients are; if there
    /// is none, the question waits for the next one. The first answer counts.
    ///
    /// # Errors
    ///
    /// [`Error::Cancelled`](crate::Error::Cancelled) when the turn is cancelled, which the answer
    /// can do too; otherwise when the client refuses the request or chooses an unknown option.
    pub async fn ask_permission(&self, call: &ToolCall) -> Result<Decision> {
        permission::ask(&self.core, call, permission::once()).await
    }

    /// Asks the user to allow a tool call, with other options. An answer for
    /// [always](Decision::is_always) is remembered for calls of the same kind and title.
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

    /// Reads a text file through a client, which also has what the user has not saved. A relative
    /// path is taken from the session's working directory. Without such a client, the file is one
    /// of the agent's own machine where [`LocalTools`](crate::LocalTools) allows that.
    ///
    /// # Errors
    ///
    /// [`Error::Unsupported`](crate::Error::Unsupported) if nobody serves this,
    /// [`Error::Cancelled`](crate::Error::Cancelled) when the turn is cancelled; otherwise the
    /// client's error, or that of the agent's own machine, which both have a
    /// [`code`](crate::Error::code). The same holds for all functions here that ask a client.
    pub async fn read_file(&self, path: &str) -> Result<String> {
        let request = ReadTextFileRequest::new(self.session().id(), self.session().resolve(path));
        self.read_file_with(request).await
    }

    /// Reads a text file, with all members of the request: its path is absolute, `line` counts from
    /// 1, and lines keep their endings.
    ///
    /// # Errors
    ///
    /// As [`read_file`](Self::read_file).
    pub async fn read_file_with(&self, request: ReadTextFileRequest) -> Result<String> {
        match self.core.provider(Capability::ReadTextFile).await? {
            Provider::Client(client) => {
                let client = caller(&client, Capability::ReadTextFile)?;
                let reading = client.read_text_file(request);
                Ok(self.core.unless_cancelled(reading).await?.content)
            }
            Provider::Local => self.core.read_locally(request).await,
        }
    }

    /// Writes a text file through a client, or else as [`read_file`](Self::read_file). A relative
    /// path is taken from the session's working directory.
    ///
    /// # Errors
    ///
    /// As [`read_file`](Self::read_file).
    pub async fn write_file(&self, path: &str, content: impl Into<String>) -> Result<()> {
        let path = self.session().resolve(path);
        match self.core.provider(Capability::WriteTextFile).await? {
            Provider::Client(client) => {
                let request = WriteTextFileRequest::new(self.session().id(), path, content);
                let client = caller(&client, Capability::WriteTextFile)?;
                let writing = client.write_text_file(request);
                self.core.unless_cancelled(writing).await?;
                Ok(())
            }
            Provider::Local => self.core.write_locally(path, content.into()).await,
        }
    }

    /// Starts a command in a terminal of a client, or else as [`read_file`](Self::read_file), in the
    /// session's working directory. There is no shell: the command is a program, and each argument
    /// is passed as it is.
    ///
    /// ```
    /// # async fn example(turn: acp_server::Turn) -> acp_server::Result<()> {
    /// let listing = turn.terminal("ls", []).await?;
    /// # drop(listing);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`read_file`](Self::read_file).
    pub async fn terminal<'a>(
        &self,
        command: &str,
        arguments: impl IntoIterator<Item = &'a str>,
    ) -> Result<Terminal> {
        let arguments = arguments.into_iter().map(str::to_owned).collect();
        let request = CreateTerminalRequest::new(self.session().id(), command)
            .with_args(arguments)
            .with_cwd(self.session().cwd());
        self.terminal_with(request).await
    }

    /// Starts a command in a terminal, with all members of the request.
    ///
    /// # Errors
    ///
    /// As [`read_file`](Self::read_file).
    pub async fn terminal_with(&self, request: CreateTerminalRequest) -> Result<Terminal> {
        Terminal::create(&self.core, request).await
    }

    /// Asks the user to fill in a form. Never ask for secrets in a form: use
    /// [`elicit_url`](Self::elicit_url).
    ///
    /// A client without forms is no error: see [`Elicitation::NotOffered`]. With the feature
    /// `schemars`, `elicit_as` makes the form from a type.
    ///
    /// # Errors
    ///
    /// [`Error::Cancelled`](crate::Error::Cancelled) when the turn is cancelled; otherwise the
    /// client's error.
    pub async fn elicit(
        &self,
        message: impl Into<String>,
        form: ElicitationSchema,
    ) -> Result<Elicitation<FormValues>> {
        elicitation::form(&self.core, message.into(), form).await
    }

    /// Asks the user for input, with all members of the request.
    ///
    /// # Errors
    ///
    /// As [`elicit`](Self::elicit).
    pub async fn elicit_with(
        &self,
        request: CreateElicitationRequest,
    ) -> Result<Elicitation<FormValues>> {
        elicitation::ask(&self.core, request).await
    }

    /// Asks the user to open a URL and do something there.
    ///
    /// # Errors
    ///
    /// As [`elicit`](Self::elicit).
    pub async fn elicit_url(
        &self,
        message: impl Into<String>,
        url: impl Into<String>,
    ) -> Result<Elicitation<UrlElicitation>> {
        elicitation::url(&self.core, message.into(), url.into()).await
    }

    /// Reports the used part of the context, and the cost so far.
    ///
    /// # Errors
    ///
    /// As [`send_text`](Self::send_text).
    pub async fn report_usage(&self, usage: UsageUpdate) -> Result<()> {
        self.send(SessionUpdate::UsageUpdate(usage)).await
    }

    /// Replaces the slash commands. Those that exist from the beginning belong into
    /// [`Settings::commands`](crate::Settings::commands).
    ///
    /// # Errors
    ///
    /// As [`send_text`](Self::send_text).
    pub async fn set_commands(&self, commands: Vec<AvailableCommand>) -> Result<()> {
        let update = AvailableCommandsUpdate::new(commands);
        self.send(SessionUpdate::AvailableCommandsUpdate(update))
            .await
    }

    /// Sets the title of the session, which `session/list` shows.
    ///
    /// # Errors
    ///
    /// As [`send_text`](Self::send_text).
    pub async fn set_title(&self, title: impl Into<String>) -> Result<()> {
        let title = title.into();
        let update = SessionInfoUpdate::new().with_title(title.as_str());
        let update = SessionUpdate::SessionInfoUpdate(update);
        self.send(update).await
    }

    /// Sends any update: a kind without a function here, or with members that it leaves out. A
    /// tool call that is announced this way and not finished fails at the end of the turn. An
    /// update of the mode, of the options, of the commands or of the title changes those of the session.
    ///
    /// Clients that do not offer the kind are not sent it.
    ///
    /// # Errors
    ///
    /// As [`send_text`](Self::send_text).
    pub fn send(&self, update: SessionUpdate) -> impl Future<Output = Result<()>> + Send {
        self.core.send(update)
    }

    /// Sends an update of another agent, with members that [`SessionUpdate`] does not have.
    pub async fn send_raw(&self, update: &mut RawUpdate) -> Result<()> {
        self.core.send_raw(update).await
    }

    /// Asks a question of another agent.
    pub async fn ask(&self, ask: Ask) -> Result<Reply> {
        question::ask(&self.core, ask).await
    }

    /// Sets the members of the prompt's answer besides the stop reason, a JSON object: `_meta`, and
    /// what later versions of the protocol define. Only the client that prompted receives them. The
    /// log keeps the token counts of `usage`, the last value set before the turn ends.
    pub fn set_answer(&self, members: impl Into<Option<Json>>) {
        self.core.set_answer(members.into());
    }

    /// Returns an id that nothing else in the session has or had, such as `compaction-12-7`.
    #[must_use]
    pub fn next_id(&self, kind: &str) -> String {
        self.core.next_id(kind)
    }

    /// Returns a client that offers a capability, for calls without a function here: the one that
    /// prompted, or else another one. The client has been sent everything before. The agent's own
    /// machine does not count.
    ///
    /// # Errors
    ///
    /// [`Error::Unsupported`](crate::Error::Unsupported) if there is none,
    /// [`Error::Cancelled`](crate::Error::Cancelled) when the turn is cancelled.
    pub async fn client(&self, capability: Capability) -> Result<ClientHandle> {
        let client = self.core.needs(capability).await?;
        caller(&client, capability)
    }
}

/// Returns the text blocks, with line feeds between them.
#[must_use]
pub fn text_of(blocks: &[ContentBlock]) -> String {
    let texts: Vec<&str> = blocks
        .iter()
        .filter_map(|block| match block {
            ContentBlock::Text(text) => Some(text.text.as_str()),
            _ => None,
        })
        .collect();
    texts.join("\n")
}

fn caller(client: &Client, capability: Capability) -> Result<ClientHandle> {
    client.handle().ok_or(Error::Unsupported(capability))
}
