//! The agents that `acp mcp` offers: one of the command line, or those of a file.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::agents::text_up_to;
use super::args::{AgentArgs, LONGEST_NAME, McpArgs, is_in_names, mcp_name};
use super::launch::{Launch, expanded};

/// Maximum size of a file of agents, in bytes.
const LARGEST_FILE: u64 = 1 << 20;

/// An agent and the tool that it becomes.
#[derive(Debug)]
pub(super) struct Offered {
    pub(super) agent: AgentArgs,
    pub(super) name: String,
    pub(super) description: Option<String>,
    pub(super) directory: PathBuf,
}

/// A file of agents. Other tables are those of the program that the file configures.
#[derive(Debug, Deserialize)]
struct AgentsFile {
    agents: Vec<Entry>,
}

/// A table `[[agents]]`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    name: String,
    description: Option<String>,
    command: Option<Words>,
    agent: Option<String>,
    #[serde(alias = "workdir")]
    directory: Option<String>,
}

/// A command line: a text that is split as by a shell, or a list.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Words {
    Text(String),
    List(Vec<String>),
}

/// Returns the agents that the arguments name.
///
/// # Errors
///
/// Fails when one is not configured, a directory is missing, or the file of agents is wrong. The
/// message names it.
pub(super) fn offered(args: &McpArgs) -> Result<Vec<Offered>, String> {
    // Reports wrong usage immediately instead of in the first call.
    let here = directory(args.cwd.as_deref().unwrap_or(Path::new(".")))?;
    let Some(path) = &args.agents else {
        let launch = match args.agent.remote.url {
            Some(_) => None,
            None => Some(Launch::of(&args.agent)?),
        };
        let name = match (&args.name, &args.agent.name, launch) {
            (Some(name), ..) => name.clone(),
            (None, Some(agent), _) => tool_name(agent),
            (None, None, Some(launch)) => {
                let program = Path::new(&launch.program).file_stem();
                tool_name(&program.unwrap_or_default().to_string_lossy())
            }
            (None, None, None) => tool_name(""),
        };
        return Ok(vec![Offered {
            agent: args.agent.clone(),
            name,
            description: args.description.clone(),
            directory: here,
        }]);
    };
    let wrong = |reason: String| format!("cannot use {}: {reason}", path.display());
    let text = text_up_to(path, LARGEST_FILE).map_err(wrong)?;
    let text = text.ok_or_else(|| wrong("there is no such file".to_owned()))?;
    read(&text, &here, args).map_err(wrong)
}

fn read(text: &str, here: &Path, args: &McpArgs) -> Result<Vec<Offered>, String> {
    let file: AgentsFile = toml::from_str(text).map_err(|error| error.to_string())?;
    if file.agents.is_empty() {
        return Err("it has no table [[agents]]".to_owned());
    }
    let mut names = BTreeSet::new();
    let mut offered = Vec::new();
    for entry in file.agents {
        let named = entry.name.clone();
        let agent = entry.offered(here, args);
        offered.push(agent.map_err(|reason| format!("agent `{named}`: {reason}"))?);
        if !names.insert(named.clone()) {
            return Err(format!("two agents have the name `{named}`"));
        }
    }
    Ok(offered)
}

impl Entry {
    fn offered(self, here: &Path, args: &McpArgs) -> Result<Offered, String> {
        let mut agent = args.agent.clone();
        match (self.command, self.agent) {
            (Some(words), None) => agent.command = words.split()?,
            (None, Some(name)) => agent.name = Some(name),
            _ => return Err("expected either `command` or `agent`".to_owned()),
        }
        Launch::of(&agent)?;
        let directory = match self.directory {
            Some(path) => {
                let path = expanded(&path, std::env::var_os("HOME").map(PathBuf::from));
                directory(&here.join(path))?
            }
            None => here.to_owned(),
        };
        Ok(Offered {
            agent,
            name: mcp_name(&self.name).map_err(|reason| format!("its name: {reason}"))?,
            description: self.description,
            directory,
        })
    }
}

impl Words {
    fn split(self) -> Result<Vec<OsString>, String> {
        let words = match self {
            Self::Text(text) => shell_words::split(&text)
                .map_err(|error| format!("its command cannot be split into words: {error}"))?,
            Self::List(words) => words,
        };
        match words.is_empty() {
            true => Err("its command is empty".to_owned()),
            false => Ok(words.into_iter().map(OsString::from).collect()),
        }
    }
}

fn directory(path: &Path) -> Result<PathBuf, String> {
    match path.canonicalize() {
        Ok(directory) if directory.is_dir() => Ok(directory),
        Ok(_) => Err(format!("{} is not a directory", path.display())),
        Err(error) => Err(format!("cannot use {}: {error}", path.display())),
    }
}

/// Derives a tool name from an agent's name.
fn tool_name(name: &str) -> String {
    let accepted = |c| if is_in_names(c) { c } else { '_' };
    let name: String = name.chars().map(accepted).take(LONGEST_NAME).collect();
    match name.is_empty() {
        true => "agent".to_owned(),
        false => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tool_is_named_after_the_agent() {
        for (agent, name) in [
            ("opencode", "opencode"),
            ("codex-acp", "codex-acp"),
            ("x y", "x_y"),
            ("", "agent"),
            ("é", "_"),
        ] {
            assert_eq!(tool_name(agent), name);
        }
        assert_eq!(tool_name(&"x".repeat(100)).len(), LONGEST_NAME);
    }
}
