//! The generated types by the name of their definition.

use acp_sdk::runtime::{Decode, DecodeError, FromJson, Leniency, RawValue, decode};
use acp_sdk::v1;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// What became of a value: as it is written again, and what was dropped.
pub(crate) type Outcome = Result<(String, Vec<Leniency>), DecodeError>;

/// A type behind functions, so that the tests are compiled once for all.
pub(crate) struct Type {
    pub(crate) name: &'static str,
    /// Reads as a connection does: strictly, and if that fails with leniency.
    pub(crate) read: fn(&str) -> Outcome,
    /// Reads with leniency from the start, which must make no difference.
    pub(crate) read_lenient: fn(&str) -> Outcome,
    /// Reads and writes as the official type of that name does.
    pub(crate) official: fn(&str) -> Result<String, String>,
}

/// The official types by the same names.
mod theirs {
    pub(crate) use agent_client_protocol_schema::ProtocolVersion;
    pub(crate) use agent_client_protocol_schema::v1::*;
}

/// Every type that comes of a definition.
pub(crate) fn all() -> impl Iterator<Item = &'static Type> {
    STABLE.iter().chain(PROPOSED)
}

macro_rules! types {
    ($list:ident: $($name:ident)*) => {
        const $list: &[Type] = &[$(Type {
            name: stringify!($name),
            read: read::<v1::$name>,
            read_lenient: read_lenient::<v1::$name>,
            official: official::<theirs::$name>,
        }),*];
    };
}

types! {
    STABLE:
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
const PROPOSED: &[Type] = &[];

#[cfg(feature = "unstable")]
types! {
    PROPOSED:
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

fn read<T: DeserializeOwned + FromJson + Serialize>(text: &str) -> Outcome {
    let mut dropped = Vec::new();
    let value = decode::<T>(text, &mut |leniency| dropped.push(leniency))?;
    Ok((written(&value), dropped))
}

fn read_lenient<T: FromJson + Serialize>(text: &str) -> Outcome {
    let raw: &RawValue = serde_json::from_str(text).expect("a vector is JSON");
    let value = T::from_json(raw, &mut Decode::lenient())?;
    Ok((written(&value), Vec::new()))
}

fn official<T: DeserializeOwned + Serialize>(text: &str) -> Result<String, String> {
    let value: T = serde_json::from_str(text).map_err(|error| error.to_string())?;
    Ok(written(&value))
}

fn written<T: Serialize>(value: &T) -> String {
    serde_json::to_string(value).expect("a value has a JSON form")
}
