//! `acp-conformance reference-agent`: the agent that `agent` tests by default.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use acp_reference_agent::Reference;
use acp_server::store::SqliteStore;

use crate::Verdict;
use acp_conformance::internal::{Store, serve};
use acp_conformance::wire::Version;
use acp_conformance::{Error, Result};

/// Be the bundled agent
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The version of the protocol to speak
    #[arg(long, value_name = "N", default_value = "1", value_parser = crate::version)]
    protocol: Version,
    /// Keep the sessions in this folder, for all processes that name it; otherwise in memory
    #[arg(long, value_name = "DIR")]
    sessions: Option<PathBuf>,
}

pub(crate) fn run(args: &Args) -> Result<Verdict> {
    let served = match args.protocol {
        Version::V1 => serve_v1(args),
        Version::V2 => serve_v2(args),
    };
    served.map_err(Error::starting("the reference agent"))?;
    Ok(Verdict::Conformant)
}

fn serve_v1(args: &Args) -> io::Result<()> {
    let server = Reference::server();
    let server = match &args.sessions {
        None => server,
        Some(folder) => {
            let store = SqliteStore::open(folder.join("sessions.db"));
            server.store(Arc::new(store.map_err(io::Error::other)?))
        }
    };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()?;
    let served = runtime.block_on(server.build().serve_stdio());
    served.map_err(|error| io::Error::other(error.to_string()))
}

fn serve_v2(args: &Args) -> io::Result<()> {
    let store = match &args.sessions {
        None => Store::default(),
        Some(folder) => Store::in_folder(folder)?,
    };
    serve(&store, io::stdin().lock(), io::stdout())
}
