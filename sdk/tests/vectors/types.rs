//! The generated types by the name of their definition.

use acp_sdk::runtime::{Decode, DecodeError, FromJson, RawValue, decode};
use acp_sdk::v1;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// What became of a value: as it is written again, and what was dropped.
pub(crate) type Outcome = Result<(String, Vec<String>), DecodeError>;

/// A type behind functions, so that the tests are compiled once for all.
pub(crate) struct Type {
    pub(crate) name: &'static str,
    /// Reads as a connection does: strictly, and if that fails with leniency.
    pub(crate) read: fn(&str) -> Outcome,
    /// Reads with leniency from the start, which must make no difference.
    pub(crate) read_lenient: fn(&str) -> Outcome,
}

macro_rules! types {
    ($($name:ident)*) => {
        /// Every type that comes of a definition.
        pub(crate) const TYPES: &[Type] = &[$(Type {
            name: stringify!($name),
            read: read::<v1::$name>,
            read_lenient: read_lenient::<v1::$name>,
        }),*];
    };
}

types! {
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

fn read<T: DeserializeOwned + FromJson + Serialize>(text: &str) -> Outcome {
    let mut dropped = Vec::new();
    let value = decode::<T>(text, &mut |leniency| dropped.push(leniency.path))?;
    Ok((written(&value), dropped))
}

fn read_lenient<T: FromJson + Serialize>(text: &str) -> Outcome {
    let raw: &RawValue = serde_json::from_str(text).expect("a vector is JSON");
    let value = T::from_json(raw, &mut Decode::lenient())?;
    Ok((written(&value), Vec::new()))
}

fn written<T: Serialize>(value: &T) -> String {
    serde_json::to_string(value).expect("a value has a JSON form")
}
