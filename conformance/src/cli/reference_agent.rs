//! `acp-conformance reference-agent`: the agent that `agent` tests by default.

use std::io;

use acp_server::Reference;

use super::Verdict;
use crate::target::v2;
use crate::wire::Version;
use crate::{Error, Result};

/// Be the bundled agent
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The version of the protocol to speak
    #[arg(long, value_name = "N", default_value = "1", value_parser = super::version)]
    protocol: Version,
}

pub(super) fn run(args: &Args) -> Result<Verdict> {
    let failed = |source: io::Error| Error::Start {
        command: "the reference agent".into(),
        source,
    };
    if args.protocol == Version::V2 {
        v2::serve(&v2::Store::default(), io::stdin().lock(), io::stdout()).map_err(failed)?;
        return Ok(Verdict::Conformant);
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .map_err(failed)?;
    let served = runtime.block_on(Reference::server().build().serve_stdio());
    served.map_err(|error| failed(io::Error::other(error.to_string())))?;
    Ok(Verdict::Conformant)
}
