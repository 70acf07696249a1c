//! The draft of version 2: its types, and where the official ones differ.

use std::sync::LazyLock;

use acp_schema::{Document, V2_UNSTABLE};
use serde_json::Value;

use crate::differential::{Kind, Known};
use crate::types::types;
use crate::{Suite, tests};

tests!(SUITE);

/// The types of JSON-RPC are those of all versions: data of an error has any form, and ids may
/// be null, as in version 1.
const JSON_RPC: &str = r##"{ "x-patch": [
    {
        "op": "replace",
        "path": "/$defs/Error/properties/data",
        "value": { "x-deserialize-default-on-error": true }
    },
    {
        "op": "add",
        "path": "/$defs/RequestId/anyOf/0",
        "value": { "title": "Null", "type": "null" }
    }
] }"##;

static SUITE: LazyLock<Suite> = LazyLock::new(|| {
    let document = Document::v2().unwrap();
    let document = document.overlay("JSON-RPC", JSON_RPC).unwrap();
    let overlay = ("v2.unstable.json", V2_UNSTABLE);
    Suite {
        // Groups without options are not allowed, and yet options may be dropped.
        loses_too_much: &["SessionConfigSelectGroup"],
        ..Suite::new(document, overlay, [STABLE, PROPOSED], KNOWN)
    }
});

/// Our types by the names of their definitions.
mod ours {
    pub(crate) use acp_sdk::RpcError as Error;
    pub(crate) use acp_sdk::v2::*;
}

/// The official types by the same names.
mod theirs {
    pub(crate) use agent_client_protocol_schema::ProtocolVersion;
    pub(crate) use agent_client_protocol_schema::v2::*;

    /// They keep the details of an error as they come.
    pub(crate) type ErrorData = serde_json::Value;

    /// They have nothing of the Preview yet: types of the same form.
    pub(crate) type IdempotencyKey = String;
    pub(crate) type ReplayComplete = CloseSessionResponse;
}

const KNOWN: &[Known] = &[
    Known {
        reason: "ours keeps a line number 0, which is too low but no harm, and theirs drops it",
        applies: |found| found.only_ours_writes("/line"),
    },
    Known {
        reason: "theirs keeps the details of an error as they come, ours reads the forms that \
                 are defined",
        applies: |found| {
            found.definition == "ErrorData"
                && matches!(
                    &found.kind,
                    Kind::Written {
                        ours: Value::Null,
                        ..
                    }
                )
        },
    },
    Known {
        reason: "theirs keeps `replay_complete` as an update that it does not know, with all members as they come",
        applies: |found| {
            found.definition == "SessionUpdate"
                && matches!(&found.kind, Kind::Written { path, ours: Value::Null, .. }
                    if path == "/_meta" || path == "/notDefined")
        },
    },
    Known {
        reason: "theirs has no idempotency key yet",
        applies: |found| {
            found.only_ours_writes("/idempotencyKey")
                || matches!(&found.kind, Kind::OnlyTheirs { path, .. } if path.ends_with("/idempotencyKey"))
        },
    },
    Known {
        reason: "ours has the ids of JSON-RPC, null included, and theirs those of the version",
        applies: |found| found.null_id && matches!(found.kind, Kind::OnlyOurs(_)),
    },
    Known {
        reason: "theirs takes the number of a variant for its name, as serde does by default",
        applies: |found| {
            found.definition == "SessionUpdate"
                && matches!(&found.kind, Kind::OnlyTheirs { path, .. } if path == "/sessionUpdate")
        },
    },
];

types! {
    STABLE: ours, theirs:
        AbsolutePath AgentAuthCapabilities AgentCapabilities AgentMessage AgentThought Annotations
        AudioContent AuthMethod AuthMethodAgent AuthMethodId AuthMethodTerminal AvailableCommand
        AvailableCommandInput AvailableCommandsUpdate BackgroundSubagent BackgroundTerminal
        BackgroundToolCall BackgroundWork BlobResourceContents BooleanPropertySchema
        CancelRequestNotification CancelSessionNotification CancelTerminalRequest
        CancelTerminalResponse CancelToolCallRequest CancelToolCallResponse
        CancelledPermissionOutcome ClientAuthCapabilities ClientCapabilities CloseSessionRequest
        CloseSessionResponse Command CommandPermissionSubject CompactionId CompactionStatus
        CompactionSummaryChunk CompactionUpdate CompleteElicitationNotification ConfigOptionUpdate
        Content ContentBlock ContentChunk Cost CreateElicitationRequest CreateElicitationResponse
        DeleteSessionRequest DeleteSessionResponse Diff DiffChange DiffFileType DiffPatch
        DiffPatchFormat DiffPathChange DiffPathPairChange ElicitationAcceptAction
        ElicitationCapabilities ElicitationContentValue ElicitationFormCapabilities
        ElicitationFormMode ElicitationId ElicitationPropertySchema ElicitationRequestScope
        ElicitationSchema ElicitationSchemaType ElicitationSessionScope ElicitationUrlCapabilities
        ElicitationUrlMode EmbeddedResource EmbeddedResourceResource EnumOption EnvVariable Error
        ErrorCode ErrorData ErrorStopReason HttpHeader Icon IconTheme IdempotencyKey
        IdleStateUpdate ImageContent Implementation InitializeRequest InitializeResponse
        IntegerPropertySchema ListSessionsRequest ListSessionsResponse LoginAuthRequest
        LoginAuthResponse LogoutAuthRequest LogoutAuthResponse McpCapabilities McpHttpCapabilities
        McpServer McpServerHttp McpServerStdio McpStdioCapabilities MediaType MessageId
        MultiSelectItems MultiSelectPropertySchema NewSessionRequest NewSessionResponse Notice
        NoticeSeverity NumberPropertySchema PermissionOption PermissionOptionId
        PermissionOptionKind PlanEntry PlanEntryPriority PlanEntryStatus PlanFile PlanId PlanItems
        PlanMarkdown PlanRemoved PlanUpdate PlanUpdateContent PromptAudioCapabilities
        PromptCapabilities PromptEmbeddedContextCapabilities PromptImageCapabilities PromptRequest
        PromptResponse ProtocolVersion ReplayComplete ReplayFrom ReplayFromStart RequestId
        RequestPermissionOutcome RequestPermissionRequest RequestPermissionResponse
        RequestPermissionSubject RequiresActionStateUpdate ResourceLink ResumeSessionRequest
        ResumeSessionResponse Role RunningStateUpdate SelectedPermissionOutcome
        SessionAdditionalDirectoriesCapabilities SessionCancelCapabilities SessionCapabilities
        SessionConfigBoolean SessionConfigGroupId SessionConfigId SessionConfigOption
        SessionConfigOptionCategory SessionConfigSelect SessionConfigSelectGroup
        SessionConfigSelectOption SessionConfigSelectOptions SessionConfigValueId
        SessionDeleteCapabilities SessionId SessionInfo SessionInfoUpdate SessionListCursor
        SessionMessage SessionMessageChunk SessionNotFoundErrorData
        SessionSystemPromptCapabilities SessionSystemPromptModeCapabilities
        SessionSystemPromptOverrideCapabilities SessionUpdate SetSessionConfigOptionRequest
        SetSessionConfigOptionResponse StateUpdate StringFormat StringMultiSelectItems
        StringPropertySchema SubagentSessionCapabilities SubagentUpdate SystemPrompt
        SystemPromptMode Terminal TerminalAuthCapabilities TerminalCancelCapabilities
        TerminalCapabilities TerminalExitStatus TerminalId TerminalOutput TerminalOutputChunk
        TerminalSize TerminalUpdate TextCommandInput TextContent TextResourceContents
        TitledMultiSelectItems ToolCallCancelCapabilities ToolCallCapabilities ToolCallContent
        ToolCallContentChunk ToolCallId ToolCallLocation ToolCallPermissionSubject ToolCallStatus
        ToolCallUpdate ToolKind UnknownStateUpdate UnsupportedProtocolVersionErrorData
        UpdateSessionNotification UsageUpdate UserMessage
}

#[cfg(not(feature = "unstable"))]
const PROPOSED: &[crate::types::Type] = &[];

#[cfg(feature = "unstable")]
types! {
    PROPOSED: ours, theirs:
        ArchiveSessionRequest ArchiveSessionResponse AuthAccount AuthState AuthStatusCapabilities
        AuthStatusRequest AuthStatusResponse AuthStatusUpdateNotification DisableProviderRequest
        DisableProviderResponse ForkSessionRequest ForkSessionResponse InitializeProxyRequest
        InitializeProxyResponse ListProvidersRequest ListProvidersResponse LlmProtocol
        McpAcpCapabilities McpError McpRequestId McpServerAcp McpServerAcpId
        MessageMcpNotification MessageMcpRequest MessageMcpResponse ProviderCurrentConfig
        ProviderId ProviderInfo ProvidersCapabilities ProxySuccessorNotification
        ProxySuccessorRequest SessionArchiveCapabilities SessionArchiveFilter
        SessionForkCapabilities SessionStatus SessionStatusCapabilities SessionStatusRequest
        SessionStatusResponse SessionTitleCapabilities SetProviderRequest SetProviderResponse
        SetSessionTitleRequest SetSessionTitleResponse UnarchiveSessionRequest
        UnarchiveSessionResponse Usage
}
