//! Version 1: its types, and where the official ones differ.

use std::sync::LazyLock;

use acp_schema::{Document, V1_UNSTABLE};

use crate::differential::{Kind, Known};
use crate::types::types;
use crate::{Suite, tests};

tests!(SUITE);

static SUITE: LazyLock<Suite> = LazyLock::new(|| {
    let document = Document::v1().unwrap();
    let overlay = ("v1.unstable.json", V1_UNSTABLE);
    Suite::new(document, overlay, [STABLE, PROPOSED], KNOWN)
});

/// Our types by the names of their definitions.
mod ours {
    pub(crate) use acp_sdk::RpcError as Error;
    pub(crate) use acp_sdk::v1::*;
}

/// The official types by the same names.
mod theirs {
    pub(crate) use agent_client_protocol_schema::ProtocolVersion;
    pub(crate) use agent_client_protocol_schema::v1::*;
}

const KNOWN: &[Known] = &[
    Known {
        reason: "theirs leaves the kind `other` and the status `pending` of a tool call \
                 out, which stand for their absence",
        applies: |found| {
            let word = |word: &str| match &found.kind {
                Kind::Written { ours, theirs, .. } => ours == word && theirs.is_null(),
                _ => false,
            };
            found.only_ours_writes("/kind") && word("other")
                || found.only_ours_writes("/status") && word("pending")
        },
    },
    Known {
        reason: "ours goes by the tag `boolean`, and theirs takes a wrong value for an id",
        applies: |found| {
            found.definition == "SetSessionConfigOptionRequest"
                && matches!(&found.kind, Kind::OnlyTheirs { path, .. } if path == "/value")
        },
    },
    #[cfg(not(feature = "unstable"))]
    Known {
        reason: "theirs has the proposals for version 1 compiled in",
        applies: |found| found.only_theirs_writes("/acp"),
    },
];

types! {
    STABLE: ours, theirs:
        AgentAuthCapabilities AgentCapabilities Annotations AudioContent AuthCapabilities
        AuthMethod AuthMethodAgent AuthMethodId AuthMethodTerminal AuthenticateRequest
        AuthenticateResponse AvailableCommand AvailableCommandInput AvailableCommandsUpdate
        BlobResourceContents BooleanConfigOptionCapabilities BooleanPropertySchema
        CancelNotification CancelRequestNotification ClientCapabilities
        ClientSessionCapabilities CloseSessionRequest CloseSessionResponse
        CompactionCapabilities CompactionId CompactionStatus CompactionSummaryChunk
        CompactionUpdate CompleteElicitationNotification ConfigOptionUpdate Content
        ContentBlock ContentChunk Cost CreateElicitationRequest CreateElicitationResponse
        CreateTerminalRequest CreateTerminalResponse CurrentModeUpdate DeleteSessionRequest
        DeleteSessionResponse Diff ElicitationAcceptAction ElicitationCapabilities
        ElicitationContentValue ElicitationFormCapabilities ElicitationFormMode
        ElicitationId ElicitationPropertySchema ElicitationRequestScope ElicitationSchema
        ElicitationSchemaType ElicitationSessionScope ElicitationUrlCapabilities
        ElicitationUrlMode EmbeddedResource EmbeddedResourceResource EnumOption EnvVariable
        Error ErrorCode FileSystemCapabilities HttpHeader ImageContent Implementation
        InitializeRequest InitializeResponse IntegerPropertySchema KillTerminalRequest
        KillTerminalResponse ListSessionsRequest ListSessionsResponse LoadSessionRequest
        LoadSessionResponse LogoutCapabilities LogoutRequest LogoutResponse McpCapabilities
        McpServer McpServerHttp McpServerSse McpServerStdio MessageId MultiSelectItems
        MultiSelectPropertySchema NewSessionRequest NewSessionResponse Notice
        NoticeCapabilities NoticeSeverity NumberPropertySchema PermissionOption
        PermissionOptionId PermissionOptionKind Plan PlanEntry PlanEntryPriority
        PlanEntryStatus PromptCapabilities PromptRequest PromptResponse ProtocolVersion
        ReadTextFileRequest ReadTextFileResponse ReleaseTerminalRequest
        ReleaseTerminalResponse RequestId RequestPermissionOutcome RequestPermissionRequest
        RequestPermissionResponse ResourceLink ResumeSessionRequest ResumeSessionResponse
        Role SelectedPermissionOutcome SessionAdditionalDirectoriesCapabilities
        SessionCapabilities SessionCloseCapabilities SessionConfigBoolean
        SessionConfigGroupId SessionConfigId SessionConfigOption SessionConfigOptionCategory
        SessionConfigOptionsCapabilities SessionConfigSelect SessionConfigSelectGroup
        SessionConfigSelectOption SessionConfigSelectOptions SessionConfigValueId
        SessionDeleteCapabilities SessionId SessionInfo SessionInfoUpdate
        SessionListCapabilities SessionMode SessionModeId SessionModeState
        SessionNotification SessionResumeCapabilities SessionUpdate
        SetSessionConfigOptionRequest SetSessionConfigOptionResponse SetSessionModeRequest
        SetSessionModeResponse StopReason StringFormat StringMultiSelectItems
        StringPropertySchema Terminal TerminalExitStatus TerminalId TerminalOutputRequest
        TerminalOutputResponse TextContent TextResourceContents TitledMultiSelectItems
        ToolCall ToolCallContent ToolCallId ToolCallLocation ToolCallStatus ToolCallUpdate
        ToolKind UnstructuredCommandInput UsageUpdate WaitForTerminalExitRequest
        WaitForTerminalExitResponse WriteTextFileRequest WriteTextFileResponse
}

#[cfg(not(feature = "unstable"))]
const PROPOSED: &[crate::types::Type] = &[];

#[cfg(feature = "unstable")]
types! {
    PROPOSED: ours, theirs:
    ArchiveSessionRequest ArchiveSessionResponse AuthAccount AuthState
    AuthStatusCapabilities AuthStatusRequest AuthStatusResponse AuthStatusUpdateNotification
    DisableProviderRequest DisableProviderResponse ErrorStopReason ForkSessionRequest
    ForkSessionResponse IdleStateUpdate InitializeProxyRequest InitializeProxyResponse
    ListProvidersRequest ListProvidersResponse LlmProtocol McpError McpRequestId
    McpServerAcp McpServerAcpId MessageMcpNotification MessageMcpRequest MessageMcpResponse
    PlanCapabilities PlanFile PlanId PlanItems PlanMarkdown PlanRemoved PlanUpdate
    PlanUpdateContent ProviderCurrentConfig ProviderId ProviderInfo ProvidersCapabilities
    ProxySuccessorNotification ProxySuccessorRequest RequiresActionStateUpdate
    RunningStateUpdate SessionArchiveCapabilities SessionArchiveFilter
    SessionCancelCapabilities SessionForkCapabilities SessionMessage SessionMessageChunk
    SessionStatus SessionStatusCapabilities SessionStatusRequest SessionStatusResponse
    SessionSystemPromptCapabilities SessionSystemPromptModeCapabilities
    SessionSystemPromptOverrideCapabilities SessionTitleCapabilities SetProviderRequest
    SetProviderResponse SetSessionTitleRequest SetSessionTitleResponse StateUpdate
    SubagentCapabilities SubagentSessionCapabilities SubagentUpdate SystemPrompt
    SystemPromptMode UnarchiveSessionRequest UnarchiveSessionResponse UnknownStateUpdate
    Usage
}
