//! Why a connection cannot be proxied.

use std::io;

/// Why a connection cannot be proxied. Findings about its messages are not errors.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProxyError {
    /// The judge cannot be made, or the agent cannot be started.
    #[error(transparent)]
    Conformance(#[from] acp_conformance::Error),
    /// The system refuses signals, pipes or the standard streams.
    #[error("cannot start the proxy: {0}")]
    System(#[from] io::Error),
}
