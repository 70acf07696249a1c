//! Authentication in a terminal: the command with which the user logs in.
//!
//! Two forms are understood: methods of type `terminal`, and methods of any type with
//! `_meta["terminal-auth"]`, which several agents offer to clients that declare the same key.
//! Running the command, and connecting again afterwards, is up to the application, which has the terminal.
//!
//! Spec: <https://agentclientprotocol.com/protocol/v1/authentication#terminal-authentication>

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;

use acp_sdk::Meta;
use acp_sdk::v1::{AuthCapabilities, AuthMethod, AuthMethodId};
use serde::Deserialize;

use crate::client::Client;
use crate::process::CommandLine;

/// The key in `_meta`, of capabilities and of methods.
const KEY: &str = "terminal-auth";

/// A command that logs the user in. It needs a terminal; exit code 0 means success.
///
/// Created by [`Client::login_command`]. After it, the agent must be started again: it reads its
/// credentials when it starts.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct LoginCommand {
    /// The authentication method. It is not sent to the agent.
    pub method: AuthMethodId,
    /// What to call the terminal.
    pub label: String,
    /// The program; a name without a slash is looked up in `PATH`.
    pub program: OsString,
    /// Its arguments.
    pub args: Vec<OsString>,
    /// Variables to set, or to remove where there is no value. The others are inherited.
    pub env: Vec<(OsString, Option<OsString>)>,
    /// The directory to start in; `None` means that of this process.
    pub current_dir: Option<PathBuf>,
}

impl LoginCommand {
    /// Returns the command, to be run with the streams of a terminal.
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
        command
    }
}

impl Client {
    /// Returns the command of an authentication method that needs a terminal.
    ///
    /// Agents offer such methods to clients that declare
    /// [`terminal_auth`](crate::ClientBuilder::terminal_auth). `None` if the agent offers no such method
    /// of this id: others are for [`authenticate`](Self::authenticate). `None` also if this client has not
    /// started the agent, because then its command is not known.
    #[must_use]
    pub fn login_command(&self, method: &str) -> Option<LoginCommand> {
        let process = self.process()?;
        let agent = process.command_line();
        let mut methods = self.agent_info().auth_methods.iter();
        methods.find_map(|offered| {
            login_command(offered, agent).filter(|login| login.method.as_str() == method)
        })
    }
}

/// What a client declares that can run such commands.
pub(crate) fn declared() -> (AuthCapabilities, Meta) {
    let meta = Meta::new().with(KEY, &true);
    (AuthCapabilities::new().with_terminal(true), meta)
}

/// The value of the key in the `_meta` of a method: a command of its own.
#[derive(Debug, Deserialize)]
struct Whole {
    command: String,
    #[serde(default)]
    args: Vec<String>,
    #[serde(default)]
    env: BTreeMap<String, String>,
    label: Option<String>,
}

fn login_command(method: &AuthMethod, agent: &CommandLine) -> Option<LoginCommand> {
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
