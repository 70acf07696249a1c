//! Effects with the user's permission, each as one call: a command, and the change of a file.

use acp_sdk::text::command_line;
use acp_sdk::v1::ToolKind;
use serde_json::json;

use super::{Exit, Turn};
use crate::{Capability, Result};

/// A command that was run to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CommandOutput {
    /// How the command ended.
    pub exit: Exit,
    /// What it wrote to both of its outputs.
    pub output: String,
    /// Whether the beginning of the output is missing, because it exceeds the terminal's limit.
    pub truncated: bool,
}

impl Turn {
    /// Runs a command to its end, with the user's permission, as a tool call. Returns `None` if the
    /// user rejects it.
    ///
    /// The call is announced with the command as its title and input, asks, shows the terminal, and
    /// ends as completed after exit code 0, otherwise as failed. The command runs as in
    /// [`terminal`](Self::terminal).
    ///
    /// ```
    /// # async fn example(turn: acp_server::Turn) -> acp_server::Result<()> {
    /// match turn.run_command("cargo", ["test"]).await? {
    ///     Some(tests) if tests.exit.is_success() => turn.send_text("All tests pass.").await,
    ///     Some(tests) => turn.send_text(format!("Tests failed:\n{}", tests.output)).await,
    ///     None => turn.send_text("I may not run the tests.").await,
    /// }
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`ask_permission`](Self::ask_permission) and [`read_file`](Self::read_file). Nothing is
    /// asked if nobody serves terminals.
    pub async fn run_command<'a>(
        &self,
        command: &str,
        arguments: impl IntoIterator<Item = &'a str>,
    ) -> Result<Option<CommandOutput>> {
        self.core.provider(Capability::Terminal).await?;
        let arguments: Vec<&str> = arguments.into_iter().collect();
        let title = command_line(std::iter::once(&command).chain(&arguments));
        let input = json!({"command": command, "args": arguments, "cwd": self.session().cwd()});
        let call = self.tool_call(title, ToolKind::Execute).raw_input(input);
        let mut call = call.await?;
        if !self.ask_permission(&call).await?.is_allowed() {
            call.reject().await?;
            return Ok(None);
        }
        let terminal = match self.terminal(command, arguments).await {
            Ok(terminal) => terminal,
            Err(error) => {
                call.fail(error.to_string()).await?;
                return Err(error);
            }
        };
        call.add_terminal(&terminal).await?;
        let exit = terminal.wait().await?;
        let response = terminal.output().await?;
        match exit.is_success() {
            true => call.complete("").await?,
            false => call.fail(exit.to_string()).await?,
        }
        // Clients display the terminal also after its release.
        terminal.release().await?;
        Ok(Some(CommandOutput {
            exit,
            output: response.output,
            truncated: response.truncated,
        }))
    }

    /// Writes a file, with the user's permission, as a tool call. Returns `false` if the user
    /// rejects it.
    ///
    /// The call is announced with the change as its content and the file as its location. `old` is
    /// the former text, `None` for a new file. A relative path is taken from the session's working
    /// directory.
    ///
    /// ```
    /// # async fn example(turn: acp_server::Turn) -> acp_server::Result<()> {
    /// let old = turn.read_file("Cargo.toml").await?;
    /// let new = old.replace("2021", "2024");
    /// turn.edit_file("Cargo.toml", Some(&old), &new).await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`run_command`](Self::run_command).
    pub async fn edit_file(&self, path: &str, old: Option<&str>, new: &str) -> Result<bool> {
        self.core.provider(Capability::WriteTextFile).await?;
        let verb = if old.is_some() { "Edit" } else { "Create" };
        let call = self.tool_call(format!("{verb} {path}"), ToolKind::Edit);
        let call = call.location(path).diff(path, old, new).await?;
        if !self.ask_permission(&call).await?.is_allowed() {
            call.reject().await?;
            return Ok(false);
        }
        match self.write_file(path, new).await {
            Ok(()) => call.complete("").await?,
            Err(error) => {
                call.fail(error.to_string()).await?;
                return Err(error);
            }
        }
        Ok(true)
    }
}
