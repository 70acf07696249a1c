//! The pages of version 2 that requirements are cited from, with their headings.

use crate::requirements::pages::Page;

/// Every page that may be cited; the names of those of version 1 have no `v2/`.
pub(in crate::requirements) const PAGES: &[Page] = &[
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
        anchors: &["communication-model", "error-handling"],
    },
    Page {
        name: "v2/prompt-lifecycle",
        address: "https://agentclientprotocol.com/protocol/v2/prompt-lifecycle",
        anchors: &[
            "prompt-lifecycle",
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
        name: "v2/session-list",
        address: "https://agentclientprotocol.com/protocol/v2/session-list",
        anchors: &["listing-sessions"],
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
        ],
    },
    Page {
        name: "v2/transports",
        address: "https://agentclientprotocol.com/protocol/v2/transports",
        anchors: &["stdio", "json-rpc-batch-messages"],
    },
];
