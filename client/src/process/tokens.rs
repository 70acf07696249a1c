//! Tokens in the environment of this process.

use std::process::Command;

use acp_sdk::SECRET_VARIABLES;

/// Removes inherited tokens from the environment of a command, because they grant access to other agents
/// and hosts. Variables that the command sets are kept.
pub fn withhold(command: &mut Command) {
    for name in SECRET_VARIABLES {
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
        let removed: Vec<_> = set[1..].iter().map(|(name, _)| name.to_str()).collect();
        let mut others: Vec<_> = SECRET_VARIABLES[1..].iter().copied().map(Some).collect();
        others.sort_unstable();
        assert_eq!(removed, others);
        assert!(set[1..].iter().all(|(_, value)| value.is_none()), "{set:?}");
    }
}
