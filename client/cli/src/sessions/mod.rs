//! `acp sessions`: lists, shows, forks, deletes and exports stored sessions.

mod export;
mod history;
#[cfg(test)]
mod kinds;
mod markdown;

use std::collections::BTreeMap;
use std::convert;
use std::path::{Path, PathBuf};

use acp_sdk::v1::{SessionId, SessionInfo};
use serde::Serialize;

use self::history::Counts;
use super::args::{ListFormat, SessionArgs, SessionsArgs, SessionsCommand};
use super::exit::Code;
use super::kept::{self, Kept};
use super::open;
use super::task::{Failure, Results};
use acp_client::Client;
use acp_client::Error;
use acp_sdk::text::one_line;

/// Maximum number of characters of a title.
const LONGEST_TITLE: usize = 80;

/// Maximum number of sessions among which one is looked for.
const MOST_LISTED: usize = 10_000;

/// Runs a command about sessions.
pub(super) async fn sessions(args: &SessionsArgs, results: &mut Results) -> Result<Code, Failure> {
    match &args.command {
        SessionsCommand::List {
            cwd, format, agent, ..
        } => {
            let client = open::client(agent, open::builder(), convert::identity).await?;
            let names = kept::names(&agent.identity());
            list(&client, cwd.as_deref(), &names, *format, results).await?;
            client.shutdown().await;
        }
        SessionsCommand::Show { session, format } => {
            show(&by_name(session)?, *format, results).await?;
        }
        SessionsCommand::Fork(session) => {
            let session = &by_name(session)?;
            let client = open::client(&session.agent, open::builder(), convert::identity).await?;
            let cwd = directory(&client, session).await?;
            let copy = client.fork_session(session.id.as_str(), &cwd).await?;
            client.shutdown().await;
            results.line(copy.id().as_str()).await?;
        }
        SessionsCommand::Delete(session) => {
            let named = by_name(session)?;
            // A session that a run uses is not deleted.
            let kept = match named.id == session.id {
                true => None,
                false => {
                    let agent = session.agent.identity();
                    let kept = Kept::take(&session.id, &agent, &named_directory(session));
                    Some(kept.map_err(Failure::failed)?)
                }
            };
            let client = open::client(&named.agent, open::builder(), convert::identity).await?;
            if kept.is_none() {
                must_exist(&client, &named).await?;
            }
            client.delete_session(named.id.as_str()).await?;
            client.shutdown().await;
            kept.map_or(Ok(()), Kept::forget).map_err(Failure::failed)?;
        }
        SessionsCommand::Export { session, format } => {
            export::export(&by_name(session)?, *format, results).await?;
        }
    }
    Ok(Code::EndTurn)
}

/// Fails if the agent lists its sessions, and not this one: agents ignore a deletion of what they do not have.
async fn must_exist(client: &Client, session: &SessionArgs) -> Result<(), Failure> {
    let capabilities = &client.agent_info().agent_capabilities;
    if capabilities.session_capabilities.list.is_none() {
        return Ok(());
    }
    let mut sessions = client.sessions(None)?;
    let mut listed = 0;
    while let Some(found) = sessions.next().await? {
        listed += 1;
        if found.session_id.as_str() == session.id || listed == MOST_LISTED {
            return Ok(());
        }
    }
    let (id, directory) = (&session.id, named_directory(session));
    let message = format!(
        "there is no session {id:?}: neither an id that this agent lists, nor a name that was used with this \
         agent in {directory}"
    );
    Err(Failure::failed(message))
}

/// Returns the session with a name; without such a name, the session with this id.
fn by_name(session: &SessionArgs) -> Result<SessionArgs, Failure> {
    let directory = named_directory(session);
    let found = Kept::find(&session.id, &session.agent.identity(), &directory);
    let mut named = session.clone();
    if let Some(id) = found.map_err(Failure::failed)? {
        named.id = id.to_string();
        named.cwd = Some(directory.into());
    }
    Ok(named)
}

/// Returns the directory that a name belongs to.
fn named_directory(session: &SessionArgs) -> String {
    let cwd = session.cwd.clone().unwrap_or_else(|| PathBuf::from("."));
    // A directory that does not exist on this machine stays as it is.
    cwd.canonicalize()
        .unwrap_or(cwd)
        .to_string_lossy()
        .into_owned()
}

/// An entry of the list, with the names that `acp` stores for it.
#[derive(Debug, Serialize)]
struct Listed<'a> {
    #[serde(flatten)]
    info: &'a SessionInfo,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    names: &'a [String],
}

async fn list(
    client: &Client,
    cwd: Option<&Path>,
    names: &BTreeMap<SessionId, Vec<String>>,
    format: ListFormat,
    results: &mut Results,
) -> Result<(), Failure> {
    for session in client.list_sessions(cwd).await? {
        let names = names
            .get(&session.session_id)
            .map_or(&[][..], Vec::as_slice);
        let line = match format {
            ListFormat::Json => json(&Listed {
                info: &session,
                names,
            })?,
            ListFormat::Text => {
                let updated = session.updated_at.as_deref().unwrap_or("-");
                let title = session.title.as_deref().unwrap_or("-");
                // The id is the first column, because other commands take it.
                let named = match names.is_empty() {
                    true => String::new(),
                    false => format!("  [{}]", one_line(&names.join(", "), LONGEST_TITLE)),
                };
                format!(
                    "{}  {}  {}  {}{named}",
                    one_line(session.session_id.as_str(), usize::MAX),
                    one_line(updated, 40),
                    one_line(&session.cwd, 200),
                    one_line(title, LONGEST_TITLE)
                )
            }
        };
        match format {
            ListFormat::Json => results.json(&line).await?,
            ListFormat::Text => results.line(&line).await?,
        }
    }
    Ok(())
}

/// The known properties of a session.
#[derive(Debug, Serialize)]
struct Shown {
    #[serde(flatten)]
    info: SessionInfo,
    #[serde(skip_serializing_if = "Option::is_none")]
    history: Option<Counts>,
}

async fn show(
    args: &SessionArgs,
    format: ListFormat,
    results: &mut Results,
) -> Result<(), Failure> {
    let (layer, updates) = history::tap(args.id.as_str());
    let client = open::client(&args.agent, open::builder().layer(layer), convert::identity).await?;
    let listed = listed(&client, &args.id).await?;
    let mut info = listed.unwrap_or_else(|| {
        let cwd = args.cwd.clone().unwrap_or_else(|| PathBuf::from("."));
        SessionInfo::new(args.id.as_str(), cwd.to_string_lossy())
    });
    let mut counts = None;
    if client.agent_info().agent_capabilities.load_session {
        let cwd = directory_of(args, Some(&info));
        let mut counted = Counts::default();
        let each = async |update: history::Update| {
            counted.count(&update, &mut info);
            Ok(())
        };
        history::replay(&client, &args.id, &cwd, updates, each).await?;
        counts = Some(counted);
    } else if client
        .agent_info()
        .agent_capabilities
        .session_capabilities
        .list
        .is_none()
    {
        return Err(Error::unsupported("session/load", "loadSession").into());
    }
    client.shutdown().await;
    let shown = Shown {
        info,
        history: counts,
    };
    match format {
        ListFormat::Json => results.json(&json(&shown)?).await,
        ListFormat::Text => text(&shown, results).await,
    }
}

async fn text(shown: &Shown, results: &mut Results) -> Result<(), Failure> {
    let info = &shown.info;
    let mut lines = vec![
        ("session", info.session_id.to_string()),
        ("directory", info.cwd.clone()),
    ];
    lines.extend(info.title.clone().map(|title| ("title", title)));
    lines.extend(info.updated_at.clone().map(|time| ("updated", time)));
    lines.extend(
        shown
            .history
            .as_ref()
            .map(|history| ("history", history.to_string())),
    );
    for (name, value) in lines {
        results
            .line(&format!(
                "{:<10} {}",
                format!("{name}:"),
                one_line(&value, 1000)
            ))
            .await?;
    }
    Ok(())
}

/// Returns the list's entry of a session, if the agent has a list and the session is in it.
///
/// # Errors
///
/// Fails when the agent lists sessions without this one, and cannot load it either.
async fn listed(client: &Client, id: &str) -> Result<Option<SessionInfo>, Failure> {
    let capabilities = &client.agent_info().agent_capabilities;
    if capabilities.session_capabilities.list.is_none() {
        return Ok(None);
    }
    let sessions = client.list_sessions(None).await?;
    let found = sessions
        .into_iter()
        .find(|session| session.session_id.as_str() == id);
    if found.is_none() && !capabilities.load_session {
        return Err(Failure::failed(format!(
            "the agent lists no session {id:?}; `acp sessions list` shows those that it knows"
        )));
    }
    Ok(found)
}

/// Returns the directory of a session: as given, as listed, or the current one.
async fn directory(client: &Client, args: &SessionArgs) -> Result<PathBuf, Failure> {
    let listed = match args.cwd {
        Some(_) => None,
        None => listed(client, &args.id).await?,
    };
    Ok(directory_of(args, listed.as_ref()))
}

fn directory_of(args: &SessionArgs, listed: Option<&SessionInfo>) -> PathBuf {
    let listed = || listed.map(|session| PathBuf::from(&session.cwd));
    let given = args.cwd.clone().or_else(listed);
    given.unwrap_or_else(|| PathBuf::from("."))
}

/// A line of JSON.
fn json(value: &impl Serialize) -> Result<String, Failure> {
    serde_json::to_string(value).map_err(|error| Failure::Output(error.into()))
}
