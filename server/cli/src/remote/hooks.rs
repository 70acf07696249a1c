//! `--hook`: webhooks that begin turns of named sessions.

use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;

use acp_server::Server;
use acp_server_inbox::{Credentials, Hook, HookError, Hooks, Inbox, InboxError};
use acp_server_remote::{Agents, HookAnswer, HookCall, ServeSettings, Token, hooks};

use super::super::Failure;
use super::super::usage::usage;
use super::secrets;

/// A webhook as it is given: `NAME=FILE`.
#[derive(Clone, Debug)]
pub struct NamedHook {
    name: String,
    /// The file with its secret.
    file: PathBuf,
}

impl NamedHook {
    pub(super) fn name(&self) -> &str {
        &self.name
    }
}

impl FromStr for NamedHook {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once('=') {
            Some((name, file)) if !file.is_empty() => Ok(Self {
                name: name.to_owned(),
                file: file.into(),
            }),
            _ => Err("expected NAME=FILE; the file has the secret".to_owned()),
        }
    }
}

/// Webhooks whose secrets are read.
pub(super) struct ReadHooks(Vec<(Hook, Token)>);

impl ReadHooks {
    /// Reads the secrets.
    ///
    /// # Errors
    ///
    /// Wrong usage, when a file cannot be read, a secret is too short, or a name is invalid or given twice.
    pub(super) fn read(named: &[NamedHook]) -> Result<Self, Failure> {
        let mut hooks: Vec<(Hook, Token)> = Vec::new();
        for NamedHook { name, file } in named {
            let secret = secrets::from_file(file)?;
            let hook = match Hook::new(name, secret.secret()) {
                Ok(hook) => hook,
                Err(error) => return usage(format!("--hook: {error}")),
            };
            if hooks.iter().any(|(other, _)| other.name() == name) {
                return usage(format!("--hook: two webhooks have the name {name}"));
            }
            hooks.push((hook, secret));
        }
        Ok(Self(hooks))
    }

    /// Returns the secrets, which no log may have.
    pub(super) fn secrets(&self) -> impl Iterator<Item = &Token> {
        self.0.iter().map(|(_, secret)| secret)
    }

    /// Adds the route. Each webhook begins turns of the first agent's session that has its name, which is created
    /// where the agent works if there is none.
    ///
    /// # Errors
    ///
    /// When the server's working directory does not exist any more.
    pub(super) fn mount(
        self,
        agents: &Agents,
        settings: &mut ServeSettings,
    ) -> Result<(), Failure> {
        if self.0.is_empty() {
            return Ok(());
        }
        let agent = agents.default_agent();
        let (server, directory) = (agent.server(), agent.session_directory()?);
        let registered = Hooks::new();
        let mut inboxes = Vec::new();
        for (hook, _) in self.0 {
            let of: Arc<(Server, String, String)> =
                Arc::new((server.clone(), hook.name().to_owned(), directory.clone()));
            let inbox = Inbox::opening(move || {
                let of = of.clone();
                Box::pin(async move {
                    let (server, name, directory) = &*of;
                    server.named_session(name, directory).await
                })
            });
            registered.add(hook, &inbox)?;
            inboxes.push(inbox);
        }
        settings.hooks = hooks(&settings.endpoints, move |call| {
            // The inboxes end with the route.
            let _ = &inboxes;
            answer(&registered, &call)
        });
        Ok(())
    }
}

fn answer(hooks: &Hooks, call: &HookCall<'_>) -> impl Future<Output = HookAnswer> + Send + use<> {
    let credentials = match call.signature() {
        Some(signature) => Credentials::Signature(signature),
        None => Credentials::Token(call.token().unwrap_or_default()),
    };
    let received = hooks.receive(call.name, credentials, call.body);
    async move {
        match received.await {
            Ok(()) => HookAnswer::Accepted,
            Err(HookError::Unauthorized(_)) => HookAnswer::Unauthorized,
            Err(error @ HookError::Body { .. }) => HookAnswer::Invalid(error.to_string()),
            Err(HookError::Inbox {
                error: InboxError::Full | InboxError::Unavailable,
                ..
            }) => HookAnswer::Full,
            // The others are not of a call.
            Err(_) => HookAnswer::Unknown,
        }
    }
}
