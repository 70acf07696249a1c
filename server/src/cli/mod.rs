//! The command `acp-server`.

mod args;
mod export;
pub mod sessions;

pub use args::Args;

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use acp_sdk::ConnectionBuilder;

use crate::store::{MemoryStore, Store};
use crate::{Limits, NextSession, Policies, Reference, Server};
use args::{Command, Serve, SessionsCommand, StoreArgs};
use sessions::Format;

/// Does what the arguments say.
///
/// # Errors
///
/// When the store, the connection or the output fails.
pub async fn run(args: Args) -> Result<(), Box<dyn Error + Send + Sync>> {
    match args.command {
        None => serve(args.serve).await,
        Some(Command::Sessions(sessions)) => {
            let store = open(&sessions.store, false)?;
            manage(&*store, sessions.command).await
        }
    }
}

async fn serve(args: Serve) -> Result<(), Box<dyn Error + Send + Sync>> {
    let store = open(&args.store, args.sync_every_event)?;
    let limits = Limits {
        queued_prompts: args.queued_prompts,
        ..Limits::default()
    };
    let policies = Policies {
        cancel_deadline: Duration::from_secs(args.cancel_deadline),
        local_tools: Some(args.local_tools.into()),
        ..Policies::default()
    };
    let mut server = Server::builder(Reference)
        .store(store)
        .limits(limits)
        .policies(policies);
    let next = match (args.name, args.resume) {
        (Some(name), _) => Some(NextSession::Named(name)),
        (_, Some(name)) => Some(NextSession::Resume(name)),
        _ => args.resume_recent.then_some(NextSession::ResumeRecent),
    };
    if let Some(next) = next {
        server = server.next_session(next);
    }
    let connection =
        ConnectionBuilder::new().write_timeout(Duration::from_secs(args.write_timeout));
    Ok(server.build().serve_stdio_with(connection).await?)
}

async fn manage(
    store: &dyn Store,
    command: SessionsCommand,
) -> Result<(), Box<dyn Error + Send + Sync>> {
    let output = &mut std::io::stdout().lock();
    let format = |json| if json { Format::Json } else { Format::Text };
    match command {
        SessionsCommand::List { cwd, json } => {
            sessions::list(store, cwd.as_deref(), format(json), output).await?;
        }
        SessionsCommand::Show { session, json } => {
            sessions::show(store, &session, format(json), output).await?;
        }
        SessionsCommand::Export { session, json } => {
            sessions::export(store, &session, format(json), output).await?;
        }
        SessionsCommand::Fork { session, at } => {
            sessions::fork(store, &session, at, output).await?;
        }
        SessionsCommand::Delete { session } => sessions::delete(store, &session, output).await?,
    }
    Ok(())
}

fn open(args: &StoreArgs, sync: bool) -> Result<Arc<dyn Store>, Box<dyn Error + Send + Sync>> {
    if args
        .store
        .as_deref()
        .is_some_and(|path| path.as_os_str() == "memory")
    {
        return Ok(Arc::new(MemoryStore::new()));
    }
    on_disk(args, sync)
}

#[cfg(feature = "sqlite")]
fn on_disk(args: &StoreArgs, sync: bool) -> Result<Arc<dyn Store>, Box<dyn Error + Send + Sync>> {
    use crate::store::{Durability, SqliteOptions, SqliteStore};

    let path = match &args.store {
        Some(path) => path.clone(),
        None => SqliteStore::default_path()?,
    };
    let mut options = SqliteOptions::new();
    if sync {
        options = options.durability(Durability::EveryCommit);
    }
    let opened = options.open(&path);
    Ok(Arc::new(opened.map_err(|error| {
        format!("{error}. `--store memory` serves without a file")
    })?))
}

/// Without SQLite, sessions can only be kept in memory.
#[cfg(not(feature = "sqlite"))]
fn on_disk(args: &StoreArgs, _: bool) -> Result<Arc<dyn Store>, Box<dyn Error + Send + Sync>> {
    match &args.store {
        Some(path) => Err(format!(
            "cannot open {}: this build has no SQLite; use `--store memory`",
            path.display()
        )
        .into()),
        None => Ok(Arc::new(MemoryStore::new())),
    }
}
