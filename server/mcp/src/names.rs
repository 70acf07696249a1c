//! Names of tools that models accept.
//!
//! A name depends only on the names of server and tool. Rules and conversations refer to it, so it must mean the
//! same tool when the servers of a session change.

/// Maximum number of characters of a name.
const LONGEST: usize = 64;

/// Number of hexadecimal digits that distinguish names that were changed.
const DIGITS: usize = 8;

/// Separates the name of the server from that of the tool.
const SEPARATOR: &str = "__";

/// Returns the name of a tool for models: `SERVER__TOOL`.
///
/// It matches `[a-zA-Z0-9_-]{1,64}`. Other characters become `_`, and what is too long is cut; such a
/// name ends with `_` and 8 hexadecimal digits, a hash of both names, and so does one that could be read as that of
/// another pair (`a` and `b__c`, `a__b` and `c`).
///
/// ```
/// use acp_server_mcp::tool_name;
///
/// assert_eq!(tool_name("files", "read_text"), "files__read_text");
/// assert_eq!(tool_name("my files", "read.text"), "my_files__read_text_b8d48c31");
/// ```
#[must_use]
pub fn tool_name(server: &str, tool: &str) -> String {
    let name = format!("{server}{SEPARATOR}{tool}");
    let mut accepted: String = name.chars().map(accepted).collect();
    if accepted == name && name.len() <= LONGEST && is_unambiguous(server, tool) {
        return name;
    }
    // One byte per character by now.
    accepted.truncate(LONGEST - DIGITS - 1);
    format!("{accepted}_{:08x}", hash(server, tool))
}

fn accepted(character: char) -> char {
    match character {
        'a'..='z' | 'A'..='Z' | '0'..='9' | '_' | '-' => character,
        _ => '_',
    }
}

/// Returns whether the first separator in the name is the one between the two.
fn is_unambiguous(server: &str, tool: &str) -> bool {
    let is_separated = !server.contains(SEPARATOR) && !server.ends_with('_');
    is_separated && !server.is_empty() && !tool.is_empty() && !tool.starts_with('_')
}

/// FNV-1a. Names must be the same in each version of this crate, which `std`'s hashes do not promise.
fn hash(server: &str, tool: &str) -> u32 {
    let bytes = server.bytes().chain([0]).chain(tool.bytes());
    bytes.fold(0x811c_9dc5, |hash, byte| {
        (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_accepted(name: &str) -> bool {
        let has_length = (1..=LONGEST).contains(&name.len());
        has_length && name.chars().all(|it| accepted(it) == it)
    }

    #[test]
    fn a_name_that_models_accept_is_kept() {
        assert_eq!(tool_name("a-b", "c_d"), "a-b__c_d");
        assert_eq!(tool_name("git", "a__b"), "git__a__b");
        let tool = "x".repeat(LONGEST - 5);
        assert_eq!(tool_name("git", &tool), format!("git__{tool}"));
    }

    #[test]
    fn names_of_different_tools_differ() {
        let long = "x".repeat(100);
        let servers = ["a", "a_", "_a", "a__b", "a b", "a.b", "a_b", "ä", "", &long];
        let tools = ["b", "_b", "b__c", "c", "b.c", "b_c", "ö", "", &long];
        let mut names = std::collections::BTreeSet::new();
        for server in servers {
            for tool in tools {
                let name = tool_name(server, tool);
                assert!(is_accepted(&name), "{name}");
                assert!(names.insert(name), "{server:?} {tool:?}");
            }
        }
    }
}
