//! The file of --agents: tables `[[agents]]` in TOML.

use std::path::Path;

use acp_client::agents_file::{AgentEntry, AgentStart, AgentsFile, SERVER_MEMBERS};

use super::{Agents, Configured, Source};
use crate::launch::Launch;

/// Reads the agents of a file; `agent = NAME` is one of the others.
///
/// # Errors
///
/// Fails when the file cannot be used.
pub(super) fn entries(file: &Path, others: &Agents) -> Result<Vec<Configured>, String> {
    let read = AgentsFile::read(file).map_err(|error| error.to_string())?;
    let entries = read.agents().iter().map(|entry| Configured {
        name: entry.name.clone(),
        source: Source::File,
        file: file.to_owned(),
        version: None,
        installed: None,
        archive: None,
        description: entry.description.clone(),
        launch: launch(entry, others),
    });
    Ok(entries.collect())
}

fn launch(entry: &AgentEntry, others: &Agents) -> Result<Launch, String> {
    if let Some(member) = entry.refuse(&SERVER_MEMBERS) {
        return Err(format!(
            "member `{member}`: only `acp-server serve --agents` has a use for it"
        ));
    }
    let mut launch = match &entry.start {
        AgentStart::Command(words) => Launch::of_words(words.iter().cloned()),
        AgentStart::Configured(name) => {
            let other = others.find(name).and_then(|other| other.launch.clone());
            other.map_err(|reason| format!("member `agent`: {reason}"))?
        }
    };
    for name in &entry.env_remove {
        launch.env.remove(name);
    }
    launch.env_remove.clone_from(&entry.env_remove);
    launch.env.extend(entry.env.clone());
    launch.entry = Some(Box::new(entry.clone()));
    Ok(launch)
}
