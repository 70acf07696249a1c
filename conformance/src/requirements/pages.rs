//! The pages that requirements are cited from, with their headings.

/// A page, where it stands, and the anchors of its headings.
#[derive(Clone, Copy, Debug)]
pub struct Page {
    /// The name before the `#` of a citation.
    pub name: &'static str,
    /// The address without the anchor.
    pub address: &'static str,
    /// The anchors; the first is that of the page's title.
    pub anchors: &'static [&'static str],
}

/// Every page that may be cited.
pub const PAGES: &[Page] = &[
    Page {
        name: "agent-plan",
        address: "https://agentclientprotocol.com/protocol/v1/agent-plan",
        anchors: &[
            "agent-plan",
            "creating-plans",
            "plan-entries",
            "updating-plans",
            "dynamic-planning",
        ],
    },
    Page {
        name: "authentication",
        address: "https://agentclientprotocol.com/protocol/v1/authentication",
        anchors: &[
            "authentication",
            "advertising-authentication",
            "authentication-method-types",
            "protocol-driven-authentication",
            "terminal-authentication",
            "logging-out",
            "active-sessions",
        ],
    },
    Page {
        name: "cancellation",
        address: "https://agentclientprotocol.com/protocol/v1/cancellation",
        anchors: &[
            "cancellation",
            "cancelrequest-notification",
            "internal-cancellation",
            "example-cascading-cancellation-flow",
        ],
    },
    Page {
        name: "content",
        address: "https://agentclientprotocol.com/protocol/v1/content",
        anchors: &[
            "content",
            "content-types",
            "text-content",
            "image-content",
            "audio-content",
            "embedded-resource",
            "resource-link",
        ],
    },
    Page {
        name: "elicitation",
        address: "https://agentclientprotocol.com/protocol/v1/elicitation",
        anchors: &[
            "elicitation",
            "user-interaction-requirements",
            "checking-support",
            "creating-an-elicitation",
            "form-mode",
            "url-mode",
            "responses",
            "url-completion",
            "url-security",
        ],
    },
    Page {
        name: "extensibility",
        address: "https://agentclientprotocol.com/protocol/v1/extensibility",
        anchors: &[
            "extensibility",
            "the-meta-field",
            "extension-methods",
            "custom-requests",
            "custom-notifications",
            "advertising-custom-capabilities",
        ],
    },
    Page {
        name: "file-system",
        address: "https://agentclientprotocol.com/protocol/v1/file-system",
        anchors: &[
            "file-system",
            "checking-support",
            "reading-files",
            "writing-files",
        ],
    },
    Page {
        name: "initialization",
        address: "https://agentclientprotocol.com/protocol/v1/initialization",
        anchors: &[
            "initialization",
            "protocol-version",
            "version-negotiation",
            "capabilities",
            "client-capabilities",
            "terminal-authentication",
            "file-system",
            "terminal",
            "elicitation",
            "boolean-config-options",
            "agent-capabilities",
            "prompt-capabilities",
            "mcp-capabilities",
            "authentication-capabilities",
            "session-capabilities",
            "implementation-information",
        ],
    },
    Page {
        name: "overview",
        address: "https://agentclientprotocol.com/protocol/v1/overview",
        anchors: &[
            "overview",
            "communication-model",
            "message-flow",
            "agent",
            "baseline-methods",
            "optional-methods",
            "notifications",
            "client",
            "argument-requirements",
            "error-handling",
            "conventions",
            "extensibility",
            "next-steps",
        ],
    },
    Page {
        name: "prompt-turn",
        address: "https://agentclientprotocol.com/protocol/v1/prompt-turn",
        anchors: &[
            "prompt-turn",
            "the-prompt-turn-lifecycle",
            "1-user-message",
            "2-agent-processing",
            "3-agent-reports-output",
            "message-ids",
            "session-usage-updates",
            "4-check-for-completion",
            "5-tool-invocation-and-status-reporting",
            "6-continue-conversation",
            "stop-reasons",
            "cancellation",
        ],
    },
    Page {
        name: "session-config-options",
        address: "https://agentclientprotocol.com/protocol/v1/session-config-options",
        anchors: &[
            "session-config-options",
            "initial-state",
            "configoption",
            "configoptionvalue",
            "boolean-config-options",
            "option-categories",
            "option-ordering",
            "default-values-and-graceful-degradation",
            "setting-a-config-option",
            "from-the-client",
            "from-the-agent",
            "relationship-to-session-modes",
        ],
    },
    Page {
        name: "session-delete",
        address: "https://agentclientprotocol.com/protocol/v1/session-delete",
        anchors: &[
            "session-delete",
            "checking-support",
            "deleting-a-session",
            "semantics",
        ],
    },
    Page {
        name: "session-list",
        address: "https://agentclientprotocol.com/protocol/v1/session-list",
        anchors: &[
            "session-list",
            "checking-support",
            "listing-sessions",
            "pagination",
            "updating-session-metadata",
            "interaction-with-other-session-methods",
        ],
    },
    Page {
        name: "session-modes",
        address: "https://agentclientprotocol.com/protocol/v1/session-modes",
        anchors: &[
            "session-modes",
            "initial-state",
            "sessionmodestate",
            "sessionmode",
            "setting-the-current-mode",
            "from-the-client",
            "from-the-agent",
            "exiting-plan-modes",
        ],
    },
    Page {
        name: "session-setup",
        address: "https://agentclientprotocol.com/protocol/v1/session-setup",
        anchors: &[
            "session-setup",
            "creating-a-session",
            "loading-sessions",
            "checking-support",
            "loading-a-session",
            "resuming-sessions",
            "resuming-a-session",
            "closing-active-sessions",
            "closing-a-session",
            "additional-workspace-roots",
            "session-id",
            "working-directory",
            "mcp-servers",
            "transport-types",
            "stdio-transport",
            "http-transport",
            "sse-transport",
            "checking-transport-support",
        ],
    },
    Page {
        name: "slash-commands",
        address: "https://agentclientprotocol.com/protocol/v1/slash-commands",
        anchors: &[
            "slash-commands",
            "advertising-commands",
            "availablecommand",
            "availablecommandinput",
            "dynamic-updates",
            "running-commands",
        ],
    },
    Page {
        name: "terminals",
        address: "https://agentclientprotocol.com/protocol/v1/terminals",
        anchors: &[
            "terminals",
            "checking-support",
            "executing-commands",
            "embedding-in-tool-calls",
            "getting-output",
            "waiting-for-exit",
            "killing-commands",
            "building-a-timeout",
            "releasing-terminals",
        ],
    },
    Page {
        name: "tool-calls",
        address: "https://agentclientprotocol.com/protocol/v1/tool-calls",
        anchors: &[
            "tool-calls",
            "creating",
            "updating",
            "requesting-permission",
            "permission-options",
            "status",
            "content",
            "regular-content",
            "diffs",
            "terminals",
            "following-the-agent",
        ],
    },
    Page {
        name: "transports",
        address: "https://agentclientprotocol.com/protocol/v1/transports",
        anchors: &[
            "transports",
            "stdio",
            "streamable-http",
            "custom-transports",
        ],
    },
    Page {
        name: "schema",
        address: "https://agentclientprotocol.com/protocol/v1/schema",
        anchors: &[
            "schema",
            "errorcode",
            "sessionupdate",
            "requestid",
            "session-cancel",
            "session-update",
        ],
    },
    Page {
        name: "jsonrpc",
        address: "https://www.jsonrpc.org/specification",
        anchors: &[
            "conventions",
            "request_object",
            "notification",
            "response_object",
            "error_object",
            "batch",
        ],
    },
];
/// The address that a citation stands for.
#[must_use]
pub fn address(cite: &str) -> Option<String> {
    let (name, anchor) = cite.split_once('#')?;
    let mut pages = PAGES.iter().chain(super::second::pages::PAGES);
    let page = pages.find(|page| page.name == name)?;
    let known = page.anchors.contains(&anchor);
    known.then(|| format!("{}#{anchor}", page.address))
}
