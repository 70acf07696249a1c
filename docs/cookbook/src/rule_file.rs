use std::path::Path;

use acp_client::{Client, ClientBuilder, Policy, Rules, RulesError, Workspace};

pub const RULES: &str = r#"
[[rule]]
effect = "deny"
name = "secrets"
path = "**/.env"

[[rule]]
effect = "allow"
kind = "edit"
path = "src/**"

[[rule]]
effect = "allow"
command = "git status **"
"#;

/// The first rule that matches decides; what none matches is refused unless it only reads.
pub fn client(file: &Path) -> Result<ClientBuilder, RulesError> {
    let rules = Rules::read(file)?.fallback(Policy::ApproveReads);
    Ok(Client::builder()
        .workspace(Workspace::new())
        .permissions(rules))
}
