//! Environment variables with secrets.

/// The environment variables with secrets of this project's programs. Processes that they start do not
/// inherit them: each opens other agents, sessions or stores.
pub const SECRET_VARIABLES: [&str; 5] = [
    "ACP_TOKEN",
    "ACP_MCP_TOKEN",
    "ACP_SERVER_TOKEN",
    "ACP_NODE_SECRET",
    "ACP_STORE",
];
