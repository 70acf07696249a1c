//! `acp agents update`: downloads the entries of the ACP registry.

use std::io::Write as _;
use std::path::Path;
use std::time::Duration;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::registry::{FILE, is_id};
use super::{LARGEST_FILE, registry_folder};
use crate::exit::Code;
use crate::folders;
use crate::task::{Failure, say};

/// Timeout of the download.
const LIMIT: Duration = Duration::from_secs(60);

#[derive(Debug, Deserialize)]
struct Index<'a> {
    #[serde(borrow)]
    agents: Vec<&'a RawValue>,
}

#[derive(Debug, Deserialize)]
struct Id {
    id: String,
}

/// Downloads the index and writes each entry to its folder.
pub(crate) async fn update(url: &str) -> Result<Code, Failure> {
    let folder = registry_folder().ok_or_else(|| {
        Failure::failed("there is no folder for data: set ACP_REGISTRY to the registry's folder")
    })?;
    let index = download(url)
        .await
        .map_err(|reason| Failure::failed(format!("cannot download {url}: {reason}")))?;
    let index: Index<'_> = serde_json::from_slice(&index).map_err(|error| {
        Failure::failed(format!("{url} is not the index of a registry: {error}"))
    })?;
    let (mut kept, mut skipped) = (0_u32, 0_u32);
    for entry in index.agents {
        match serde_json::from_str::<Id>(entry.get()) {
            Ok(Id { id }) if is_id(&id) => {
                keep(&folder.join(id), entry.get()).map_err(|error| {
                    Failure::failed(format!("cannot write to {}: {error}", folder.display()))
                })?;
                kept += 1;
            }
            _ => skipped += 1,
        }
    }
    let skipped = match skipped {
        0 => String::new(),
        skipped => format!("; skipped {skipped} without a valid id"),
    };
    say(&format!(
        "kept {kept} entries in {}{skipped}",
        folder.display()
    ))
    .await;
    Ok(Code::EndTurn)
}

async fn download(url: &str) -> Result<Vec<u8>, String> {
    let client = acp_client::internal::download_client().map_err(|error| error.to_string())?;
    let loading = async {
        let response = client.get(url).send().await.map_err(causes)?;
        let mut response = response.error_for_status().map_err(causes)?;
        let mut bytes = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(causes)? {
            bytes.extend_from_slice(&chunk);
            if bytes.len() as u64 > LARGEST_FILE {
                return Err(format!("it is larger than {LARGEST_FILE} bytes"));
            }
        }
        Ok(bytes)
    };
    let loaded = tokio::time::timeout(LIMIT, loading).await;
    loaded.unwrap_or_else(|_| Err(format!("timed out after {} s", LIMIT.as_secs())))
}

/// Returns an error with its sources, because reqwest's message contains only the URL.
pub(super) fn causes(error: reqwest::Error) -> String {
    let error = error.without_url();
    let mut text = error.to_string();
    let mut source = std::error::Error::source(&error);
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    text
}

/// Replaces an entry atomically.
fn keep(folder: &Path, text: &str) -> std::io::Result<()> {
    folders::create(folder)?;
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    file.write_all(text.as_bytes())?;
    file.persist(folder.join(FILE))?;
    Ok(())
}
