use std::path::Path;

use acp_client::{Client, Error, Result, Session};
use acp_sdk::HandlerResult;
use acp_sdk::v1::{AuthMethodAgent, StopReason};
use acp_server::{AgentInfo, Handler, Login, Turn};

pub struct Members;

impl Handler for Members {
    type State = ();

    fn info(&self) -> AgentInfo {
        let browser = AuthMethodAgent::new("browser", "Log in in the browser");
        let info = AgentInfo::new("members", "0.1.0").auth_method(browser);
        info.require_auth()
    }

    async fn authenticate(&self, _login: &Login) -> HandlerResult<()> {
        Ok(()) // after the user has logged in on a page; an error is the answer to the client
    }

    async fn prompt(&self, _: &mut (), _: Turn) -> HandlerResult<StopReason> {
        Ok(StopReason::EndTurn)
    }
}

/// The client's side. `choose` asks the user for a method, of which it gets id and name.
pub async fn open<F>(client: &Client, project: &Path, choose: F) -> Result<Session>
where
    F: Fn(&[(String, String)]) -> String,
{
    match client.new_session(project).await {
        Err(Error::AuthenticationRequired { offered, .. }) => {
            client.authenticate(choose(&offered)).await?;
            client.new_session(project).await
        }
        result => result,
    }
}
