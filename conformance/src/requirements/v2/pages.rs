//! The pages of version 2 that requirements are cited from, with their headings.

use crate::requirements::pages::Page;

/// Every page that may be cited; the names of those of version 1 have no `v2/`.
pub(in crate::requirements) const PAGES: &[Page] = &[
    Page {
        name: "v2/agent-plan",
        address: "https://agentclientprotocol.com/protocol/v2/agent-plan",
        anchors: &[
            "agent-plan",
            "creating-plans",
            "extensibility",
            "plan-entries",
            "updating-plans",
        ],
    },
    Page {
        name: "v2/authentication",
        address: "https://agentclientprotocol.com/protocol/v2/authentication",
        anchors: &[
            "authentication",
            "advertising-authentication",
            "authentication-method-types",
            "terminal-authentication",
            "logging-out",
            "agent-handled-authentication",
        ],
    },
    Page {
        name: "v2/cancellation",
        address: "https://agentclientprotocol.com/protocol/v2/cancellation",
        anchors: &[
            "cancellation",
            "cancel-request-notification",
            "internal-cancellation",
        ],
    },
    Page {
        name: "v2/content",
        address: "https://agentclientprotocol.com/protocol/v2/content",
        anchors: &[
            "content",
            "text-content",
            "image-content",
            "audio-content",
            "embedded-resource",
        ],
    },
    Page {
        name: "v2/elicitation",
        address: "https://agentclientprotocol.com/protocol/v2/elicitation",
        anchors: &[
            "elicitation",
            "user-interaction-requirements",
            "checking-support",
            "form-mode",
            "url-mode",
            "responses",
            "url-completion",
            "url-security",
        ],
    },
    Page {
        name: "v2/extensibility",
        address: "https://agentclientprotocol.com/protocol/v2/extensibility",
        anchors: &[
            "extensibility",
            "the-meta-field",
            "extension-methods",
            "custom-requests",
            "custom-notifications",
            "enum-and-tagged-union-variants",
            "extension-methods",
        ],
    },
    Page {
        name: "v2/initialization",
        address: "https://agentclientprotocol.com/protocol/v2/initialization",
        anchors: &[
            "initialization",
            "protocol-version",
            "version-negotiation",
            "capabilities",
            "agent-capabilities",
            "session-capabilities",
            "session-prompt-capabilities",
            "implementation-information",
        ],
    },
    Page {
        name: "v2/overview",
        address: "https://agentclientprotocol.com/protocol/v2/overview",
        anchors: &[
            "communication-model",
            "argument-requirements",
            "error-handling",
        ],
    },
    Page {
        name: "v2/prompt-lifecycle",
        address: "https://agentclientprotocol.com/protocol/v2/prompt-lifecycle",
        anchors: &[
            "prompt-lifecycle",
            "1-user-message",
            "2-prompt-accepted",
            "3-agent-reports-output",
            "message-ids",
            "4-report-completion",
            "5-tool-invocation-and-status-reporting",
            "stop-reasons",
            "session-states",
            "cancellation",
        ],
    },
    Page {
        name: "v2/session-config-options",
        address: "https://agentclientprotocol.com/protocol/v2/session-config-options",
        anchors: &[
            "session-config-options",
            "configoption",
            "option-categories",
            "default-values-and-graceful-degradation",
            "from-the-client",
            "initial-state",
            "setting-a-config-option",
        ],
    },
    Page {
        name: "v2/schema",
        address: "https://agentclientprotocol.com/protocol/v2/schema",
        anchors: &["errorcode", "requestid"],
    },
    Page {
        name: "v2/session-delete",
        address: "https://agentclientprotocol.com/protocol/v2/session-delete",
        anchors: &["deleting-a-session", "semantics"],
    },
    Page {
        name: "v2/session-list",
        address: "https://agentclientprotocol.com/protocol/v2/session-list",
        anchors: &["listing-sessions", "pagination", "session-list"],
    },
    Page {
        name: "v2/session-setup",
        address: "https://agentclientprotocol.com/protocol/v2/session-setup",
        anchors: &[
            "session-setup",
            "creating-a-session",
            "resuming-sessions",
            "closing-active-sessions",
            "session-id",
            "working-directory",
            "additional-workspace-roots",
            "mcp-servers",
            "stdio-transport",
            "http-transport",
            "checking-transport-support",
        ],
    },
    Page {
        name: "v2/slash-commands",
        address: "https://agentclientprotocol.com/protocol/v2/slash-commands",
        anchors: &[
            "slash-commands",
            "advertising-commands",
            "availablecommand",
            "running-commands",
        ],
    },
    Page {
        name: "v2/tool-calls",
        address: "https://agentclientprotocol.com/protocol/v2/tool-calls",
        anchors: &[
            "tool-calls",
            "reporting",
            "requesting-permission",
            "permission-options",
            "display-only-terminals",
            "diffs",
        ],
    },
    Page {
        name: "v2/transports",
        address: "https://agentclientprotocol.com/protocol/v2/transports",
        anchors: &["stdio", "json-rpc-batch-messages", "transports"],
    },
];
