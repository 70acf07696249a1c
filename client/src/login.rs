//! Authentication in a terminal: the command with which the user logs in.
//!
//! Supports methods of type `terminal`, and methods of any type with `_meta["terminal-auth"]`,
//! which several agents offer to clients that declare the same key. The application runs the
//! command in its terminal and connects again afterwards.
//!
//! Spec: <https://agentclientprotocol.com/protocol/v1/authentication#terminal-authentication>

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;

use acp_sdk::Meta;
use acp_sdk::v1::{AuthCapabilities, AuthMethod, AuthMethodId};
use serde::Deserialize;

use crate::process::{CommandLine, tokens};

/// The key in the `_meta` of capabilities and of methods.
const KEY: &str = "terminal-auth";

/// A command that logs the user in. It requires a terminal; exit code 0 means success.
///
/// Created by [`Client::login_command`](crate::Client::login_command). Restart the agent afterwards, because it reads its
/// credentials when it starts.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct LoginCommand {
    /// The authentication method. It is not sent to the agent.
    pub method: AuthMethodId,
    /// The title of the terminal.
    pub label: String,
    /// The program. A name without a slash is searched in `PATH`.
    pub program: OsString,
    /// Its arguments.
    pub args: Vec<OsString>,
    /// Variables to set, or to remove if the value is `None`. The others are inherited, except the
    /// tokens of `acp` and `acp-server`.
    pub env: Vec<(OsString, Option<OsString>)>,
    /// The working directory; `None` for that of this process.
    pub current_dir: Option<PathBuf>,
}

impl LoginCommand {
    /// Returns the command, to run on the streams of a terminal.
    #[must_use]
    pub fn command(&self) -> std::process::Command {
        let mut command = std::process::Command::new(&self.program);
        command.args(&self.args);
        for (name, value) in &self.env {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        if let Some(directory) = &self.current_dir {
            command.current_dir(directory);
        }
        tokens::withhold(&mut command);
        command
    }
}

/// Returns the capabilities of a client that can run login commands.
pub(crate) fn declared() -> (AuthCapabilities, Meta) {
    let meta = Meta::new().with(KEY, &true);
    (AuthCapabilities::new().with_terminal(true), meta)
}

/// The value of the key in the `_meta` of a method: a separate command.
#[derive(Debug, Deserialize)]
struct Whole {
    command: String,
    #[serde(default)]
    args: Vec<String>,
    #[serde(default)]
    env: BTreeMap<String, String>,
    label: Option<String>,
}

/// Returns the command of a method that requires a terminal; `None` for other methods.
pub(crate) fn login_command(method: &AuthMethod, agent: &CommandLine) -> Option<LoginCommand> {
    let of_agent = |method: AuthMethodId, label: String| LoginCommand {
        method,
        label,
        program: agent.program.clone(),
        args: agent.args.clone(),
        env: agent.env.clone(),
        current_dir: agent.cwd.clone(),
    };
    let variable = |(name, value): (&str, &str)| (name.into(), Some(value.into()));
    match method {
        AuthMethod::Terminal(terminal) => {
            let mut login = of_agent(terminal.id.clone(), terminal.name.clone());
            login.args.extend(terminal.args.iter().map(Into::into));
            let env = terminal.env.iter();
            login
                .env
                .extend(env.map(|(name, value)| variable((name, value))));
            Some(login)
        }
        AuthMethod::Agent(other) => {
            let whole: Whole = other.meta.as_ref()?.get(KEY)?;
            let mut login = of_agent(other.id.clone(), whole.label.unwrap_or(other.name.clone()));
            login.program = whole.command.into();
            login.args = whole.args.into_iter().map(Into::into).collect();
            let env = whole.env.iter();
            login
                .env
                .extend(env.map(|(name, value)| variable((name, value))));
            Some(login)
        }
        _ => None,
    }
}
