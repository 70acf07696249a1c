//! Sends calls with timeouts, and completes their errors.

use std::future::IntoFuture;
use std::path::Path;
use std::time::Duration;

use acp_sdk::v1::{AuthMethod, ErrorCode, InitializeResponse};
use tokio::time::timeout;

use super::{Endpoint, Inner, Wire};
use crate::error::{Error, Result};
use crate::reconnect::is_lost_request;

impl Inner {
    /// Waits for a response within the timeout.
    pub(crate) async fn answer<T>(
        &self,
        method: &str,
        call: impl IntoFuture<Output = acp_sdk::Result<T>>,
    ) -> Result<T> {
        let _call = self.sessions.call();
        match self.wire.answer(method, call).await {
            Err(error) => Err(self.with_auth_methods(error)),
            answered => answered,
        }
    }

    /// Completes the error of a call without a timeout.
    pub(crate) async fn explain(&self, method: &str, error: acp_sdk::Error) -> Error {
        self.with_auth_methods(self.wire.explain(method, error).await)
    }

    /// Waits until all messages received before the end of the connection were handled.
    pub(crate) async fn drained(&self) {
        // The timeout is for readers of other sessions, which may be slow.
        let _ = timeout(self.wire.limits.cancel, self.wire.ended.cancelled()).await;
    }

    /// Returns the timeout for the end of a cancelled turn.
    pub(crate) fn cancel_limit(&self) -> Duration {
        self.wire.limits.cancel
    }

    /// Adds the agent's authentication methods to an authentication error.
    fn with_auth_methods(&self, error: Error) -> Error {
        match error {
            Error::AuthenticationRequired { method, .. } => Error::AuthenticationRequired {
                method,
                offered: auth_methods(&self.agent_info),
            },
            other => other,
        }
    }
}

impl Wire {
    /// Waits for a response within the timeout.
    pub(super) async fn answer<T>(
        &self,
        method: &str,
        call: impl IntoFuture<Output = acp_sdk::Result<T>>,
    ) -> Result<T> {
        let limit = self.limits.answer;
        match timeout(limit, call).await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(error)) => Err(self.explain(method, error).await),
            Err(_) => Err(Error::Timeout {
                method: method.to_owned(),
                limit,
                stderr: self.stderr_tail().await,
                stray_output: self.stray_output.lines(),
            }),
        }
    }

    /// Returns the last lines of the agent's standard error, if this client started it.
    async fn stderr_tail(&self) -> Vec<String> {
        match self.process() {
            Some(process) => process.stderr_tail().await,
            None => Vec::new(),
        }
    }

    async fn explain(&self, method: &str, error: acp_sdk::Error) -> Error {
        if error.code() == Some(ErrorCode::AUTHENTICATION_REQUIRED) {
            return Error::AuthenticationRequired {
                method: method.to_owned(),
                offered: Vec::new(),
            };
        }
        if let acp_sdk::Error::Response { error: answer, .. } = &error
            && matches!(self.endpoint, Endpoint::Bridge { .. })
            && is_lost_request(answer)
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
            Some(why) => why.during(method, self.stray_output.lines()),
            None => Error::Sdk(error),
        }
    }
}

fn auth_methods(agent: &InitializeResponse) -> Vec<(String, String)> {
    let offer = |method: &AuthMethod| match method {
        AuthMethod::Agent(method) => Some((method.id.to_string(), method.name.clone())),
        AuthMethod::Terminal(method) => Some((method.id.to_string(), method.name.clone())),
        _ => None,
    };
    agent.auth_methods.iter().filter_map(offer).collect()
}

/// Returns the absolute path of a directory as UTF-8.
///
/// # Errors
///
/// [`Error::Directory`] if it is not a directory, or its name is not UTF-8.
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
