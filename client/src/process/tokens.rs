//! Tokens in the environment of this process.

use std::process::Command;

/// The variables with tokens of `acp` and `acp-server`.
const VARIABLES: [&str; 3] = ["ACP_TOKEN", "ACP_MCP_TOKEN", "ACP_SERVER_TOKEN"];

/// Removes inherited tokens from the environment of a command, because they grant access to other agents
/// and hosts. Variables that the command sets are kept.
pub fn withhold(command: &mut Command) {
    for name in VARIABLES {
        if !command.get_envs().any(|(set, _)| set == name) {
            command.env_remove(name);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_that_the_command_sets_is_kept() {
        let mut command = Command::new("agent");
        command.env("ACP_TOKEN", "the agent's own");
        withhold(&mut command);
        let mut set: Vec<_> = command.get_envs().collect();
        set.sort_by_key(|(_, value)| value.is_none());
        assert_eq!(
            set[0],
            ("ACP_TOKEN".as_ref(), Some("the agent's own".as_ref()))
        );
        let removed: Vec<_> = set[1..]
            .iter()
            .map(|(name, value)| (name.to_str(), *value))
            .collect();
        assert_eq!(
            removed,
            [
                (Some("ACP_MCP_TOKEN"), None),
                (Some("ACP_SERVER_TOKEN"), None)
            ]
        );
    }
}
