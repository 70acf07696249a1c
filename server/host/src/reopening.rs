//! The agent's session in a new process: loaded without a second copy of its conversation, or
//! replaced by one that has forgotten it.

use std::collections::BTreeMap;
use std::sync::Arc;

use acp_client::internal::Response;
use acp_sdk::v1::{
    AvailableCommand, AvailableCommandsUpdate, ConfigOptionUpdate, CurrentModeUpdate, ErrorCode,
    LoadSessionRequest, ResumeSessionRequest, SessionConfigOptionValue, SessionId, SessionUpdate,
    SetSessionConfigOptionRequest, SetSessionModeRequest, methods,
};
use acp_sdk::{HandlerError, HandlerResult, Json, Meta, RpcError};
use acp_server::SettingsChange;
use acp_server::internal::session::current_value;
use acp_server::{Session, Settings};

use super::HostedError;
use super::opening::{AgentSettings, notice};
use super::process::Process;
use super::processes::Processes;
use super::session::{AgentSession, HostedSession, Kept, UsedSession};
use super::stderr::printable;

/// The config option that stands for the modes.
const MODE: &str = "mode";

/// A session as the agent has it again.
struct Reopened {
    link: AgentSession,
    settings: AgentSettings,
    commands: Option<Vec<AvailableCommand>>,
}

impl HostedSession {
    /// Returns the agent's session. If its process has gone, another one is started, and the session
    /// is loaded there.
    ///
    /// # Errors
    ///
    /// When no process can be started, or the agent refuses.
    pub(super) async fn ensure(
        self: &Arc<Self>,
        processes: &Processes,
    ) -> HandlerResult<UsedSession> {
        let mut link = self.link.lock().await;
        if let Some(link) = link.as_ref()
            && let Some(used) = link.process.begin_use()
        {
            let session = link.clone();
            return Ok(UsedSession { session, used });
        }
        let granted = processes.get(self.key).await;
        let granted = granted.map_err(HostedError::answer)?;
        let process = granted.process.clone();
        self.release_terminals();
        let session = self.session()?;
        let changed = session.settings().changed().clone();
        let again = match Kept::of(&session) {
            Some(kept) => {
                self.reopen(&process, kept.agent_session, &changed, None)
                    .await?
            }
            None => Err("it is not known to the agent".to_owned()),
        };
        let new = match again {
            Ok(reopened) => {
                self.mirror(&session, reopened.settings, reopened.commands)
                    .await?;
                reopened.link
            }
            Err(reason) => {
                let mut fresh = AgentSettings::default();
                let keep = |_: &Session, settings| fresh = settings;
                let new = self.create(&process, None, keep).await?;
                let said = forgotten("load this session again", &reason);
                self.say(&session, &said).await?;
                self.mirror(&session, fresh, None).await?;
                new
            }
        };
        *link = Some(new.clone());
        let used = granted.used;
        Ok(UsedSession { session: new, used })
    }

    /// Opens a session that the store has.
    pub(super) async fn open_again(
        self: &Arc<Self>,
        process: &Arc<Process>,
        changed: &BTreeMap<String, SessionConfigOptionValue>,
        meta: Option<Meta>,
    ) -> HandlerResult<(AgentSession, Settings)> {
        let session = self.session()?;
        let again = match Kept::of(&session) {
            Some(kept) => {
                let id = kept.agent_session;
                self.reopen(process, id, changed, meta.clone()).await?
            }
            None => Err("it is not known to the agent".to_owned()),
        };
        match again {
            Ok(reopened) => {
                let mut settings = reopened.settings.mirrored(changed.clone());
                settings.set_commands(reopened.commands.unwrap_or_default());
                session.install_settings(settings.clone());
                Ok((reopened.link, settings))
            }
            Err(reason) => {
                let said = forgotten("load this session again", &reason);
                self.begin_anew(process, meta, &said).await
            }
        }
    }

    /// Gives a session with a conversation a new one of the agent, and says so in the conversation.
    pub(super) async fn begin_anew(
        self: &Arc<Self>,
        process: &Arc<Process>,
        meta: Option<Meta>,
        said: &str,
    ) -> HandlerResult<(AgentSession, Settings)> {
        let session = self.session()?;
        let put = |session: &Session, settings: AgentSettings| {
            session.install_settings(settings.mirrored(BTreeMap::new()));
        };
        let link = self.create(process, meta, put).await?;
        self.say(&session, said).await?;
        Ok((link, session.settings()))
    }

    /// Has the agent resume or load a session, and sets what the user had changed. The inner error
    /// says why the agent does not have the session any more.
    async fn reopen(
        self: &Arc<Self>,
        process: &Arc<Process>,
        id: SessionId,
        changed: &BTreeMap<String, SessionConfigOptionValue>,
        meta: Option<Meta>,
    ) -> HandlerResult<Result<Reopened, String>> {
        let session = self.session()?;
        let link = AgentSession {
            process: process.clone(),
            id: id.clone(),
        };
        let capabilities = &process.info.agent_capabilities;
        let mut reason = "it can load no sessions".to_owned();
        let mut found = None;
        if capabilities.session_capabilities.resume.is_some() {
            self.enter(&link);
            let request = ResumeSessionRequest::new(id.clone(), session.cwd())
                .with_mcp_servers(session.mcp_servers())
                .with_additional_directories(session.additional_directories())
                .with_meta(meta.clone());
            match process
                .call_or_refusal::<methods::ResumeSession>(&request)
                .await?
            {
                Ok(Response { result, commands }) => {
                    let settings = AgentSettings::new(result.modes, result.config_options);
                    found = Some((settings, commands));
                }
                Err(refusal) => reason = lost(refusal)?,
            }
        }
        if found.is_none() && capabilities.load_session {
            let replay = self.replay();
            self.enter(&link);
            let request = LoadSessionRequest::new(id.clone(), session.cwd(), session.mcp_servers())
                .with_additional_directories(session.additional_directories())
                .with_meta(meta);
            let loaded = process
                .call_or_refusal::<methods::LoadSession>(&request)
                .await;
            let replayed = replay.end();
            match loaded? {
                Ok(Response { result, commands }) => {
                    let settings = AgentSettings::new(result.modes, result.config_options);
                    found = Some((settings, replayed.or(commands)));
                }
                Err(refusal) => reason = lost(refusal)?,
            }
        }
        let Some((mut settings, commands)) = found else {
            return Ok(Err(reason));
        };
        restore(&link, &mut settings, changed).await;
        Ok(Ok(Reopened {
            link,
            settings,
            commands,
        }))
    }

    /// Takes over what the agent has other than an open session of ours.
    async fn mirror(
        &self,
        session: &Session,
        new: AgentSettings,
        commands: Option<Vec<AvailableCommand>>,
    ) -> HandlerResult<()> {
        let old = session.settings();
        if let Some(modes) = &new.modes
            && old.mode() != Some(modes.current_mode_id.as_str())
        {
            let update = CurrentModeUpdate::new(modes.current_mode_id.clone());
            session
                .send(SessionUpdate::CurrentModeUpdate(update))
                .await?;
        }
        let shown = session.settings().shown(true).unwrap_or_default();
        if !new.options.is_empty() && shown != new.options {
            let update = ConfigOptionUpdate::new(new.options);
            session
                .send(SessionUpdate::ConfigOptionUpdate(update))
                .await?;
        }
        if let Some(commands) = commands
            && session.settings().available_commands() != commands
        {
            let update = AvailableCommandsUpdate::new(commands);
            session
                .send(SessionUpdate::AvailableCommandsUpdate(update))
                .await?;
        }
        Ok(())
    }

    /// Writes a message in the agent's name.
    pub(super) async fn say(&self, session: &Session, text: &str) -> HandlerResult<()> {
        match self.turn() {
            Some(turn) => turn.send_text(text).await?,
            None => session.send(notice(text)).await?,
        }
        Ok(())
    }

    /// Sets a mode or an option of the agent.
    pub(super) async fn set(
        &self,
        link: &AgentSession,
        change: &SettingsChange,
    ) -> HandlerResult<()> {
        let set = set(link, change).await?;
        if let Some(options) = set {
            let session = self.session()?;
            let settings = AgentSettings {
                modes: None,
                options,
            };
            self.mirror(&session, settings, None).await?;
        }
        Ok(())
    }
}

/// Sets what the user had changed where the agent has another value now. What it does not accept
/// any more is no reason to refuse the session.
pub(super) async fn restore(
    link: &AgentSession,
    settings: &mut AgentSettings,
    changed: &BTreeMap<String, SessionConfigOptionValue>,
) {
    for (id, value) in changed {
        let option = settings
            .options
            .iter()
            .find(|option| option.id.as_str() == id);
        let differs = match (option, &settings.modes, value) {
            (Some(option), _, value) => current_value(option).as_ref() != Some(value),
            (None, Some(modes), SessionConfigOptionValue::ValueId(value)) if id == MODE => {
                modes.current_mode_id.as_str() != value.value.as_str()
            }
            _ => false,
        };
        if !differs {
            continue;
        }
        let change = SettingsChange::Option(id.as_str().into(), value.clone());
        let has_option = option.is_some();
        match set(link, &change_of(change, has_option)).await {
            Ok(Some(options)) => settings.options = options,
            Ok(None) => {
                if let (Some(modes), SessionConfigOptionValue::ValueId(value)) =
                    (&mut settings.modes, value)
                {
                    modes.current_mode_id = value.value.as_str().into();
                }
            }
            Err(_) => {}
        }
    }
}

/// Returns the change that an agent knows: one that has modes and no options has no option for them.
pub(super) fn change_of(change: SettingsChange, has_option: bool) -> SettingsChange {
    match change {
        SettingsChange::Option(id, SessionConfigOptionValue::ValueId(value))
            if id.as_str() == MODE && !has_option =>
        {
            SettingsChange::Mode(value.value.as_str().into())
        }
        change => change,
    }
}

/// Changes a setting of the agent; returns all options, if it answers with them.
async fn set(
    link: &AgentSession,
    change: &SettingsChange,
) -> HandlerResult<Option<Vec<acp_sdk::v1::SessionConfigOption>>> {
    let AgentSession { process, id } = link;
    match change {
        SettingsChange::Mode(mode) => {
            let request = SetSessionModeRequest::new(id.clone(), mode.clone());
            // Version 2 has no modes, so nobody can set one there.
            let params = Json::new(&request).map_err(HandlerError::internal)?;
            process.call_ext("session/set_mode", Some(&params)).await?;
            Ok(None)
        }
        SettingsChange::Option(option, value) => {
            let request =
                SetSessionConfigOptionRequest::new(id.clone(), option.clone(), value.clone());
            let set = process.call::<methods::SetSessionConfigOption>(&request);
            Ok(Some(set.await?.result.config_options))
        }
    }
}

/// Returns why the agent does not have a session any more.
///
/// # Errors
///
/// The refusal, if it is for another reason: the user must log in.
pub(super) fn lost(refusal: RpcError) -> HandlerResult<String> {
    match refusal.code {
        ErrorCode::AUTHENTICATION_REQUIRED => Err(HandlerError::response(refusal)),
        _ => Ok(printable(&refusal.message)),
    }
}

/// Returns what a conversation says that the agent does not know.
pub(super) fn forgotten(what: &str, reason: &str) -> String {
    format!(
        "(The agent could not {what}: {reason}. It has begun a new one and does not \
         know what was said before.)\n\n"
    )
}
