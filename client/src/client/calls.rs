//! Making calls, and saying why they failed.

use std::future::IntoFuture;
use std::path::Path;
use std::time::Duration;

use acp_sdk::v1::{AuthMethod, ErrorCode, InitializeResponse};
use tokio::time::timeout;

use super::{Endpoint, Inner, Wire};
use crate::error::{Error, Result};

impl Inner {
    /// Waits for an answer within the limit.
    pub(crate) async fn answer<T>(
        &self,
        method: &'static str,
        call: impl IntoFuture<Output = acp_sdk::Result<T>>,
    ) -> Result<T> {
        let _call = self.sessions.call();
        match self.wire.answer(method, call).await {
            Err(error) => Err(self.with_offers(error)),
            answered => answered,
        }
    }

    /// Why a call that nobody limits has failed.
    pub(crate) async fn explain(&self, method: &'static str, error: acp_sdk::Error) -> Error {
        self.with_offers(self.wire.explain(method, error).await)
    }

    /// Waits until all that the agent wrote before the connection ended has been handled.
    pub(crate) async fn drained(&self) {
        // The limit is for readers of other sessions, who may be slow.
        let _ = timeout(self.wire.limits.cancel, self.wire.ended.cancelled()).await;
    }

    /// How long an agent may take to end a cancelled turn.
    pub(crate) fn cancel_limit(&self) -> Duration {
        self.wire.limits.cancel
    }

    /// An error that says how to authenticate, if that is what it takes.
    fn with_offers(&self, error: Error) -> Error {
        match error {
            Error::AuthenticationRequired { method, .. } => Error::AuthenticationRequired {
                method,
                offered: offers(&self.agent_info),
            },
            other => other,
        }
    }
}

impl Wire {
    /// Waits for an answer within the limit.
    pub(super) async fn answer<T>(
        &self,
        method: &'static str,
        call: impl IntoFuture<Output = acp_sdk::Result<T>>,
    ) -> Result<T> {
        let limit = self.limits.answer;
        match timeout(limit, call).await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(error)) => Err(self.explain(method, error).await),
            Err(_) => Err(Error::Timeout {
                method: method.to_owned(),
                limit,
                stderr: self.last_words().await,
                noise: self.noise.lines(),
            }),
        }
    }

    /// The end of the agent's standard error, if it is ours to read.
    async fn last_words(&self) -> Vec<String> {
        match self.process() {
            Some(process) => process.last_words().await,
            None => Vec::new(),
        }
    }

    async fn explain(&self, method: &'static str, error: acp_sdk::Error) -> Error {
        if error.code() == Some(ErrorCode::AUTHENTICATION_REQUIRED) {
            return Error::AuthenticationRequired {
                method: method.to_owned(),
                offered: Vec::new(),
            };
        }
        if let acp_sdk::Error::Response { error: answer, .. } = &error
            && matches!(self.endpoint, Endpoint::Bridge { .. })
            && is_lost(answer)
        {
            return Error::ConnectionLost {
                method: method.to_owned(),
                reason: answer.message.clone(),
            };
        }
        if !error.is_closed() {
            return Error::Sdk(error);
        }
        let why = match &self.endpoint {
            Endpoint::Bridge { bridge, .. } => bridge.failure(),
            Endpoint::Process(process) => Some(process.why_ended().await),
            Endpoint::Transport => None,
        };
        match why {
            Some(why) => why.during(method, self.noise.lines()),
            None => Error::Sdk(error),
        }
    }
}

/// Returns whether an error was made by the connection, not by the agent.
fn is_lost(answer: &acp_sdk::RpcError) -> bool {
    let data = answer.data.as_ref().map(acp_sdk::Json::get);
    let data: Option<serde_json::Value> = data.and_then(|data| serde_json::from_str(data).ok());
    data.is_some_and(|data| data[crate::reconnect::LOST] == true)
}

fn offers(agent: &InitializeResponse) -> Vec<(String, String)> {
    let offer = |method: &AuthMethod| match method {
        AuthMethod::Agent(method) => Some((method.id.to_string(), method.name.clone())),
        AuthMethod::Terminal(method) => Some((method.id.to_string(), method.name.clone())),
        _ => None,
    };
    agent.auth_methods.iter().filter_map(offer).collect()
}

/// The absolute path of a directory, as the protocol wants it.
///
/// # Errors
///
/// [`Error::Directory`] if it is no directory, or its name is no UTF-8.
pub(super) fn utf8_directory(dir: &Path) -> Result<String> {
    let unusable = |reason: &str| Error::Directory {
        path: dir.display().to_string(),
        reason: reason.to_owned(),
    };
    let absolute = std::path::absolute(dir).map_err(|error| unusable(&error.to_string()))?;
    match absolute.metadata() {
        Ok(metadata) if metadata.is_dir() => {}
        Ok(_) => return Err(unusable("it is not a directory")),
        Err(error) => return Err(unusable(&error.to_string())),
    }
    let utf8 = absolute.into_os_string().into_string();
    utf8.map_err(|_| unusable("its name is not UTF-8, which the protocol needs"))
}
