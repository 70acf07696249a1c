//! Downloads the archive of an agent to a file.

use std::fs::File;
use std::io::{IsTerminal as _, Write as _};
use std::time::Duration;

use tokio::time::{Instant, timeout};

use super::update::causes;
use crate::complain;

/// Maximum size of an archive, in bytes.
const LARGEST: u64 = 1 << 30;

/// Idle timeout of the download.
const SILENCE: Duration = Duration::from_secs(60);

/// Delay and interval of progress output.
const PATIENCE: Duration = Duration::from_secs(2);

/// Downloads, and shows progress if it takes long.
///
/// # Errors
///
/// Fails with the cause. The file may contain a part.
pub(super) async fn download(url: &str, to: &mut File) -> Result<(), String> {
    is_protected(url)?;
    let client = acp_client::internal::download_client().map_err(|error| error.to_string())?;
    let silent = |_| format!("nothing arrived for {} s", SILENCE.as_secs());
    let response = timeout(SILENCE, client.get(url).send())
        .await
        .map_err(silent)?;
    let response = response.and_then(reqwest::Response::error_for_status);
    let mut response = response.map_err(causes)?;
    let length = response.content_length();
    let too_large = || format!("it has more than {LARGEST} bytes");
    if length.is_some_and(|length| length > LARGEST) {
        return Err(too_large());
    }
    let mut progress = Progress::new(length);
    let mut bytes = 0;
    loop {
        let chunk = timeout(SILENCE, response.chunk()).await.map_err(silent)?;
        let Some(chunk) = chunk.map_err(causes)? else {
            break;
        };
        bytes += chunk.len() as u64;
        if bytes > LARGEST {
            return Err(too_large());
        }
        // A blocking write of a short chunk to a local file.
        to.write_all(&chunk)
            .map_err(|error| format!("cannot write the archive: {error}"))?;
        progress.show(bytes);
    }
    Ok(())
}

/// Rejects unencrypted URLs, except for loopback addresses.
fn is_protected(url: &str) -> Result<(), String> {
    let url = reqwest::Url::parse(url).map_err(|error| format!("it is not a URL: {error}"))?;
    let is_local = match url.host_str() {
        Some("localhost" | "[::1]") => true,
        Some(host) => host
            .parse::<std::net::Ipv4Addr>()
            .is_ok_and(|host| host.is_loopback()),
        None => false,
    };
    match url.scheme() {
        "https" => Ok(()),
        "http" if is_local => Ok(()),
        _ => Err("it is not an https URL".to_owned()),
    }
}

/// Reports the received bytes on standard error.
struct Progress {
    length: Option<u64>,
    next: Instant,
    step: Duration,
}

impl Progress {
    fn new(length: Option<u64>) -> Self {
        let step = match std::io::stderr().is_terminal() {
            true => PATIENCE,
            // The receiver was dropped.
            false => PATIENCE * 5,
        };
        Self {
            length,
            next: Instant::now() + PATIENCE,
            step,
        }
    }

    fn show(&mut self, bytes: u64) {
        let now = Instant::now();
        if now < self.next {
            return;
        }
        self.next = now + self.step;
        let mib = |bytes: u64| bytes >> 20;
        match self.length {
            Some(length) => complain(format_args!("acp: {} of {} MiB", mib(bytes), mib(length))),
            None => complain(format_args!("acp: {} MiB", mib(bytes))),
        }
    }
}
