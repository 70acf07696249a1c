//! `acp-conformance reference-agent`: the agent that `agent` tests by default.

use std::io;

use acp_server::ReferenceAgent;

use super::Verdict;
use crate::{Error, Result};

pub(super) fn run() -> Result<Verdict> {
    let failed = |source: io::Error| Error::Start {
        command: "the reference agent".into(),
        source,
    };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .map_err(failed)?;
    let served = runtime.block_on(acp_sdk::serve_stdio(ReferenceAgent::default()));
    served.map_err(|error| failed(io::Error::other(error.to_string())))?;
    Ok(Verdict::Conformant)
}
