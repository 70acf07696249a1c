//! `acp agents update` without an HTTP client.

use crate::exit::Code;
use crate::task::Failure;

/// Rejects a download.
#[cfg(not(feature = "remote"))]
pub(crate) async fn update(url: &str) -> Result<Code, Failure> {
    Err(Failure::usage(format!(
        "cannot download {url}: this acp was built without its feature `remote`; build it with \
         `--features cli,remote`"
    )))
}
