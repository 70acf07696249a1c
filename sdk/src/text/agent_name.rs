//! Names of agents, as configuration files and servers give them.

/// The most characters of a name. MCP hosts accept no longer ones for tools.
pub const LONGEST: usize = 64;

/// Returns whether a name may have a character. It can be part of a path, of a file's name and of the
/// name of a tool.
#[must_use]
pub fn may_have(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '-')
}

/// Checks the name of an agent.
///
/// ```
/// use acp_sdk::text::agent_name::check;
///
/// assert!(check("codex-acp").is_ok());
/// assert!(check("two words").is_err());
/// ```
///
/// # Errors
///
/// With what is expected.
pub fn check(name: &str) -> Result<(), String> {
    match name {
        "" => Err("it is empty".to_owned()),
        name if name.len() > LONGEST => Err(format!("expected at most {LONGEST} characters")),
        name if name.chars().all(may_have) => Ok(()),
        _ => Err("expected letters, digits, `_` and `-`".to_owned()),
    }
}
