//! A fork of the agent's session, for a fork of ours, and deleting the agent's session with ours.

use std::collections::BTreeMap;
use std::sync::Arc;

use acp_sdk::v1::{
    DeleteSessionRequest, NewSessionRequest, NewSessionResponse, SessionConfigOptionValue,
    SessionId, methods,
};
use acp_sdk::{HandlerError, HandlerResult, Json, Meta};
use acp_server::Settings;
use acp_server::internal::log_repeated;
use acp_server::internal::raw_object::{RawObject, json_text};

use super::opening::AgentSettings;
use super::process::Process;
use super::reopening::{forgotten, lost, restore};
use super::session::{AgentSession, HostedSession, Kept};

/// A proposal, which the types of version 1 do not contain.
const FORK: &str = "session/fork";

impl HostedSession {
    /// Opens a fork whose record has the agent's session of its source. The agent forks that one, or
    /// the conversation says that it has a new one.
    pub(super) async fn fork(
        self: &Arc<Self>,
        process: &Arc<Process>,
        is_complete: bool,
        changed: &BTreeMap<String, SessionConfigOptionValue>,
        meta: Option<Meta>,
    ) -> HandlerResult<(AgentSession, Settings)> {
        let session = self.session()?;
        let source = match Kept::of_source(&session) {
            _ if !process.forks => Err("it has no session/fork".to_owned()),
            _ if !is_complete => Err("it can fork only the whole conversation".to_owned()),
            None => Err("it does not know the session".to_owned()),
            Some(kept) => Ok(kept.agent_session),
        };
        let forked = match source {
            Ok(source) => self.ask_to_fork(process, &source, meta.clone()).await?,
            Err(reason) => Err(reason),
        };
        let forked = match forked {
            Ok(forked) => forked,
            Err(reason) => {
                let said = forgotten("fork its session", &reason);
                return self.begin_anew(process, meta, &said).await;
            }
        };
        let link = AgentSession {
            process: process.clone(),
            id: forked.session_id,
        };
        let mut settings = AgentSettings::new(forked.modes, forked.config_options);
        restore(&link, &mut settings, changed).await;
        let settings = settings.mirrored(changed.clone());
        self.link_to(&link, |session| session.install_settings(settings))
            .await?;
        Ok((link, session.settings()))
    }

    /// Has the agent fork its session. The inner error says why it does not.
    async fn ask_to_fork(
        &self,
        process: &Process,
        source: &SessionId,
        meta: Option<Meta>,
    ) -> HandlerResult<Result<NewSessionResponse, String>> {
        let session = self.session()?;
        let place = NewSessionRequest::new(session.cwd(), session.mcp_servers())
            .with_additional_directories(session.additional_directories())
            .with_meta(meta);
        let place = Json::new(&place).map_err(HandlerError::internal)?;
        let mut params = RawObject::parse(place.get()).unwrap_or_default();
        params.set("sessionId", json_text(source.as_str()));
        let params = params.to_json();
        match process.call_ext_or_refusal(FORK, Some(&params)).await? {
            Ok(answer) => {
                let forked = answer.parse::<NewSessionResponse>();
                Ok(forked.map_err(|error| format!("its answer to {FORK} is invalid: {error}")))
            }
            Err(refusal) => Ok(Err(lost(refusal)?)),
        }
    }
}

/// Deletes a session of the agent, for one of ours that is deleted.
pub(super) async fn delete(process: &Process, id: SessionId) {
    let request = DeleteSessionRequest::new(id);
    if let Err(error) = process.call::<methods::DeleteSession>(&request).await {
        log_repeated!(warn, %error, "the agent did not delete its session");
    }
}
