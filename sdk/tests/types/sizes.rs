//! How large the types are that move most: each message is moved a few times.

use acp_sdk::v1::*;

macro_rules! too_large {
    ($($name:ident <= $most:literal,)*) => {
        [$((stringify!($name), size_of::<$name>(), $most)),*]
            .into_iter()
            .filter(|(_, size, most)| size > most)
            .collect::<Vec<_>>()
    };
}

#[test]
fn hot_types_stay_small() {
    let too_large = too_large! {
        SessionId <= 16,
        ToolKind <= 24,
        TextContent <= 128,
        ContentBlock <= 256,
        ContentChunk <= 288,
        ToolCall <= 256,
        ToolCallContent <= 256,
        ToolCallUpdate <= 256,
        SessionUpdate <= 288,
        SessionNotification <= 320,
        PromptRequest <= 64,
        PromptResponse <= 64,
        RequestPermissionRequest <= 288,
        RequestPermissionResponse <= 64,
        InitializeRequest <= 320,
        InitializeResponse <= 384,
        NewSessionRequest <= 96,
        NewSessionResponse <= 128,
        SessionConfigOption <= 192,
        CreateElicitationRequest <= 256,
        RpcError <= 64,
    };
    assert!(too_large.is_empty(), "box a part of {too_large:?}");
}
