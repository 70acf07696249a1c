//! The configuration of `acp-agent`.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use acp_agent::DelegateTo;
use acp_agent::model::Price;
use acp_agent_http::Api;
use etcetera::BaseStrategy as _;
use serde::Deserialize;

/// What `--init` writes.
const EXAMPLE: &str = include_str!("config.toml");

/// A configuration.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Config {
    /// Of the agent in all roles, in place of those that it has.
    pub(crate) instructions: Option<String>,
    /// Requests to the model in a turn.
    pub(crate) max_steps: Option<u32>,
    /// Tokens of all requests and answers of a turn.
    pub(crate) max_turn_tokens: Option<u64>,
    /// The first one is that of new sessions.
    pub(crate) models: Vec<ModelConfig>,
    /// By the tags that `--role` takes.
    pub(crate) roles: BTreeMap<String, Role>,
    /// Other agents, as tools.
    pub(crate) agents: Vec<DelegateTo>,
}

/// A model.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ModelConfig {
    /// What users select it by.
    pub(crate) name: String,
    /// The API of its provider.
    pub(crate) api: Api,
    /// What the provider calls it.
    pub(crate) model: String,
    /// The server, in place of the provider's.
    #[serde(default)]
    pub(crate) url: Option<String>,
    /// The environment variable that has the key.
    #[serde(default)]
    pub(crate) key_env: Option<String>,
    /// Tokens of a request and its answer together.
    #[serde(default)]
    pub(crate) context_window: Option<u64>,
    /// Tokens of an answer.
    #[serde(default)]
    pub(crate) max_tokens: Option<u32>,
    /// What its tokens cost.
    #[serde(default)]
    pub(crate) price: Option<Price>,
}

/// What the agent is for.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Role {
    /// Added to the instructions.
    pub(crate) instructions: String,
    /// The tools that it has; all without them.
    pub(crate) tools: Option<Vec<String>>,
    /// The model of new sessions.
    pub(crate) model: Option<String>,
    /// The mode of new sessions.
    pub(crate) mode: Option<String>,
}

/// Why there is no configuration.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConfigError {
    /// The file cannot be read or written.
    #[error("{}: {error}", .path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// It says something that means nothing.
    #[error("{}: {error}", .path.display())]
    Text {
        /// The file.
        path: PathBuf,
        /// What, and where.
        error: toml::de::Error,
    },
    /// There is no folder for it.
    #[error("the user has no home folder; set HOME")]
    NoHome,
}

impl Config {
    /// Reads the configuration. Without a path it may be absent.
    ///
    /// # Errors
    ///
    /// If it cannot be read, or is not valid.
    pub(crate) fn find(path: Option<&Path>) -> Result<Self, ConfigError> {
        let (path, is_named) = match path {
            Some(path) => (path.to_owned(), true),
            None => match default_path() {
                Ok(path) => (path, false),
                Err(_) => return Ok(Self::default()),
            },
        };
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound && !is_named => {
                return Ok(Self::default());
            }
            Err(error) => return Err(ConfigError::File { path, error }),
        };
        toml::from_str(&text).map_err(|error| ConfigError::Text { path, error })
    }
}

/// Writes a configuration to be edited, and returns where.
///
/// # Errors
///
/// If it exists or cannot be written.
pub(crate) fn init(path: Option<&Path>) -> Result<PathBuf, ConfigError> {
    let path = path.map_or_else(default_path, |path| Ok(path.to_owned()))?;
    let write = || {
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder)?;
        }
        let mut file = std::fs::File::create_new(&path)?;
        io::Write::write_all(&mut file, EXAMPLE.as_bytes())
    };
    match write() {
        Ok(()) => Ok(path),
        Err(error) => Err(ConfigError::File { path, error }),
    }
}

/// Returns the folder for sessions and for undo.
///
/// # Errors
///
/// If the user has no home folder.
pub(crate) fn data_folder() -> Result<PathBuf, ConfigError> {
    let folders = etcetera::choose_base_strategy().map_err(|_| ConfigError::NoHome)?;
    Ok(folders.data_dir().join("acp-agent"))
}

fn default_path() -> Result<PathBuf, ConfigError> {
    let folders = etcetera::choose_base_strategy().map_err(|_| ConfigError::NoHome)?;
    Ok(folders.config_dir().join("acp-agent").join("config.toml"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_is_valid_and_names_a_model() {
        let config: Config = toml::from_str(EXAMPLE).unwrap();
        assert!(!config.models.is_empty());
        // What is commented out is an example, too.
        let whole: String = EXAMPLE
            .lines()
            .map(|line| line.strip_prefix("#: ").unwrap_or(line))
            .flat_map(|line| [line, "\n"])
            .collect();
        let config: Config = toml::from_str(&whole).unwrap();
        assert_eq!(config.models.len(), 3);
        assert_eq!((config.roles.len(), config.agents.len()), (1, 1));
    }

    #[test]
    fn a_mistake_is_named_with_its_place() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("config.toml");
        std::fs::write(&path, "max_stepz = 3\n").unwrap();
        let error = Config::find(Some(&path)).unwrap_err().to_string();
        assert!(
            error.contains("config.toml") && error.contains("max_stepz"),
            "{error}"
        );
        let missing = folder.path().join("none.toml");
        assert!(Config::find(Some(&missing)).is_err());
    }

    #[test]
    fn what_is_there_is_not_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("new/config.toml");
        init(Some(&path)).unwrap();
        std::fs::write(&path, "").unwrap();
        assert!(init(Some(&path)).is_err());
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "");
    }
}
