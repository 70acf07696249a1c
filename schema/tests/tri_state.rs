//! Tests that `x-tri-state` marks the fields in which null and absent differ.
//!
//! The official type deserializes and serializes a value whose nullable fields are all
//! null. Fields that are null in the output must have the marker, the others must not.

mod official;

use std::collections::BTreeSet;

use acp_schema::Document;
use agent_client_protocol_schema::{v1, v2};
use serde_json::{Map, Value, json};

/// Deserializes a value as an official type and serializes it again.
type RoundTrip = fn(Value) -> serde_json::Result<Value>;

macro_rules! official_types {
    ($version:ident: $($name:ident)*) => {
        &[$((stringify!($name), |value| {
            serde_json::to_value(serde_json::from_value::<$version::$name>(value)?)
        })),*]
    };
}

/// Official v1 types of the definitions with nullable fields.
const V1: &[(&str, RoundTrip)] = official_types! { v1:
    WriteTextFileRequest ReadTextFileRequest RequestPermissionRequest ToolCallUpdate
    Annotations TextContent ImageContent AudioContent ResourceLink TextResourceContents
    BlobResourceContents EmbeddedResource Content Diff Terminal ToolCallLocation
    PermissionOption CreateTerminalRequest EnvVariable TerminalOutputRequest
    ReleaseTerminalRequest WaitForTerminalExitRequest KillTerminalRequest
    CreateElicitationRequest ElicitationSessionScope ElicitationSchema EnumOption
    StringPropertySchema NumberPropertySchema IntegerPropertySchema BooleanPropertySchema
    StringMultiSelectItems TitledMultiSelectItems MultiSelectPropertySchema InitializeResponse
    AgentCapabilities PromptCapabilities McpCapabilities SessionCapabilities
    SessionListCapabilities SessionDeleteCapabilities SessionAdditionalDirectoriesCapabilities
    SessionResumeCapabilities SessionCloseCapabilities AgentAuthCapabilities LogoutCapabilities
    AuthMethodTerminal AuthMethodAgent Implementation AuthenticateResponse LogoutResponse
    NewSessionResponse SessionModeState SessionMode SessionConfigOption
    SessionConfigSelectOption SessionConfigSelectGroup LoadSessionResponse ListSessionsResponse
    SessionInfo DeleteSessionResponse ResumeSessionResponse CloseSessionResponse
    SetSessionModeResponse SetSessionConfigOptionResponse PromptResponse SessionNotification
    ContentChunk ToolCall PlanEntry Plan AvailableCommand UnstructuredCommandInput
    AvailableCommandsUpdate CurrentModeUpdate ConfigOptionUpdate SessionInfoUpdate Cost
    UsageUpdate Notice CompactionUpdate CompactionSummaryChunk CompleteElicitationNotification
    InitializeRequest ClientCapabilities FileSystemCapabilities ClientSessionCapabilities
    SessionConfigOptionsCapabilities BooleanConfigOptionCapabilities AuthCapabilities
    ElicitationCapabilities ElicitationFormCapabilities ElicitationUrlCapabilities
    AuthenticateRequest LogoutRequest NewSessionRequest HttpHeader McpServerHttp McpServerSse
    McpServerStdio LoadSessionRequest ListSessionsRequest DeleteSessionRequest
    ResumeSessionRequest CloseSessionRequest SetSessionModeRequest
    SetSessionConfigOptionRequest PromptRequest WriteTextFileResponse ReadTextFileResponse
    RequestPermissionResponse SelectedPermissionOutcome CreateTerminalResponse
    TerminalOutputResponse TerminalExitStatus ReleaseTerminalResponse
    WaitForTerminalExitResponse KillTerminalResponse CreateElicitationResponse
    ElicitationAcceptAction CancelNotification CancelRequestNotification
    SessionForkCapabilities ForkSessionRequest ForkSessionResponse
    Error MessageMcpRequest SessionSystemPromptCapabilities SessionSystemPromptModeCapabilities
    SessionSystemPromptOverrideCapabilities SessionArchiveCapabilities
    SessionStatusCapabilities SessionTitleCapabilities AuthStatusCapabilities
    ProvidersCapabilities ListProvidersResponse ProviderInfo ProviderCurrentConfig
    SetProviderResponse DisableProviderResponse AuthStatusResponse AuthAccount
    ArchiveSessionResponse UnarchiveSessionResponse SessionStatusResponse
    SetSessionTitleResponse Usage PlanItems PlanFile PlanMarkdown PlanUpdate PlanRemoved
    SubagentSessionCapabilities SessionCancelCapabilities RunningStateUpdate ErrorStopReason
    IdleStateUpdate RequiresActionStateUpdate UnknownStateUpdate SubagentUpdate SessionMessage
    SessionMessageChunk AuthStatusUpdateNotification SubagentCapabilities PlanCapabilities
    ListProvidersRequest SetProviderRequest DisableProviderRequest AuthStatusRequest
    McpServerAcp SystemPrompt ArchiveSessionRequest UnarchiveSessionRequest
    SessionStatusRequest SetSessionTitleRequest McpError MessageMcpNotification
    ProxySuccessorRequest ProxySuccessorNotification
};

/// Official v2 types of the definitions with nullable fields.
const V2: &[(&str, RoundTrip)] = official_types! { v2:
    LoginAuthRequest
    RequestPermissionRequest ToolCallUpdate Annotations TextContent ImageContent AudioContent
    Icon ResourceLink TextResourceContents BlobResourceContents EmbeddedResource Content
    DiffChange DiffPatch Diff Terminal ToolCallLocation ToolCallCapabilities
    ToolCallCancelCapabilities ToolCallPermissionSubject CommandPermissionSubject
    PermissionOption CreateElicitationRequest ElicitationSessionScope ElicitationSchema
    EnumOption StringPropertySchema NumberPropertySchema IntegerPropertySchema
    BooleanPropertySchema StringMultiSelectItems TitledMultiSelectItems
    MultiSelectPropertySchema InitializeResponse Implementation AgentCapabilities
    SessionCapabilities PromptCapabilities PromptImageCapabilities PromptAudioCapabilities
    PromptEmbeddedContextCapabilities McpCapabilities McpStdioCapabilities McpHttpCapabilities
    SessionDeleteCapabilities SessionAdditionalDirectoriesCapabilities AgentAuthCapabilities
    EnvVariable AuthMethodTerminal AuthMethodAgent LoginAuthResponse LogoutAuthResponse
    NewSessionResponse SessionConfigOption SessionConfigSelectOption SessionConfigSelectGroup
    TextCommandInput Command ListSessionsResponse SessionInfo DeleteSessionResponse
    ResumeSessionResponse CloseSessionResponse CancelToolCallResponse CancelTerminalResponse
    SetSessionConfigOptionResponse PromptResponse Error UnsupportedProtocolVersionErrorData
    SessionNotFoundErrorData UpdateSessionNotification ContentChunk UserMessage AgentMessage
    AgentThought BackgroundTerminal BackgroundToolCall RunningStateUpdate ErrorStopReason
    IdleStateUpdate RequiresActionStateUpdate ToolCallContentChunk TerminalOutput
    TerminalExitStatus TerminalSize TerminalCapabilities TerminalCancelCapabilities
    TerminalUpdate TerminalOutputChunk PlanEntry PlanItems PlanUpdate AvailableCommandsUpdate
    ConfigOptionUpdate SessionInfoUpdate Cost UsageUpdate Notice CompactionUpdate
    CompactionSummaryChunk CompleteElicitationNotification InitializeRequest ClientCapabilities
    ClientAuthCapabilities TerminalAuthCapabilities ElicitationCapabilities
    ElicitationFormCapabilities ElicitationUrlCapabilities LogoutAuthRequest NewSessionRequest
    HttpHeader McpServerHttp McpServerStdio ListSessionsRequest DeleteSessionRequest
    ResumeSessionRequest ReplayFromStart CloseSessionRequest CancelToolCallRequest
    CancelTerminalRequest SetSessionConfigOptionRequest PromptRequest RequestPermissionResponse
    CancelledPermissionOutcome SelectedPermissionOutcome CreateElicitationResponse
    ElicitationAcceptAction CancelSessionNotification CancelRequestNotification
    MessageMcpRequest McpAcpCapabilities SessionSystemPromptCapabilities
    SessionSystemPromptModeCapabilities SessionSystemPromptOverrideCapabilities
    SessionForkCapabilities SessionArchiveCapabilities SessionStatusCapabilities
    SessionTitleCapabilities AuthStatusCapabilities ProvidersCapabilities ListProvidersResponse
    ProviderInfo ProviderCurrentConfig SetProviderResponse DisableProviderResponse
    AuthStatusResponse AuthAccount ForkSessionResponse ArchiveSessionResponse
    UnarchiveSessionResponse SessionStatusResponse BackgroundSubagent Usage UnknownStateUpdate
    SetSessionTitleResponse PlanFile PlanMarkdown PlanRemoved SubagentSessionCapabilities
    SessionCancelCapabilities SubagentUpdate SessionMessage SessionMessageChunk
    AuthStatusUpdateNotification ListProvidersRequest SetProviderRequest DisableProviderRequest
    AuthStatusRequest McpServerAcp SystemPrompt ForkSessionRequest ArchiveSessionRequest
    UnarchiveSessionRequest SessionStatusRequest SetSessionTitleRequest McpError
    MessageMcpNotification ProxySuccessorRequest ProxySuccessorNotification
};

#[test]
fn the_marker_stands_where_null_has_a_meaning() {
    let [first, second] = official::compared();
    let mut wrong = wrong(&first, V1);
    wrong.extend(self::wrong(&second, V2));
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Returns the fields with a wrong or a missing marker.
fn wrong(document: &Document, types: &[(&str, RoundTrip)]) -> Vec<String> {
    let mut wrong = Vec::new();
    for (name, schema) in document.defs() {
        let nullable: BTreeSet<&str> = properties(schema)
            .filter(|(_, property)| accepts_null(property))
            .map(|(name, _)| name)
            .collect();
        if nullable.is_empty() || official::is_envelope(schema) {
            continue;
        }
        let Some((_, echo)) = types.iter().find(|(known, _)| known == &name) else {
            wrong.push(format!("{name}: add it to the types of this test"));
            continue;
        };
        let mut value = example(document, schema);
        for field in &nullable {
            value[*field] = Value::Null;
        }
        let written = match echo(value.clone()) {
            Ok(written) => written,
            Err(error) => {
                wrong.push(format!("{name}: {error} in {value}"));
                continue;
            }
        };
        for (field, property) in properties(schema) {
            let marked = property.get("x-tri-state") == Some(&Value::Bool(true));
            let kept = nullable.contains(field) && written.get(field) == Some(&Value::Null);
            if marked != kept {
                wrong.push(format!("{name}.{field}: marked {marked}, null kept {kept}"));
            }
        }
    }
    wrong
}

fn properties(schema: &Value) -> impl Iterator<Item = (&str, &Value)> {
    let properties = schema.get("properties").and_then(Value::as_object);
    properties
        .into_iter()
        .flatten()
        .map(|(name, property)| (name.as_str(), property))
}

fn accepts_null(schema: &Value) -> bool {
    let is_null = |kind: &Value| kind == "null";
    let types = schema.get("type").and_then(Value::as_array);
    let branches = schema.get("anyOf").and_then(Value::as_array);
    // Without any of these the schema accepts everything.
    let is_any = ["type", "$ref", "allOf", "anyOf", "oneOf"]
        .iter()
        .all(|keyword| schema.get(keyword).is_none());
    is_any
        || types.is_some_and(|types| types.iter().any(is_null))
        || branches.is_some_and(|branches| {
            branches
                .iter()
                .any(|branch| branch.get("type").is_some_and(is_null))
        })
}

/// Returns a minimal valid value of `schema`.
fn example(document: &Document, schema: &Value) -> Value {
    if let Some(value) = schema.get("const") {
        return value.clone();
    }
    if let Some(target) = schema.get("$ref").and_then(Value::as_str) {
        let name = target.trim_start_matches("#/$defs/");
        return example(document, document.def(name).expect("references resolve"));
    }
    let mut members = Map::new();
    for part in ["allOf", "oneOf", "anyOf"] {
        let first = schema.get(part).and_then(|branches| branches.get(0));
        match first.map(|first| example(document, first)) {
            Some(Value::Object(more)) => members.extend(more),
            Some(value) => return value,
            None => {}
        }
    }
    match schema.get("type").and_then(Value::as_str) {
        Some("string") => json!("text"),
        Some("integer" | "number") => json!(1),
        Some("boolean") => json!(true),
        Some("array") => json!([]),
        Some("null") => Value::Null,
        _ => {
            let required = schema.get("required").and_then(Value::as_array);
            for name in required.into_iter().flatten().filter_map(Value::as_str) {
                if let Some(property) = schema.pointer(&format!("/properties/{name}")) {
                    members.insert(name.to_owned(), example(document, property));
                }
            }
            Value::Object(members)
        }
    }
}
