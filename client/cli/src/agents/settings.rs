//! The member `agent_servers` of a settings file of Zed or JetBrains.

use std::collections::BTreeMap;
use std::path::Path;

use acp_client::agents_file::expanded_in;
use jsonc_parser::ParseOptions;
use serde::Deserialize;
use serde_json::Value;

use super::registry::Registry;
use super::{Configured, Source};
use crate::folders;
use crate::launch::Launch;

/// The members of a file that are used.
#[derive(Debug, Deserialize)]
struct Settings {
    #[serde(default)]
    agent_servers: BTreeMap<String, Value>,
}

/// One agent. Editors also store entries without a command.
#[derive(Debug, Deserialize)]
struct Server {
    r#type: Option<String>,
    command: Option<String>,
    #[serde(default)]
    args: Vec<String>,
    #[serde(default)]
    env: BTreeMap<String, String>,
}

/// Parses the agents of a file.
///
/// # Errors
///
/// Fails when the text is not JSON with comments, or `agent_servers` is not an object.
pub(super) fn entries(
    text: &str,
    source: Source,
    file: &Path,
    registry: &Registry,
) -> Result<Vec<Configured>, String> {
    let options = ParseOptions::default();
    let settings: Option<Settings> =
        jsonc_parser::parse_to_serde_value(text, &options).map_err(|error| error.to_string())?;
    let servers = settings.map_or_else(BTreeMap::new, |settings| settings.agent_servers);
    let entry = |(name, value): (String, Value)| {
        let server = Server::deserialize(value).map_err(|error| error.to_string());
        let (launch, entry) = match server {
            Ok(server) => resolve(&name, server, registry),
            Err(reason) => (Err(reason), None),
        };
        Configured {
            name,
            source,
            file: file.to_owned(),
            version: entry.and_then(|entry| entry.version.clone()),
            installed: entry.and_then(|entry| entry.installed.clone()),
            archive: None,
            description: entry.and_then(|entry| entry.description.clone()),
            launch,
        }
    };
    Ok(servers.into_iter().map(entry).collect())
}

/// Returns the start command of an agent, with the entry of the registry that contains it, if any.
fn resolve<'a>(
    name: &str,
    server: Server,
    registry: &'a Registry,
) -> (Result<Launch, String>, Option<&'a Configured>) {
    match (server.r#type.as_deref(), server.command) {
        (Some("registry"), _) => {
            let Some(entry) = registry.entry(name) else {
                let reason = "the registry's entry is not here. `acp agents update` downloads the \
                    entries, if acp has its feature `remote`";
                return (Err(reason.to_owned()), None);
            };
            let mut launch = entry.launch.clone();
            if let Ok(launch) = &mut launch {
                launch.env.extend(server.env);
            }
            (launch, Some(entry))
        }
        (None | Some("custom"), Some(command)) => {
            let launch = Launch {
                program: expanded_in(&command, folders::home()).into(),
                args: server.args.into_iter().map(Into::into).collect(),
                env: server.env,
                ..Launch::default()
            };
            (Ok(launch), None)
        }
        (None | Some("custom"), None) => (Err("it has no `command`".to_owned()), None),
        (Some(other), _) => {
            let reason = format!("only its editor can start entries of type `{other}`");
            (Err(reason), None)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Vec<Configured>, String> {
        let file = Path::new("settings.json");
        entries(text, Source::Zed, file, &Registry::default())
    }

    #[test]
    fn comments_and_trailing_commas_are_read() {
        let text = r#"{
            // Zed writes such files.
            "theme": "One Dark",
            "agent_servers": {
                "b": { "type": "custom", "command": "/bin/b", "args": ["acp",], "env": {"K": "V"}, },
                /* JetBrains has no type. */
                "a": { "command": "a", "use_idea_mcp": true },
            },
        }"#;
        let read = read(text).unwrap();
        let names: Vec<&str> = read.iter().map(|entry| &*entry.name).collect();
        assert_eq!(names, ["a", "b"]);
        let launch = read[1].launch.as_ref().unwrap();
        assert_eq!(launch.program, "/bin/b");
        assert_eq!(launch.args, ["acp"]);
        assert_eq!(launch.env["K"], "V");
    }

    #[test]
    fn an_entry_that_cannot_be_used_spoils_no_other() {
        let text = r#"{"agent_servers": {
            "1": {"ignore_system_version": false}, "2": {"type": "extension"}, "3": 3,
            "4": {"type": "registry"}, "5": {"command": "x", "args": "acp"}, "6": {"command": "x"}
        }}"#;
        let read = read(text).unwrap();
        let reasons = [
            "no `command`",
            "`extension`",
            "invalid type",
            "not here",
            "invalid type",
        ];
        for (entry, reason) in read.iter().zip(reasons) {
            let error = entry.launch.as_ref().unwrap_err();
            assert!(error.contains(reason), "{}: {error}", entry.name);
        }
        assert!(read[5].launch.is_ok());
    }

    #[test]
    fn a_file_without_agents_has_none() {
        assert!(read("").unwrap().is_empty());
        assert!(read("{}").unwrap().is_empty());
        assert!(read("// nothing").unwrap().is_empty());
        assert!(read("{").is_err());
        assert!(read(r#"{"agent_servers": 1}"#).is_err());
    }
}
