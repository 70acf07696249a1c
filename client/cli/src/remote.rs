//! The agent that `--url` and its companion options describe.

use super::args::RemoteArgs;
use acp_client::remote::{RemoteAgent, RemoteError, Token};

/// The variable with the token, if no file is given.
const TOKEN: &str = "ACP_TOKEN";

/// Returns the agent at a URL.
pub(super) fn agent(url: &str, args: &RemoteArgs) -> Result<RemoteAgent, RemoteError> {
    let token = match &args.token_file {
        Some(path) => Some(Token::from_file(path)?),
        None => Token::from_env(TOKEN)?,
    };
    let mut agent = RemoteAgent::new(url)?.token(token);
    for header in &args.header {
        let (name, value) = header.split_once(':').ok_or_else(|| RemoteError::Option {
            // A value without a colon may be only a secret.
            what: "--header".to_owned(),
            reason: "expected NAME:VALUE".to_owned(),
        })?;
        agent = agent.header(name.trim(), value.trim())?;
    }
    if args.insecure {
        agent = agent.insecure();
    }
    if let Some(path) = &args.ca_file {
        agent = agent.ca_file(path)?;
    }
    if let Some(fingerprint) = &args.fingerprint {
        agent = agent.fingerprint(fingerprint)?;
    }
    Ok(agent)
}
